"""Updates of a stack that is being deleted: one that touches only deletion policies says how (ADR 0048)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.convergence.definitions import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.status import Action
from homeostat.store.stacks import Desired

_POLICIES = ("deletion_policy", "DeletionPolicy")
_RESOURCES = ("resources", "Resources")


def new_policies(stack: Any, before: Desired, after: Desired) -> dict[str, str]:
    """Name of a resource -> the deletion policy that an update gives it, where it does nothing else.

    Takes: stack — its row; before — what was last asked for, apart from its deletion; after — what the update asks for.
    Empty where the stack is not being deleted, and where anything else is changed, or nothing.
    """
    if stack.action != Action.DELETE or before.template == after.template or _rest(before) != _rest(after):
        return {}
    identity = Identity(stack.id, stack.name, stack.project)
    old, new = (compile_desired(each, identity, strict=False).definitions for each in (before, after))
    changed = (name for name in new if name not in old or new[name].deletion_policy != old[name].deletion_policy)
    return {name: new[name].deletion_policy for name in changed}


def _rest(desired: Desired) -> Desired:
    """All but the deletion policies."""
    template = {section: _without_policies(section, value) for section, value in desired.template.items()}
    return replace(desired, template=template, intent="", secret=None)


def _without_policies(section: str, value: Any) -> Any:
    if section not in _RESOURCES or not isinstance(value, Mapping):
        return value
    return {name: _stripped(each) for name, each in value.items()}


def _stripped(resource: Any) -> Any:
    if not isinstance(resource, Mapping):
        return resource
    return {key: value for key, value in resource.items() if key not in _POLICIES}
