"""Healing policy of a resource in its template: `metadata: {homeostat: {healing: ask}}` (ADR 0052). Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.model.world import HealingPolicy, StackFacts

SECTION, HEALING = "homeostat", "healing"


def policy_in(metadata: Any) -> str | None:
    """Return the policy in the metadata of a resource, or None."""
    section = metadata.get(SECTION) if isinstance(metadata, Mapping) else None
    policy = section.get(HEALING) if isinstance(section, Mapping) else None
    return policy if isinstance(policy, str) else None


def check(metadata: Any, path: tuple[str | int, ...]) -> None:
    """Check the healing policy in the metadata of a resource.

    Args:
        metadata: Metadata of the resource; an unknown value is no text, and therefore refused.
        path: Path of the metadata.

    Raises:
        Rejected: (StackValidationFailed) The value is no policy, or is unknown before resources exist.
    """
    section = metadata.get(SECTION) if isinstance(metadata, Mapping) else None
    if section is None:
        return
    if not isinstance(section, Mapping):
        raise _invalid(f"a map is needed, with the key {HEALING}", *path, SECTION)
    strange = [str(key) for key in section if key != HEALING]
    if strange:
        raise _invalid(f"there is no such key; there is {HEALING}", *path, SECTION, strange[0])
    if section.get(HEALING) not in tuple(HealingPolicy):
        message = f"it must be {' or '.join(HealingPolicy)}, and known before any resource exists"
        raise _invalid(message, *path, SECTION, HEALING)


def _invalid(message: str, *path: str | int) -> Rejected:
    return Rejected("StackValidationFailed", message, path=path)


def of_resource(stack: StackFacts, name: str, metadata: Any, inherited: str | None) -> str:
    """Return the policy of a resource: its switch by name, else its template's, else the stack's.

    Args:
        metadata: Metadata of the resource.
        inherited: Policy of the stack; None for the default.
    """
    switched = (stack.exceptions or {}).get(name, {}).get("healing")
    return switched or policy_in(metadata) or inherited or HealingPolicy.REPLACE
