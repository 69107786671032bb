"""What stands in for a type that is not known any more: its package was taken out while resources of it were there."""

from homeostat.model.observed import Condition, Verdict
from homeostat.resources.base import Props, ResourceType, Thing


class LostType(ResourceType):
    """Takes: name — of the type that was."""

    description = "A type that is not known any more."
    open_schema = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def judge(self, thing: Thing, now: float) -> Verdict:
        return Verdict(Condition.UNKNOWN, unknown(self.name))

    def replaced_by(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        return unknown(self.name)


def unknown(name: str) -> str:
    """Why nothing can be done about a resource of this type."""
    return f"its type {name} is not known any more: install the package that brings it"
