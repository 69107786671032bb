"""Fetches templates that a stack names by URL, once, when the request arrives.

They are kept among the stack's files and never fetched again, so that changes at the URL do not change the stack.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from homeostat.desired.compiling import registry_of, template_of
from homeostat.model.errors import Rejected
from homeostat.store.stacks.contents import Content
from homeostat.templates import declared_in
from homeostat.templates.environments import nested_environment
from homeostat.templates.registry import is_template

TEMPLATES_MAX = 100
"""Templates fetched for one request."""
PLACES_MAX = 10_000
"""Nested templates that are searched for further names; a template counts once per environment."""
SCHEMES = ("http://", "https://")
_NAMING = frozenset(("TemplateURL", "resource_def", "resource", "resources"))
"""Properties that may name a template."""


def with_fetched(content: Content, fetch: Callable[[str], str]) -> Content:
    """Return the revision with the text of every template that is named by URL, also in nested templates.

    Raises:
        Rejected: By `fetch`; also for an invalid template.
    """
    files = dict(content.files)
    seen: set[tuple[str, str]] = set()
    todo = [(content.template, content.environment)]
    fetched = 0
    while todo:
        template, environment = todo.pop()
        for name, inside in _named(template, environment):
            # In another environment the same template may name other templates.
            place = (name, repr(inside))
            if place in seen:
                continue
            if len(seen) >= PLACES_MAX:
                message = f"the template names others in more than {PLACES_MAX} ways: make several stacks of it"
                raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
            seen.add(place)
            # Names beyond the limit stay without a text: the check reports the resource that uses them.
            if name not in files and name.startswith(SCHEMES) and fetched < TEMPLATES_MAX:
                files[name] = fetch(name)
                fetched += 1
            if name in files:
                todo += [(nested, inside) for nested in _read(name, files)]
    return replace(content, files=files) if fetched else content


def _read(name: str, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the template of this name; [] if invalid, which the later check reports with the resource."""
    try:
        return [template_of(name, files)]
    except Rejected:
        return []


def _named(template: Mapping[str, Any], environment: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of the templates that resources are made from, each with the environment of its stack."""
    registry = registry_of(environment)
    for name, entry in declared_in(template, "resources").items():
        if not isinstance(entry, Mapping):
            continue
        called, properties = _text(entry, "type"), _map(entry, "properties")
        implementation = registry.resolve(called, name).type
        if not is_template(implementation) and _NAMING.isdisjoint(properties):
            continue
        sources = [implementation, properties.get("TemplateURL")]
        made_of = [
            source for source in sources if isinstance(source, str) and (is_template(source) or source is sources[1])
        ]
        members = _members(properties)
        if not made_of and not members:
            continue
        inside = nested_environment(environment, registry, name, called)
        yield from ((source, inside) for source in made_of)
        within = registry_of(inside)
        for number, member in enumerate(members):
            made_by = within.resolve(member, str(number)).type
            if is_template(made_by):
                yield made_by, nested_environment(inside, within, str(number), member)


def _members(properties: Mapping[str, Any]) -> list[str]:
    """Return the types of the members of a group or chain."""
    member, types = properties.get("resource_def", properties.get("resource")), properties.get("resources")
    named = [member.get("type")] if isinstance(member, Mapping) else types if isinstance(types, list) else []
    return [type_name for type_name in named if isinstance(type_name, str)]


def _text(entry: Mapping[str, Any], key: str) -> str:
    # Templates of CloudFormation write `Type` and `Properties`.
    value = entry.get(key, entry.get(key.capitalize()))
    return value if isinstance(value, str) else ""


def _map(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key, entry.get(key.capitalize()))
    return value if isinstance(value, Mapping) else {}
