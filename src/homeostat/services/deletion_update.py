"""Updates of a stack during its deletion: changes of deletion policies alone adjust the deletion (ADR 0048)."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from homeostat.desired.deletion_policies import policies_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.store.stacks.contents import Content
from homeostat.templates import parse_template

_POLICIES = ("deletion_policy", "DeletionPolicy")
_RESOURCES = ("resources", "Resources")
_GET_FILE = "get_file"


def new_policies(stack: Any, before: Content, after: Content) -> dict[str, str] | None:
    """Return the deletion policies that an update changes, by resource, if it changes nothing else.

    For a root stack, the policies of nested templates are in the files of `after`.

    Args:
        stack: Its row.
        before: The last desired state before the deletion.
        after: The desired state that the update requests.

    Returns:
        Resource -> new policy. None if the stack is not being deleted, nothing changes, or more than policies changes.
    """
    nested = stack.parent_id is not None and before.files != after.files
    if stack.action != Action.DELETE or nested or not _differ_in_policies_alone(before, after):
        return None
    identity = Identity(stack.id, stack.name, stack.project)
    old, new = (policies_of(content, identity) for content in (before, after))
    return {name: policy for name, policy in new.items() if old.get(name) != policy}


def _differ_in_policies_alone(before: Content, after: Content) -> bool:
    if _rest(before) != _rest(after):
        return False
    edited = [name for name, text in after.files.items() if before.files[name] != text]
    pairs = [(_as_template(before.files[name]), _as_template(after.files[name])) for name in edited]
    pairs.append((before.template, after.template))
    if any(_without_policies(old) != _without_policies(new) for old, new in pairs):
        return False
    return any(old != new for old, new in pairs) and not _are_read(edited, after)


def _rest(content: Content) -> Content:
    """Return everything but the templates: of files, their names alone."""
    return replace(content, template={}, files=dict.fromkeys(content.files, ""))


def _as_template(text: str) -> Any:
    """Parse a file as a template; return the text if it is no template."""
    try:
        template = parse_template(text)
    except Rejected:
        return text
    return template if any(section in template for section in _RESOURCES) else text


def _without_policies(template: Any) -> Any:
    if not isinstance(template, Mapping):
        return template
    return {section: _stripped_section(section, value) for section, value in template.items()}


def _stripped_section(section: str, value: Any) -> Any:
    if section not in _RESOURCES or not isinstance(value, Mapping):
        return value
    return {name: _stripped(resource) for name, resource in value.items()}


def _stripped(resource: Any) -> Any:
    if not isinstance(resource, Mapping):
        return resource
    return {key: value for key, value in resource.items() if key not in _POLICIES}


def _are_read(names: Collection[str], content: Content) -> bool:
    """Return whether one of these files is read as a value (`get_file`) anywhere in the stack's tree."""
    if not names:
        return False
    texts = [text for text in content.files.values() if _GET_FILE in text]
    todo: list[Any] = [content.template, *map(_as_template, texts)]
    while todo:
        value = todo.pop()
        if isinstance(value, Mapping):
            named = value.get(_GET_FILE, "")
            # A computed name could be any file.
            if not isinstance(named, str) or named in names:
                return True
            todo += value.values()
        elif isinstance(value, list | tuple):
            todo += value
    return False
