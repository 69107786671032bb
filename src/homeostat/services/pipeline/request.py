"""The first stage: what a user sends."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.resources.custom_constraints import Path
from homeostat.services.client_check import ClientCheck, always_connected

CheckTypes = Callable[[Mapping[str, Path]], None]
"""Raise Rejected (Forbidden) naming the first of these types that the caller may not use."""


@dataclass(frozen=True, slots=True)
class StackRequest:
    """A requested desired state and options of a stack.

    Options that are None stay as they are, or take their default on create.

    Attributes:
        template_source: The file that the template was read from, in the client's words.
        clear_parameters: Parameters whose stored values are dropped (PATCH only).
        revision: Number of the revision that supplies what this request leaves out; None for the newest (PATCH only).
        look_first: Observe every resource before it counts as settled, however little the template changes.
        check_types: Rejects types that this user may not use; None allows all.
        internal_types: Types of the service's own in a template that the service has made.
        check_client: Called between steps of the work; raises when the client has disconnected.
    """

    template: Mapping[str, Any] | str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    disable_rollback: bool | None = None
    timeout_mins: int | None = None
    tags: list[str] | None = None
    template_source: str | None = None
    clear_parameters: Collection[str] = ()
    revision: int | None = None
    look_first: bool = False
    check_types: CheckTypes | None = None
    internal_types: Collection[str] = ()
    check_client: ClientCheck = always_connected
