"""The nested templates that one request expands: each once, and within limits."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from homeostat.model.errors import Rejected
from homeostat.model.limits import DEPTH_MAX, RESOURCES_MAX, too_deep
from homeostat.services.client_check import ClientCheck, always_connected
from homeostat.services.pipeline.requirements import Requirements
from homeostat.templates import (
    Compiled,
)
from homeostat.templates.tree import Allowance


@dataclass(frozen=True, slots=True)
class ExpansionLimits:
    """Limits of a stack and all its nested stacks.

    Attributes:
        resources_max: Resources of the whole tree.
        expanded_max: Resources of the nested templates that are compiled for the checks; equal templates count once.
        depth_max: Levels of nested stacks.
        health_interval_min: Shortest interval of health checks, in seconds.
    """

    resources_max: int = RESOURCES_MAX
    expanded_max: int = 50_000
    depth_max: int = DEPTH_MAX
    health_interval_min: int = 60


class Expansion:
    """The nested templates that one request has expanded so far; templates with equal input are expanded once.

    Args:
        check_client: Called before each expansion; raises if the client has disconnected.
        internal_types: Internal types that the outermost template may use, because the service has generated it.
        shows_disabled: Also expand templates of groups of 0 members, for validation.

    Attributes:
        allowance: Limit of the output of template functions, for all these templates together.
        expanded: Number of resources in these templates.
        terms: All that the checks of a content depend on besides the content itself, and this release of the service.
    """

    def __init__(
        self,
        limits: ExpansionLimits = ExpansionLimits(),
        check_client: ClientCheck = always_connected,
        internal_types: Collection[str] = (),
        *,
        shows_disabled: bool = False,
    ) -> None:
        self.limits = limits
        self.shows_disabled = shows_disabled
        self.internal_types = internal_types
        self.terms = (limits, frozenset(internal_types), shows_disabled)
        self.allowance = Allowance()
        self.check_client = check_client
        self.expanded = 0
        self._known: dict[str, tuple[Compiled, Requirements]] = {}

    def once(self, key: str, expand: Callable[[], tuple[Compiled, Requirements]]) -> tuple[Compiled, Requirements]:
        """Return the result of the first `expand` for this key. Raises like `expand`."""
        # Groups of groups repeat the same template thousands of times (ADR 0040).
        if key not in self._known:
            self.check_client()
            self._known[key] = expand()
        return self._known[key]

    def expanding(self, compiled: Compiled) -> None:
        """Count the resources of a nested template. Raise Rejected if there are too many."""
        self.expanded += len(compiled.definitions)
        if self.expanded > self.limits.expanded_max:
            message = (
                f"its nested templates that differ have more than {self.limits.expanded_max} resources together: "
                "give equal ones the same properties, make several stacks of it, or raise --expanded-max of the service"
            )
            raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")

    def close(self) -> None:
        """End the expansion: later evaluations do not count against the allowance."""
        self.allowance.close()

    def check_size(self, resources: int) -> None:
        """Raise Rejected for a tree with more resources than a stack may have."""
        if resources > self.limits.resources_max:
            message = (
                f"the stack with all that is nested in it has {resources} resources or more, at most "
                f"{self.limits.resources_max} are allowed: make several stacks of it, or raise --resources-max of the "
                "service"
            )
            raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")

    def check_depth(self, depth: int) -> None:
        """Raise Rejected for a stack that is nested too deeply.

        Args:
            depth: 1 for a stack nested in a root stack.
        """
        if depth > self.limits.depth_max:
            raise too_deep(self.limits.depth_max)
