"""What a list of hosts says about one of them: that it is down, or that who keeps the list does not see (ADR 0093).

Hosts are heard of by way of a control plane. Where that pauses, hosts that work are called down: all of them, and for a
while those that come back last. So a host counts as down only beside others that are heard of.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

UP, DOWN, ENABLED = "up", "down", "enabled"
STILL_S = 20.0
"""Seconds for which a host has to stand still, after all that are heard of, until it counts as down."""
LOOKS = 3
"""Looks in a row that have to find it down, with the same beat."""
AFTER_BLIND_S = 90.0
"""Seconds instead of `STILL_S` after a moment in which nothing was seen: hosts come back one by one, and one that waits
for an answer of the control plane does so for a minute."""
DECLARED = "declared down, "
AT_ONCE_S = 300.0
"""Hosts that went silent within so many seconds did so at once; one that is silent longer says nothing of others."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of servers, as who keeps the list shows it.

    Attributes:
        name: Its name.
        state: Whether it is heard of: up or down.
        status: Whether it takes new servers: enabled or disabled.
        beat_at: When it was heard of last, in seconds since the epoch by the clock of the list; None if unknown.
        forced_down: Whether it was declared down, so that its state says nothing.
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
    """Return when any of these hosts was heard of last; None if that is unknown."""
    return max((each.beat_at for each in hosts if each.beat_at is not None), default=None)


def blindness(hosts: Collection[Host]) -> str:
    """Return why nothing is seen of any host, as far as this list tells; "" where it sees.

    What was declared down counts for neither side: that may be our own doing.
    """
    counted = [each for each in hosts if not each.forced_down]
    silent = _silent_at_once(counted)
    heard = sum(each.is_heard_of for each in counted)
    if len(silent) <= heard:
        return ""
    many = f"{len(silent)} of {len(silent) + heard} hosts went silent at once"
    return f"{many}, which is more likely a control plane that does not hear of them"


def _silent_at_once(hosts: Collection[Host]) -> list[Host]:
    newest = newest_beat(hosts)
    silent = [each for each in hosts if not each.is_heard_of]
    return [each for each in silent if newest is None or each.beat_at is None or each.beat_at >= newest - AT_ONCE_S]


def doubt(host: Host, hosts: Collection[Host]) -> str:
    """Return why it is not believed that a host is down which is called so; "" where it may be.

    Args:
        host: The host.
        hosts: All that the same list shows.
    """
    if host.is_heard_of:
        return ""
    blind = blindness(hosts)
    if blind:
        return blind
    heard = [each.beat_at for each in hosts if each.is_heard_of and each.beat_at is not None and each.name != host.name]
    if not heard or host.beat_at is None or host.beat_at < min(heard) - max(STILL_S, max(heard) - min(heard)):
        return ""
    if host.forced_down:
        return f"host {host.name} was declared down, and is heard of: {to_lift(host.name)}"
    return f"host {host.name} is silent for less than {STILL_S:.0f} s"


def others_that_take(host: Host, hosts: Collection[Host]) -> list[Host]:
    """Return the other hosts that can take servers of one that is down."""
    return [each for each in hosts if each.name != host.name and each.takes_servers]


def beat_text(beat_at: float | None) -> str:
    """Return the time of a beat, for people; "" where it is unknown."""
    return "" if beat_at is None else f"{datetime.fromtimestamp(beat_at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def beat_of(beat_at: float | None, *, forced_down: bool) -> str:
    """Return what is to stand still between looks at a host that is called down."""
    return f"{DECLARED if forced_down else ''}{beat_text(beat_at) or 'never'}"


def has_beaten(before: str, now: str) -> bool:
    """Return whether a host has beaten between two looks, which have found these beats.

    To declare a host down is a change of its service, too, and looks like a beat.
    """
    declared = now.startswith(DECLARED) and not before.startswith(DECLARED)
    return before != "" and before != now and not declared


def to_lift(name: str) -> str:
    """Return who has to say that a host is no longer down, and how."""
    return f"its operator lifts that: openstack compute service set --up {name} nova-compute"
