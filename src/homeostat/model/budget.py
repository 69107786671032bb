"""Disruption budget of a group: the number of members that may be away at a time, and the reasons for absences."""

from dataclasses import dataclass
from enum import StrEnum


class Absence(StrEnum):
    """Why a member of a group is away, that is, out of service.

    Attributes:
        GONE: Not found, and not being replaced yet.
        FAILED: An act on the member has failed.
        MARKED: Marked unhealthy.
        HEALED: Being healed.
        CHANGED: Being changed or replaced by an update.
        AWAITED: Changed or created by an update, and yet to report success.
    """

    GONE = "gone"
    FAILED = "failed"
    MARKED = "marked"
    HEALED = "healed"
    CHANGED = "changed"
    AWAITED = "awaited"


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit on the members of a group that may be away at a time, from its template.

    Attributes:
        min_in_service: Members that stay in service, if the group has as many.
        max_unavailable: A number such as `2`, or a share of the members such as `10%`; "" for no such limit.
    """

    min_in_service: int = 0
    max_unavailable: str = ""

    @property
    def binds(self) -> bool:
        """Whether there is any limit."""
        return self.min_in_service > 0 or self.max_unavailable != ""

    def away_max(self, members: int) -> int:
        """Return how many of `members` may be away at a time; 0 if all have to stay."""
        return min(max(members - self.min_in_service, 0), self.unavailable_max(members))

    def unavailable_max(self, members: int) -> int:
        """Return how many of `members` may be away by `max_unavailable`: at least one."""
        if not self.max_unavailable:
            return members
        if self.max_unavailable.endswith("%"):
            # The epsilon corrects products just below an integer: 0.29 * 100 is 28.999….
            return max(1, int(float(self.max_unavailable[:-1]) / 100 * members + 1e-9))
        return int(self.max_unavailable)


NO_LIMIT = Limit()
