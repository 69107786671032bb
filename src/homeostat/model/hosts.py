"""Interpretation of a list of compute hosts: which are down, and whether the list can be trusted (ADR 0093).

Heartbeats arrive through a control plane. If the control plane pauses, it reports working hosts as down: first all, and
on its return, for a while, the last to reconnect. So a host counts as down only while its peers have fresh heartbeats.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

UP, DOWN, ENABLED = "up", "down", "enabled"
STILL_S = 20.0
"""Seconds that a heartbeat must be unchanged, and older than those of all live hosts, until the host counts as down."""
LOOKS = 3
"""Consecutive looks that must find a host down with the same heartbeat."""
AFTER_BLIND_S = 90.0
"""Seconds instead of `STILL_S` after a blind phase: hosts reconnect gradually, and a host may wait for an RPC answer of
the control plane for a minute."""
DECLARED = "declared down, "
AT_ONCE_S = 300.0
"""Window in which hosts count as silent at once. A host silent for longer says nothing about the control plane."""


@dataclass(frozen=True, slots=True)
class Host:
    """A compute host, as the list of services (Nova's) shows it.

    Attributes:
        state: `UP` with a recent heartbeat, else `DOWN`.
        status: `ENABLED` for new servers, or disabled.
        beat_at: Time of the last heartbeat, in seconds since the epoch by the clock of the list; None if unknown.
        forced_down: Whether the host was declared down, which makes `state` meaningless.
    """

    name: str
    state: str
    status: str = ENABLED
    beat_at: float | None = None
    forced_down: bool = False

    @property
    def is_heard_of(self) -> bool:
        return self.state == UP

    @property
    def takes_servers(self) -> bool:
        return self.is_heard_of and self.status == ENABLED


def newest_beat(hosts: Collection[Host]) -> float | None:
    """Return the time of the newest heartbeat of the hosts; None if unknown."""
    return max((host.beat_at for host in hosts if host.beat_at is not None), default=None)


def blindness(hosts: Collection[Host]) -> str:
    """Return why the list is not trusted: the control plane seems to have missed all heartbeats. "" if trusted."""
    # A host declared down counts for neither side: our own fencing may have declared it.
    counted = [host for host in hosts if not host.forced_down]
    silent = _silent_at_once(counted)
    heard = sum(host.is_heard_of for host in counted)
    if len(silent) <= heard:
        return ""
    many = f"{len(silent)} of {len(silent) + heard} hosts went silent at once"
    return f"{many}, which is more likely a control plane that does not hear of them"


def _silent_at_once(hosts: Collection[Host]) -> list[Host]:
    newest = newest_beat(hosts)
    silent = [host for host in hosts if not host.is_heard_of]
    return [host for host in silent if newest is None or host.beat_at is None or host.beat_at >= newest - AT_ONCE_S]


def doubt(host: Host, hosts: Collection[Host]) -> str:
    """Return why the state `DOWN` of a host is not believed; "" if believed, or if the host is up.

    Args:
        hosts: All hosts of the same list.
    """
    if host.is_heard_of:
        return ""
    blind = blindness(hosts)
    if blind:
        return blind
    heard = [peer.beat_at for peer in hosts if peer.is_heard_of and peer.beat_at is not None and peer.name != host.name]
    # After an outage of the control plane, heartbeats of live hosts are spread widely: a host that works may then be as
    # late as this spread.
    if not heard or host.beat_at is None or host.beat_at < min(heard) - max(STILL_S, max(heard) - min(heard)):
        return ""
    if host.forced_down:
        return f"host {host.name} was declared down, and is heard of: {to_lift(host.name)}"
    return f"host {host.name} is silent for less than {STILL_S:.0f} s"


def others_that_take(host: Host, hosts: Collection[Host]) -> list[Host]:
    """Return the peers of a failed host that can take its servers."""
    return [peer for peer in hosts if peer.name != host.name and peer.takes_servers]


def beat_text(beat_at: float | None) -> str:
    """Return the time of a heartbeat, for people; "" if unknown."""
    return "" if beat_at is None else f"{datetime.fromtimestamp(beat_at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def beat_of(beat_at: float | None, *, forced_down: bool) -> str:
    """Return a text that stays the same between looks at a host that is down: its last heartbeat."""
    return f"{DECLARED if forced_down else ''}{beat_text(beat_at) or 'never'}"


def has_beaten(before: str, now: str) -> bool:
    """Return whether the heartbeat of a host (`beat_of`) has changed between two looks."""
    # Declaring a host down updates its service record, which looks like a heartbeat.
    declared = now.startswith(DECLARED) and not before.startswith(DECLARED)
    return before != "" and before != now and not declared


def to_lift(name: str) -> str:
    """Return how the operator ends the state "declared down" of a host."""
    return f"its operator lifts that: openstack compute service set --up {name} nova-compute"
