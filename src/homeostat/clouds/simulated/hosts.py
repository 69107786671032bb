"""The hosts of simulated servers, which tests put down."""

from homeostat.clouds.simulated.objects import HOSTS, Fields
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation, Presence

KIND = "hypervisor"


class Hosts:
    """The hosts, which all projects share.

    Attributes:
        down: Names of those that the cloud does not hear of.
        forced: Names of those that were declared down.
        disabled: Names of those that take no new servers.
        hidden: Whether policy keeps them from the caller.
    """

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.forced: set[str] = set()
        self.disabled: set[str] = set()
        self.hidden = False

    def is_down(self, name: str) -> bool:
        return name in self.down or name in self.forced

    def object_of(self, name: str) -> Fields | None:
        """Return a host as an object of its kind; None if there is no such host."""
        if name not in HOSTS:
            return None
        return {
            "id": name,
            "name": name,
            "state": "down" if self.is_down(name) else "up",
            "status": "disabled" if name in self.disabled else "enabled",
            "forced_down": name in self.forced,
        }

    def look(self, name: str, now: float) -> Observation:
        found = self.object_of(name)
        if self.hidden:
            return Observation(Presence.UNKNOWN, name, seen_at=now, reason="policy does not allow to look at hosts")
        if found is None:
            return Observation(Presence.ABSENT, name, seen_at=now, reason=f"there is no such {KIND}")
        return Observation(Presence.PRESENT, name, found, now)

    def target(self, away_from: str, wanted: str | None) -> str:
        """Return the host to which a server can be evacuated.

        Args:
            away_from: The host that it is on.
            wanted: The host that the caller names, if any.

        Raises:
            Terminal: The server's host is up, or none can take it.
        """
        if not self.is_down(away_from):
            raise Terminal(f"Compute service of {away_from} is still in use.")
        fit = [name for name in HOSTS if name != away_from and not self.is_down(name) and name not in self.disabled]
        chosen = [name for name in fit if wanted in (None, name)]
        if not chosen:
            raise Terminal(f"No valid host was found: {wanted or 'every other host'} is down, disabled or unknown")
        return chosen[0]


READ_ONLY = Terminal(f"a {KIND} is only looked at")
"""Answer to a request that would change a host."""
