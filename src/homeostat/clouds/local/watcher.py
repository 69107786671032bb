"""Change notices of the local cloud: deaths by pidfd, within milliseconds; changed records by polling.

What is seen to be gone takes its processes with it before the notice of it goes out, see `orphans.py`.

A change of a record touches the directory of its kind (`Tree.write`), as making and removing a thing does by itself. So
a poll costs one stat for each kind as long as nothing changes. Changes made by other means are found every few seconds.
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
"""Least and most seconds between polls of every single thing."""
ORPHANS_S = 60.0
"""Seconds between looks for processes without a directory, beyond those when a directory vanishes."""
_SHARE = 0.0005
"""Share of a core that polls of every single thing may use."""
FORWARDING = frozenset({"load_balancer", "floating_ip"})
"""Kinds whose processes report their state in a file beside the record."""
LIVING = FORWARDING | {"server"}
"""Kinds with processes."""

Signature = tuple[int, ...]


@dataclass(slots=True)
class Known:
    """State of a kind at the last poll.

    Attributes:
        directory: Signature of its directory; () where that must be read again.
        things: Name of a thing's directory -> signature of its record, () where it has none: it is just being made or
            removed, and its going altogether is another change.
        reported: Name of a thing's directory -> signature of the state that its process reports.
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
        """Number of times that the things of a kind were read one by one."""

    def change_notices(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield everything that changes after the first poll; `stop()` is called every half a second."""
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
        """Things whose deaths are noticed at once."""
        return set(self._lives.values())

    def close(self) -> None:
        while self._lives:
            os.close(self._lives.popitem()[0])

    def _whole_look(self) -> tuple[list[ChangeNotice], float]:
        """Poll every single thing; return the changes, and the seconds to the next time, which grow with the cost."""
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
        """Return whether a process that is followed lives on, while the directory of its thing has just vanished."""
        gone = {each for each in changed if each.kind in LIVING and not self._is_there(each)}
        if not gone:
            return False
        dead = {descriptor for descriptor, _ in self._poll.poll(0)}
        return any(notice in gone for descriptor, notice in self._lives.items() if descriptor not in dead)

    def _is_there(self, notice: ChangeNotice) -> bool:
        name = os.path.basename(self._tree.directory(notice.kind, notice.handle))
        return name in self._known[notice.kind].things

    def _end_orphans(self) -> None:
        try:
            end_orphans(self._tree, LIVING)
        except Transient as error:
            LOG.warning("processes whose directory is gone are looked for again in %.0f s: %s", ORPHANS_S, error)

    def look(self, whole: bool = False) -> list[ChangeNotice]:
        """Return what changed since the last poll, and follow new processes from now on.

        While the cloud's directory is away, nothing counts as changed.

        Args:
            whole: Read every single thing; otherwise only those of kinds whose directory was touched.
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
        """Poll one kind; the result is `known` itself if nothing was touched.

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
        # A directory that was touched just now may be touched again with the same time stamp: read it again next time.
        is_racy = time.time_ns() - directory[1] < RACY_S * 1e9
        return Known(() if is_racy else directory, things, reported)

    def _parts_of(self, notice: ChangeNotice) -> Iterator[ChangeNotice]:
        """Yield notices for the parts of a load balancer, whose states are reported with it and not with the parts."""
        if notice.kind == "load_balancer":
            reported = forwarder_files.state(self._tree.directory(notice.kind, notice.handle))
            yield from (ChangeNotice("listener", id) for id in reported.get("listeners", ()))
            yield from (ChangeNotice("pool_member", id) for id in reported.get("members", ()))

    def _newly_dead(self, kind: str, now: Known, watched: set[ChangeNotice]) -> list[ChangeNotice]:
        """Follow the processes that are not followed yet; return those that ended at this very moment."""
        if kind not in LIVING:
            return []
        new = [each for name in now.things if (each := ChangeNotice(kind, unquote(name))) not in watched]
        return [each for each in new if not self._follow(each)]

    def _follow(self, notice: ChangeNotice) -> bool:
        """Follow the process of a thing, if it has one; return False if it died at this very moment."""
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
            return True  # too many open files: the death of this guest is noticed by a later observation only
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
