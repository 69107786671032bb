"""The hosts of simulated servers, which tests let fail."""

from homeostat.clouds.simulated.objects import HOSTS, Fields
from homeostat.model import hosts
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation, Presence

KIND = "hypervisor"
BEAT_S = 10.0
"""Seconds between the reports of a working host."""


class Hosts:
    """The hosts, which all projects share.

    Attributes:
        down: Names of failed hosts.
        unheard: Names of working hosts whose reports do not reach the control plane.
        forced: Names of hosts that were declared down.
        disabled: Names of hosts that accept no new servers.
        hidden: Whether policy hides the hosts from the caller.
        no_room: Whether no host has room for another server.
    """

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.unheard: set[str] = set()
        self.forced: set[str] = set()
        self.disabled: set[str] = set()
        self.hidden = self.no_room = False
        self._last_beats: dict[str, float] = {}

    def silence(self, name: str, now: float) -> None:
        """Lose the reports of a host from now on, though its servers run."""
        self._stand_still(name, now)
        self.unheard.add(name)

    def pause(self, now: float) -> None:
        """Lose the reports of all hosts from now on: the control plane pauses."""
        for name in HOSTS:
            self.silence(name, now)

    def fail(self, name: str, now: float) -> None:
        self._stand_still(name, now)
        self.down.add(name)

    def hear(self, name: str) -> None:
        """Let the reports of a working host arrive again."""
        self.unheard.discard(name)

    def repair(self, name: str, _now: float) -> None:
        """Let a host work again, no longer declared down."""
        self.down.discard(name)
        self.forced.discard(name)

    def declare_down(self, name: str, now: float) -> None:
        """Declare a host down, which updates its record like a report."""
        if name not in self.forced:
            self._last_beats[name] = now
        self.forced.add(name)

    def _stand_still(self, name: str, now: float) -> None:
        if not self._is_silent(name):
            self._last_beats[name] = now

    def _is_silent(self, name: str) -> bool:
        return name in self.down or name in self.unheard

    def is_down(self, name: str) -> bool:
        """Return whether the servers of a host cannot run, or may run elsewhere."""
        return name in self.down or name in self.forced

    def doubt(self, name: str, now: float) -> str:
        """Return the reason not to cut off the servers of a host that is called down; "" if there is none."""
        known = {host: self._shown(host, now) for host in HOSTS}
        others = hosts.others_that_take(known[name], known.values())
        full = "" if others and not self.no_room else "no other host has room for another one"
        return hosts.doubt(known[name], known.values()) or full

    def is_called_down(self, name: str) -> bool:
        return self._is_silent(name) or name in self.forced

    def _shown(self, name: str, now: float) -> hosts.Host:
        state = hosts.DOWN if self.is_called_down(name) else hosts.UP
        status = "disabled" if name in self.disabled else hosts.ENABLED
        beat_at = self._last_beats[name] if self._is_silent(name) else now - now % BEAT_S
        return hosts.Host(name, state, status, beat_at, name in self.forced)

    def object_of(self, name: str, now: float) -> Fields | None:
        """Return a host as an object of its kind; None if absent."""
        if name not in HOSTS:
            return None
        host = self._shown(name, now)
        return {
            "id": name,
            "name": name,
            "state": host.state,
            "status": host.status,
            "forced_down": host.forced_down,
            "updated_at": host.beat_at,
            "blind": hosts.blindness([self._shown(other, now) for other in HOSTS]),
        }

    def look(self, name: str, now: float) -> Observation:
        host = self.object_of(name, now)
        if self.hidden:
            return Observation(Presence.UNKNOWN, name, seen_at=now, reason="policy does not allow to look at hosts")
        if host is None:
            return Observation(Presence.ABSENT, name, seen_at=now, reason=f"there is no such {KIND}")
        return Observation(Presence.PRESENT, name, host, now)

    def place(self, usual: str) -> str:
        """Return the host of a new server: the usual host if it accepts servers, else another."""
        takes = self._taking()
        return takes[0] if takes and usual not in takes else usual

    def _taking(self) -> list[str]:
        return [name for name in HOSTS if not self.is_called_down(name) and name not in self.disabled]

    def target(self, away_from: str, wanted: str | None) -> str:
        """Return the host to which a server can be evacuated.

        Args:
            away_from: The server's present host.
            wanted: The host that the caller names, if any.

        Raises:
            Terminal: The server's host is up, or no host can take the server.
        """
        if not self.is_called_down(away_from):
            raise Terminal(f"Compute service of {away_from} is still in use.")
        fit = [name for name in self._taking() if name != away_from and not self.no_room]
        chosen = [name for name in fit if wanted in (None, name)]
        if not chosen:
            raise Terminal(f"No valid host was found: {wanted or 'every other host'} is down, disabled or unknown")
        return chosen[0]


READ_ONLY = Terminal(f"a {KIND} is only looked at")
"""Answer to a request that would change a host."""
