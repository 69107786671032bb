"""The first stage: the user's request."""

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

    Options that are None keep their values, or take their defaults on create.

    Attributes:
        template_source: The client's name for the template's file.
        clear_parameters: Parameters whose stored values are dropped (PATCH only).
        revision: Number of the revision to patch; None for the newest (PATCH only).
        look_first: Observe every resource before it counts as settled, even without a change of the template.
        check_types: Rejects types that this user may not use; None allows all.
        internal_types: Internal types in a template that the service has generated.
        check_client: Called between steps of the work; raises if the client has disconnected.
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
