"""Stand-in for a resource type whose package was uninstalled while the type was in use."""

from homeostat.model.observed import Condition, Verdict
from homeostat.resources.base import Props, ResourceType, Thing


class LostType(ResourceType):
    """Stand-in for a type of the given name: its resources can be neither observed nor changed."""

    description = "A type that is not known any more."
    open_schema = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def judge(self, thing: Thing, now: float) -> Verdict:
        return Verdict(Condition.UNKNOWN, unknown(self.name))

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return unknown(self.name)


def unknown(name: str) -> str:
    """Return the reason why a resource of this type can be neither observed nor changed."""
    return f"its type {name} is not known any more: install the package that brings it"
