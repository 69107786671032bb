"""Who asks for something, and in which project."""

from dataclasses import dataclass
from typing import Any

from homeostat.api.access.auth import Caller


@dataclass(frozen=True, slots=True)
class Asking:
    """The caller of a request.

    Attributes:
        caller: Who it is.
        project: The project in which something is made.
        action_name: What the action is called that begins; "" for its usual name.
    """

    caller: Caller
    project: str
    action_name: str = ""

    @property
    def reach(self) -> str | None:
        """Project that lookups are limited to; None for an admin, who reaches all."""
        return None if self.caller.is_admin else self.project

    @property
    def owner(self) -> dict[str, Any]:
        """Columns that say to whom something belongs."""
        return {"project": self.project, "user": self.caller.user_id or self.caller.user, "domain": self.caller.domain}
