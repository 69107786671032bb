"""Notices of the local cloud: deaths by pidfd, within milliseconds; changed records by looking again."""

import errno
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

from homeostat.clouds.local import forwarding, processes
from homeostat.clouds.local.tree import THING, Tree
from homeostat.clouds.port import Sighting
from homeostat.model.errors import Transient

_SCAN_S = 0.25
_SCAN_S_MAX = 0.5
_SHARE = 0.002
"""Of a core that looking may use."""
LIVING = frozenset({"server", "load_balancer", "floating_ip"})

Signature = tuple[int, ...]


def _pause_s(cost_s: float) -> float:
    """Until the next look, after one that took so much time of a core."""
    return min(max(_SCAN_S, cost_s / _SHARE), _SCAN_S_MAX)


class Watcher:
    """Looks at the tree every quarter of a second, a large one less often; in between it sleeps in poll(2) until some
    guest dies."""

    def __init__(self, tree: Tree, kinds: Sequence[str]) -> None:
        self._tree = tree
        self._kinds = kinds
        self._poll = select.poll()
        self._known: dict[Sighting, Signature] = {}
        self._lives: dict[int, Sighting] = {}
        """By pidfd."""

    def sightings(self, stop: Callable[[], bool]) -> Iterator[Sighting]:
        """Everything that changes after the first look; `stop()` is asked every quarter of a second."""
        try:
            began = time.thread_time()
            self.look()
            while not stop():
                deadline = time.monotonic() + _pause_s(time.thread_time() - began)
                while (left := deadline - time.monotonic()) > 0 and not stop():
                    yield from self._deaths(min(left, _SCAN_S))
                began = time.thread_time()
                yield from self.look()
        finally:
            for descriptor in self._lives:
                os.close(descriptor)

    def _deaths(self, within_s: float) -> list[Sighting]:
        dead = []
        for descriptor, _ in self._poll.poll(within_s * 1000):
            self._poll.unregister(descriptor)
            os.close(descriptor)
            dead.append(self._lives.pop(descriptor))
        return dead

    def look(self) -> list[Sighting]:
        """What changed since the last look; new lives are watched from now on. While the cloud's directory is away,
        nothing is known to have changed."""
        try:
            now = dict(self._present())
        except Transient:
            return []
        changed = [sighting for sighting in {**self._known, **now} if self._known.get(sighting) != now.get(sighting)]
        changed += [part for sighting in changed for part in self._told_of(sighting)]
        self._known = now
        watched = set(self._lives.values())
        unwatched = [sighting for sighting in now if sighting.kind in LIVING and sighting not in watched]
        return changed + [sighting for sighting in unwatched if not self._follow(sighting)]

    def _present(self) -> Iterator[tuple[Sighting, Signature]]:
        for kind in self._kinds:
            for name in self._tree.names(kind):
                path = f"{self._tree.root}/{kind}s/{name}"
                signature = _signature(f"{path}/{THING}")
                told = _signature(f"{path}/{forwarding.STATE}") if kind in LIVING else ()
                if signature:
                    yield Sighting(kind, unquote(name)), (*signature, *told)

    def _told_of(self, sighting: Sighting) -> Iterator[Sighting]:
        """What a load balancer's process tells of: its state stands beside it, not beside its parts."""
        if sighting.kind == "load_balancer":
            told = forwarding.state(self._tree.directory(sighting.kind, sighting.handle))
            yield from (Sighting("listener", id) for id in told.get("listeners", ()))
            yield from (Sighting("pool_member", id) for id in told.get("members", ()))

    def _follow(self, sighting: Sighting) -> bool:
        """False when its guest died at this very moment."""
        alive = processes.life(self._tree.directory(sighting.kind, sighting.handle))
        if alive is None:
            return True
        try:
            descriptor = os.pidfd_open(alive.pid)
        except ProcessLookupError:
            return False
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            return True  # more guests than this process may have files open: this one's death is not noticed at once
        self._lives[descriptor] = sighting
        self._poll.register(descriptor, select.POLLIN)
        return True


def _signature(path: str) -> Signature:
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
