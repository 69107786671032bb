"""Desired state: the compiled graph of a revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.record import record


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of the stack that a template is compiled for; the source of the pseudo parameters."""

    stack_id: str
    stack_name: str
    project: str


@record
class Definition:
    """A resource of the desired graph.

    Attributes:
        properties: Tree of plain data. Functions that depend on resources are nodes of `templates.functions`;
            `templates.evaluate` resolves them.
        metadata: A tree of the same kind.
        requires: Names of resources of the same graph that must be complete first (CV4).
        external_id: Id of an existing, unmanaged thing, or a function that returns the id; None for a managed resource.
        static: Whether `properties` has no such function.
        template_type: The type's name in the template; "" if equal to `type`.
        hooks: Hooks from the environment, at which the resource pauses until they are cleared (`templates.registry`).
        restricted: Actions that the environment forbids: `update`, `replace`.
        revision: The earlier revision of this definition, if the newest revision has failed and the resource is healed
            to its earlier state; else None.
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
    """A declared output; `active` is False if its condition is false."""

    name: str
    value: Any
    description: str
    active: bool = True
