"""Change notices of the local cloud: deaths by pidfd, within milliseconds; changed records by polling.

The processes of a vanished object are ended before the notice about it is sent, see `orphans.py`.

A change of a record touches the directory of its kind (`Tree.write`), as creation and removal do anyway. So a poll
costs one stat per kind as long as nothing changes. Changes by other means are found every few seconds.
"""

import errno
import logging
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from homeostat.clouds.local import forwarder_files, processes
from homeostat.clouds.local.orphans import end_orphans
from homeostat.clouds.local.tree import RACY_S, THING, Tree
from homeostat.clouds.port import ChangeNotice
from homeostat.model.errors import Transient

LOG = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between polls."""
WHOLE_LOOK_S, WHOLE_LOOK_S_MAX = 5.0, 60.0
"""Minimum and maximum seconds between polls of all objects."""
ORPHANS_S = 60.0
"""Seconds between scans for processes without a directory; vanished directories trigger a scan at once."""
_SHARE = 0.0005
"""Share of a core that polls of all objects may use."""
FORWARDING = frozenset({"load_balancer", "floating_ip"})
"""Kinds whose processes report their state in a file next to the record."""
LIVING = FORWARDING | {"server"}
"""Kinds with processes."""

Signature = tuple[int, ...]


@dataclass(slots=True)
class Known:
    """State of a kind at the last poll.

    Attributes:
        directory: Signature of its directory; () to read it again next time.
        things: Name of an object's directory -> signature of its record; () without a record, while the object is being
            created or removed, since its final removal is another change.
        reported: Name of an object's directory -> signature of the state reported by its process.
    """

    directory: Signature = ()
    things: dict[str, Signature] = field(default_factory=dict)
    reported: dict[str, Signature] = field(default_factory=dict)


class Watcher:
    """Watcher of a tree: it polls every half a second, and in between sleeps in poll(2) until a guest dies."""

    def __init__(self, tree: Tree, kinds: Sequence[str]) -> None:
        self._tree = tree
        self._paths = {kind: f"{tree.root}/{kind}s" for kind in kinds}
        self._poll = select.poll()
        self._known = {kind: Known() for kind in kinds}
        self._lives: dict[int, ChangeNotice] = {}
        """Pidfd of a living process -> its notice."""
        self.listed = 0
        """Number of times that the objects of a kind were read individually."""

    def change_notices(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield all changes after the first poll; `stop()` is called every half a second."""
        try:
            whole_at = time.monotonic() + self._whole_look()[1]
            orphans_at = time.monotonic()
            while not stop():
                yield from self.deaths(LOOK_S)
                if time.monotonic() < whole_at:
                    changed = self.look()
                else:
                    changed, pause_s = self._whole_look()
                    whole_at = time.monotonic() + pause_s
                if time.monotonic() >= orphans_at or self._outlived(changed):
                    self._end_orphans()
                    orphans_at = time.monotonic() + ORPHANS_S
                yield from changed
        finally:
            self.close()

    @property
    def followed(self) -> set[ChangeNotice]:
        """Objects whose deaths are noticed at once."""
        return set(self._lives.values())

    def close(self) -> None:
        while self._lives:
            os.close(self._lives.popitem()[0])

    def _whole_look(self) -> tuple[list[ChangeNotice], float]:
        """Poll all objects; return the changes, and the seconds until the next such poll, which grow with its cost."""
        began = time.thread_time()
        changed = self.look(whole=True)
        cost_s = time.thread_time() - began
        return changed, min(max(WHOLE_LOOK_S, cost_s / _SHARE), WHOLE_LOOK_S_MAX)

    def deaths(self, within_s: float) -> Iterator[ChangeNotice]:
        """Yield the deaths of followed processes as they happen within this time."""
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left * 1000):
                self._poll.unregister(descriptor)
                os.close(descriptor)
                yield self._lives.pop(descriptor)

    def _outlived(self, changed: Sequence[ChangeNotice]) -> bool:
        """Return whether a followed process lives, although the directory of its object has just vanished."""
        vanished = {notice for notice in changed if notice.kind in LIVING and not self._is_there(notice)}
        if not vanished:
            return False
        dead = {descriptor for descriptor, _ in self._poll.poll(0)}
        return any(notice in vanished for descriptor, notice in self._lives.items() if descriptor not in dead)

    def _is_there(self, notice: ChangeNotice) -> bool:
        name = os.path.basename(self._tree.directory(notice.kind, notice.handle))
        return name in self._known[notice.kind].things

    def _end_orphans(self) -> None:
        try:
            end_orphans(self._tree, LIVING)
        except Transient as error:
            LOG.warning("processes whose directory is gone are looked for again in %.0f s: %s", ORPHANS_S, error)

    def look(self, whole: bool = False) -> list[ChangeNotice]:
        """Return the changes since the last poll, and follow new processes from now on.

        While the cloud's directory is away, nothing counts as changed.

        Args:
            whole: Read all objects; otherwise only objects of kinds whose directory was touched.
        """
        try:
            looks = {kind: self._look_at(kind, known, whole) for kind, known in self._known.items()}
        except Transient:
            return []
        watched = self.followed
        changed = []
        for kind, now in looks.items():
            before = self._known[kind]
            if now is not before:
                self._known[kind] = now
                changed += _differing(kind, before, now)
                changed += self._newly_dead(kind, now, watched)
        return changed + [part for notice in changed for part in self._parts_of(notice)]

    def _look_at(self, kind: str, known: Known, whole: bool) -> Known:
        """Poll a kind; the result is `known` itself if nothing was touched.

        Raises:
            Transient: The directory of the kind is away.
        """
        path = self._paths[kind]
        directory = _signature(path)
        if not directory:
            raise Transient(f"{path} is away")
        reported = {name: _signature(f"{path}/{name}/{forwarder_files.STATE}") for name in known.reported}
        if not whole and directory == known.directory and reported == known.reported:
            return known
        self.listed += 1
        names = self._tree.names(kind)
        things = {name: _signature(f"{path}/{name}/{THING}") for name in names}
        if kind in FORWARDING:
            reported = {name: _signature(f"{path}/{name}/{forwarder_files.STATE}") for name in names}
        # A directory touched just now may be touched again with the same time stamp: read it again next time.
        is_racy = time.time_ns() - directory[1] < RACY_S * 1e9
        return Known(() if is_racy else directory, things, reported)

    def _parts_of(self, notice: ChangeNotice) -> Iterator[ChangeNotice]:
        """Yield notices for the parts of a load balancer, whose states are in the load balancer's report."""
        if notice.kind == "load_balancer":
            reported = forwarder_files.state(self._tree.directory(notice.kind, notice.handle))
            yield from (ChangeNotice("listener", id) for id in reported.get("listeners", ()))
            yield from (ChangeNotice("pool_member", id) for id in reported.get("members", ()))

    def _newly_dead(self, kind: str, now: Known, watched: set[ChangeNotice]) -> list[ChangeNotice]:
        """Follow new processes; return the objects whose process ended at this very moment."""
        if kind not in LIVING:
            return []
        new = [notice for name in now.things if (notice := ChangeNotice(kind, unquote(name))) not in watched]
        return [notice for notice in new if not self._follow(notice)]

    def _follow(self, notice: ChangeNotice) -> bool:
        """Follow the process of an object, if any; return False if the process died at this very moment."""
        alive = processes.life(self._tree.directory(notice.kind, notice.handle))
        if alive is None:
            return True
        try:
            descriptor = os.pidfd_open(alive.pid)
        except ProcessLookupError:
            return False
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            return True  # too many open files: the death of this guest is noticed only by a later observation
        self._lives[descriptor] = notice
        self._poll.register(descriptor, select.POLLIN)
        return True


def _differing(kind: str, before: Known, now: Known) -> list[ChangeNotice]:
    return [
        ChangeNotice(kind, unquote(name))
        for name in {**before.things, **now.things}
        if before.things.get(name) != now.things.get(name) or before.reported.get(name) != now.reported.get(name)
    ]


def _signature(path: str) -> Signature:
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size, stat.st_dev
