"""What should exist: the compiled desired graph of one revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """Of the stack a template is compiled for; feeds the pseudo parameters."""

    stack_id: str
    stack_name: str
    project: str


@dataclass(frozen=True, slots=True)
class Definition:
    """One resource of the desired graph.

    properties, metadata — trees of plain data in which functions that wait for other resources stand as nodes of
    `templates.functions` (evaluate them with `templates.evaluate`); requires — names of the resources that must be done
    first (CV4), each in the same graph; static — no such node is left in properties; called — the type as the template
    says it, "" where that is `type`; hooks, restricted — what its environment says of it: where it stops, and what must
    not be done to it (see `templates.registry`).
    """

    name: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    metadata: Any = None
    requires: tuple[str, ...] = ()
    deletion_policy: str = "Delete"
    update_policy: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    external_id: Any = None
    static: bool = False
    called: str = ""
    hooks: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """One declared output; `active` is False when its condition is."""

    name: str
    value: Any
    description: str
    active: bool = True
