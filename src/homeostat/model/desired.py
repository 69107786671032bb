"""Desired state: the compiled graph of one revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of the stack that a template is compiled for; the source of the pseudo parameters."""

    stack_id: str
    stack_name: str
    project: str


@dataclass(frozen=True, slots=True)
class Definition:
    """One resource of the desired graph.

    Attributes:
        properties: Tree of plain data in which functions that depend on other resources stand as nodes of
            `templates.functions`; `templates.evaluate` resolves them.
        metadata: A tree of the same kind.
        requires: Names of the resources of the same graph that must be done first (CV4).
        external_id: Id of an existing thing to stand for, or a function that gives it; None for a resource to be made.
        static: Whether `properties` holds no such function.
        template_type: The type as the template calls it; "" where that is `type`.
        hooks: Hooks that its environment sets: where it stops until the hook is cleared (see `templates.registry`).
        restricted: Actions that its environment forbids: `update`, `replace`.
        revision: Revision that it is of, where the newest one has failed and this is healed as before; else None.
    """

    name: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    metadata: Any = None
    requires: tuple[str, ...] = ()
    deletion_policy: str = "Delete"
    update_policy: Mapping[str, Any] = field(default_factory=dict)
    creation_policy: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    external_id: Any = None
    static: bool = False
    template_type: str = ""
    hooks: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    revision: int | None = None

    @property
    def shown_type(self) -> str:
        """The type as users know it."""
        return self.template_type or self.type


@dataclass(frozen=True, slots=True)
class Output:
    """One declared output; `active` is False when its condition is."""

    name: str
    value: Any
    description: str
    active: bool = True
