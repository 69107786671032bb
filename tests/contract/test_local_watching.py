"""What the watcher of the local cloud finds, and what it does not have to look at for that."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.waiting import until

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.local import tree as trees
from homeostat.clouds.local.watcher import Watcher
from homeostat.clouds.port import Change, ChangeNotice, Creation, Operation
from homeostat.model.observed import Observation, Presence

LOOKS = 40
"""Those of ten seconds."""


def made(cloud: LocalCloud, kind: str, token: str, **spec: Any) -> str:
    (answer,) = cloud.create(kind, [Creation(token, spec)])
    assert isinstance(answer, Observation), repr(answer)
    return answer.handle


def server(cloud: LocalCloud, name: str = "web") -> str:
    return made(cloud, "server", name, name=name, image="cirros", flavor="m1.tiny")


@contextlib.contextmanager
def watching(cloud: LocalCloud, root: Path) -> Iterator[Watcher]:
    """A watcher that has seen what there is, long enough ago to believe the time stamps."""
    tree = trees.Tree(root)
    tree.recognise()
    watcher = Watcher(tree, sorted(cloud.kinds))
    now = time.time() - 60.0
    for kind in cloud.kinds:
        os.utime(root / f"{kind}s", (now, now))
    watcher.look()
    yield watcher
    watcher.close()


def test_while_nothing_changes_no_thing_is_looked_at(cloud: LocalCloud, root: Path) -> None:
    """Whatever there is: a look costs one stat a kind."""
    server(cloud)
    for number in range(20):
        made(cloud, "volume", f"token{number}", name=f"disk{number}", size=1)
    with watching(cloud, root) as watcher:
        listed = watcher.listed
        assert [observation for _ in range(LOOKS) for observation in watcher.look()] == []
        assert watcher.listed == listed
        watcher.look(whole=True)
        assert watcher.listed == listed + len(cloud.kinds)


def test_a_change_has_the_things_of_its_kind_looked_at(cloud: LocalCloud, root: Path) -> None:
    disk = made(cloud, "volume", "token", name="disk", size=1)
    with watching(cloud, root) as watcher:
        listed = watcher.listed
        cloud.update("volume", [Change(disk, {"name": "renamed", "size": 1})])
        assert watcher.look() == [ChangeNotice("volume", disk)]
        assert watcher.listed == listed + 1
        another = made(cloud, "volume", "another", name="another", size=1)
        assert watcher.look() == [ChangeNotice("volume", another)]
        cloud.delete("volume", [disk])
        assert watcher.look() == [ChangeNotice("volume", disk)]


def test_two_changes_within_one_tick_of_the_clock_of_the_file_system_are_both_seen(
    cloud: LocalCloud, root: Path
) -> None:
    disk = made(cloud, "volume", "token", name="disk", size=1)
    with watching(cloud, root) as watcher:
        cloud.update("volume", [Change(disk, {"name": "once", "size": 1})])
        # However long this machine takes for the looks, the change was made just now.
        touched = time.time_ns() + 3600 * 10**9
        os.utime(root / "volumes", ns=(touched, touched))
        assert watcher.look() == [ChangeNotice("volume", disk)]
        cloud.update("volume", [Change(disk, {"name": "twice", "size": 1})])
        os.utime(root / "volumes", ns=(touched, touched))
        assert watcher.look() == [ChangeNotice("volume", disk)]


def test_what_is_changed_behind_the_back_of_the_cloud_is_found_by_a_whole_look(cloud: LocalCloud, root: Path) -> None:
    disk = made(cloud, "volume", "token", name="disk", size=1)
    with watching(cloud, root) as watcher:
        (root / "volumes" / disk / "thing.json").write_text("torn")
        assert watcher.look() == []
        assert watcher.look(whole=True) == [ChangeNotice("volume", disk)]


def test_the_end_of_a_removal_is_seen_as_well_as_its_beginning(cloud: LocalCloud, root: Path) -> None:
    """A user removes a directory with everything in it. In the middle of that the thing is neither there nor absent."""
    disk = made(cloud, "volume", "token", name="disk", size=1)
    with watching(cloud, root) as watcher:
        directory = trees.Tree(root).directory("volume", disk)
        (Path(directory) / trees.THING).unlink()
        assert watcher.look(whole=True) == [ChangeNotice("volume", disk)]
        (unsure,) = cloud.observe("volume", [disk])
        assert unsure.presence is Presence.UNKNOWN
        shutil.rmtree(directory)
        assert watcher.look() == [ChangeNotice("volume", disk)]
        assert watcher.look() == []
        (gone,) = cloud.observe("volume", [disk])
        assert gone.presence is Presence.ABSENT


def test_a_new_life_is_followed_from_its_first_look_on(cloud: LocalCloud, root: Path) -> None:
    old = server(cloud, "old")
    with watching(cloud, root) as watcher:
        assert watcher.followed == {ChangeNotice("server", old)}
        new = server(cloud, "new")
        watcher.look()
        assert watcher.followed == {ChangeNotice("server", old), ChangeNotice("server", new)}
        for id in (old, new):
            os.kill(cloud.observe("server", [id])[0].properties["pid"], signal.SIGKILL)
        dead: list[ChangeNotice] = []

        def both() -> bool:
            dead.extend(watcher.deaths(0.1))
            return len(dead) == 2

        until(both)
        assert set(dead) == {ChangeNotice("server", old), ChangeNotice("server", new)}
        cloud.operate("server", [Operation(old, "start", {})])
        watcher.look()
        assert watcher.followed == {ChangeNotice("server", old)}


def test_what_a_process_reports_is_seen_though_no_record_changes(cloud: LocalCloud, root: Path) -> None:
    network = made(cloud, "network", "net", name="net")
    subnet = made(cloud, "subnet", "subnet", name="subnet", network_id=network, cidr="10.9.0.0/24", ip_version=4)
    balancer = made(cloud, "load_balancer", "lb", name="lb", vip_subnet=subnet)
    state = root / "load_balancers" / balancer / "state.json"
    until(state.exists)
    with watching(cloud, root) as watcher:
        watcher.look()
        state.write_text('{"listeners": {"l": "broken"}, "members": {}}')
        assert ChangeNotice("load_balancer", balancer) in watcher.look()
