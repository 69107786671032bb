"""Processes of the local cloud whose directory a user has removed by hand, and those whose directory is only away."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.component.running import Service
from tests.contract.local_things import Watching, alive, operated, seen, server
from tests.contract.test_local_absence import WAYS, back
from tests.waiting import until

from homeostat.clouds.local import LocalCloud, processes
from homeostat.clouds.local import tree as trees
from homeostat.clouds.local.orphans import end_orphans
from homeostat.clouds.local.watcher import LIVING
from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Transient

SCRIPT = """#!/bin/sh
setsid sleep 1000 &
env -i sleep 1000 &
exec sleep 1000
"""
STARTED = 4
"""Processes of such a server, with its guest."""
SLEEPING = b"sleep\x001000\x00"
"""Command of all of them but the guest."""

Started = Callable[[str], list[int]]


@pytest.fixture
def started(root: Path) -> Iterator[Started]:
    """What waits until all processes of a new server are there, and returns them; whatever is left of them ends."""
    descriptors: list[int] = []

    def all_of(handle: str) -> list[int] | None:
        found = belonging(root, handle)
        return found if len(found) == STARTED and [*map(command, found)].count(SLEEPING) == STARTED - 1 else None

    def wait(handle: str) -> list[int]:
        pids = until(lambda: all_of(handle), "all processes to be there")
        descriptors.extend(map(os.pidfd_open, pids))
        return pids

    yield wait
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


def belonging(root: Path, handle: str) -> list[int]:
    directory = str(root / "servers" / handle)
    return processes.belonging([directory])[directory]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def opened(root: Path) -> trees.Tree:
    tree = trees.Tree(root)
    tree.recognise()
    return tree


def removed(root: Path, handle: str) -> None:
    shutil.rmtree(root / "servers" / handle)


def none_of(pids: list[int]) -> bool:
    return not any(map(alive, pids))


@pytest.mark.parametrize("state", ["running", "paused", "suspended"])
def test_the_processes_of_a_server_end_with_its_directory(
    cloud: LocalCloud, root: Path, started: Started, state: str
) -> None:
    gone, kept = server(cloud, "gone", SCRIPT).handle, server(cloud, "kept", SCRIPT).handle
    pids, others = started(gone), started(kept)
    if state != "running":
        operated(cloud, "server", gone, {"paused": "pause", "suspended": "suspend"}[state])
    with Watching(cloud):
        removed(root, gone)
        until(lambda: none_of(pids), "the processes to end")
    assert all(map(alive, others))


def test_what_has_outlived_its_guest_ends_with_the_directory_too(
    cloud: LocalCloud, root: Path, started: Started
) -> None:
    handle = server(cloud, "web", SCRIPT).handle
    pids = started(handle)
    guest = seen(cloud, "server", handle)["pid"]
    os.kill(guest, signal.SIGKILL)
    until(lambda: not alive(guest), "the guest to die")
    daemons = belonging(root, handle)
    assert daemons
    assert set(daemons) < set(pids)
    removed(root, handle)
    end_orphans(opened(root), LIVING)
    until(lambda: none_of(daemons), "the processes to end")


def test_what_was_removed_while_no_service_ran_ends_when_one_does(
    cloud: LocalCloud, root: Path, started: Started
) -> None:
    handle = server(cloud, "web", SCRIPT).handle
    pids = started(handle)
    removed(root, handle)
    with Watching(cloud):
        until(lambda: none_of(pids), "the processes to end")


@pytest.mark.parametrize("go", WAYS, ids=lambda go: str(go.__name__))
def test_processes_run_on_while_the_directory_of_the_cloud_is_away(
    cloud: LocalCloud, root: Path, started: Started, go: Callable[[Path], None]
) -> None:
    handle = server(cloud, "web", SCRIPT).handle
    pids, tree = started(handle), opened(root)
    go(root)
    with pytest.raises(Transient, match="is away"):
        end_orphans(tree, LIVING)
    assert all(map(alive, pids))
    back(root)
    end_orphans(tree, LIVING)
    assert all(map(alive, pids))
    assert seen(cloud, "server", handle)["status"] == "active"


def test_processes_of_a_server_that_was_moved_run_on_until_it_is_removed(
    cloud: LocalCloud, root: Path, started: Started
) -> None:
    handle = server(cloud, "web", SCRIPT).handle
    pids, tree, place = started(handle), opened(root), root / "servers" / handle
    place.rename(root.with_name("elsewhere"))
    end_orphans(tree, LIVING)
    assert all(map(alive, pids))
    root.with_name("elsewhere").rename(place)
    assert seen(cloud, "server", handle)["pid"] in pids
    place.rename(root.with_name("elsewhere"))
    shutil.rmtree(root.with_name("elsewhere"))
    end_orphans(tree, LIVING)
    until(lambda: none_of(pids), "the processes to end")


def test_a_directory_without_a_record_is_there(cloud: LocalCloud, root: Path, started: Started) -> None:
    handle = server(cloud, "web", SCRIPT).handle
    pids = started(handle)
    (root / "servers" / handle / trees.THING).unlink()
    end_orphans(opened(root), LIVING)
    assert all(map(alive, pids))


def test_the_processes_of_a_server_that_healing_has_replaced_end(
    cloud: LocalCloud, root: Path, started: Started
) -> None:
    service = Service(cloud=lambda clock: cast(SimulatedCloud, cloud))
    properties = {"image": "cirros", "flavor": "m1.tiny", "user_data_format": "RAW", "user_data": SCRIPT}
    stack_id = service.create({"web": {"type": "OS::Nova::Server", "properties": properties}})
    service.rest()
    before = service.row(stack_id, "web").handle
    pids = started(before)
    removed(root, before)
    service.observer.notice([ChangeNotice("server", before)])
    service.live(60.0)
    service.rest()
    after = service.row(stack_id, "web").handle
    assert after != before
    others = started(after)
    with Watching(cloud):
        until(lambda: none_of(pids), "the processes to end")
    assert all(map(alive, others))
