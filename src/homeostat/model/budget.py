"""How many members of a group may be away at a time, and why one is: values that the planner and the store share."""

from dataclasses import dataclass
from enum import StrEnum


class Absence(StrEnum):
    """Why a member of a group is away, that is, out of service.

    Attributes:
        GONE: It was not found, and nothing is done about that yet.
        FAILED: An act on it has failed.
        MARKED: It is marked unhealthy.
        HEALED: It is being healed.
        CHANGED: An update changes or replaces it.
        AWAITED: An update has changed or made it, and it has yet to report success.
    """

    GONE = "gone"
    FAILED = "failed"
    MARKED = "marked"
    HEALED = "healed"
    CHANGED = "changed"
    AWAITED = "awaited"


@dataclass(frozen=True, slots=True)
class Limit:
    """How many members of a group may be away at a time, as its template says.

    Attributes:
        min_in_service: How many stay in service, as far as there are so many.
        max_unavailable: A number such as `2`, or a share of the members such as `10%`; "" for no limit of this kind.
    """

    min_in_service: int = 0
    max_unavailable: str = ""

    @property
    def binds(self) -> bool:
        """Whether there is any limit."""
        return self.min_in_service > 0 or self.max_unavailable != ""

    def away_max(self, members: int) -> int:
        """Return how many of so many members may be away at a time; fewer than one where all have to stay."""
        return min(max(members - self.min_in_service, 0), self.unavailable_max(members))

    def unavailable_max(self, members: int) -> int:
        """Return how many of so many members `max_unavailable` lets be away: at least one."""
        if not self.max_unavailable:
            return members
        if self.max_unavailable.endswith("%"):
            # The epsilon makes up for products just below a whole number: 0.29 * 100 is 28.999….
            return max(1, int(float(self.max_unavailable[:-1]) / 100 * members + 1e-9))
        return int(self.max_unavailable)


NO_LIMIT = Limit()
