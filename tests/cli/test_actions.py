"""Observe, converge, check and the switches of convergence, run as processes against a real service."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.clouds.local import LocalCloud
from tests.cli.conftest import Ended, Home, home_below
from tests.waiting import until

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  server: {type: OS::Nova::Server, properties: {image: local, flavor: m1.nano}}
"""


def ok(ended: Ended) -> Ended:
    assert ended.code == 0, f"{ended.out}\n{ended.err}"
    return ended


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, homeostat_program: Path) -> Iterator[Home]:
    """A service on the local cloud with a stack of one server, a real process."""
    directory = tmp_path_factory.mktemp("asks")
    (directory / "one.yaml").write_text(TEMPLATE)
    with home_below(directory, homeostat_program) as found:
        ok(found.run("serve", "--detach", "--port", "0"))
        ok(found.run("up", str(directory / "one.yaml"), "one"))
        yield found


def _pid(home: Home) -> int:
    """Of the server's process; 0 while it has none."""
    cloud = LocalCloud(home.state.cloud)
    try:
        (handle,) = [each["physical_resource_id"] for each in ok(home.run("show", "one", "--json")).json()["resources"]]
        return int(cloud.observe("server", [handle])[0].properties.get("pid") or 0)
    finally:
        cloud.close()


def state_of(home: Home) -> str:
    return str(ok(home.run("show", "one", "--json")).json()["stack"]["stack_status"])


@pytest.mark.heavy
def test_a_dead_server_is_left_alone_seen_checked_and_brought_back_by_hand(local: Home) -> None:
    off = ok(local.run("convergence", "one", "--off", "--look-every", "never"))
    assert "no" in off.out
    assert "only on request" in off.out
    os.kill(_pid(local), signal.SIGKILL)
    seen = ok(local.run("observe", "one"))
    assert "1 is not as it should be" in seen.out
    assert ok(local.run("observe", "one", "server", "--json")).json()["resources"][0]["observed"]["left_alone"]
    checked = local.run("check", "one")
    assert checked.code == 1
    assert "CHECK_FAILED" in checked.err
    back = ok(local.run("converge", "one", "server"))
    assert "server is" in back.out
    assert "0 are not as they should be" in ok(local.run("observe", "one")).out
    assert "CHECK_COMPLETE" in ok(local.run("check", "one")).out
    ok(local.run("converge", "one"))
    assert state_of(local) == "UPDATE_COMPLETE"
    on = ok(local.run("convergence", "one", "--on", "--look-every", "default", "--json")).json()["convergence"]
    assert (on["enabled"], on["observe_interval"]) == (True, None)
    pid = _pid(local)
    os.kill(pid, signal.SIGKILL)
    until(lambda: _pid(local) not in (0, pid))


def test_one_resource_differs(local: Home) -> None:
    ok(local.run("convergence", "one", "server", "--off", "--look-every", "10s"))
    shown = ok(local.run("convergence", "one", "--json")).json()["convergence"]
    assert shown["resources"] == {"server": {"enabled": False, "observe_interval": 10.0}}
    ok(local.run("convergence", "one", "server", "--same"))
    assert ok(local.run("convergence", "one", "--json")).json()["convergence"]["resources"] == {}


def test_wrong_words(local: Home, tmp_path: Path) -> None:
    assert local.run("convergence", "one", "--look-every", "often").code == 2
    assert local.run("convergence", "one", "--on", "--off").code == 2
    assert local.run("observe", "nothing").code == 1
    assert "nobody" in local.run("converge", "one", "nobody").err


def test_a_real_server_stands_still_while_its_stack_is_suspended_and_is_locked_with_it(local: Home) -> None:
    ok(local.run("convergence", "one", "--on", "--look-every", "default"))
    ok(local.run("converge", "one"))
    ok(local.run("suspend", "one"))
    assert state_of(local) == "SUSPEND_COMPLETE"
    assert Path(f"/proc/{_pid(local)}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    ok(local.run("resume", "one"))
    assert Path(f"/proc/{_pid(local)}/stat").read_text().rpartition(")")[2].split()[0] != "T"
    ok(local.run("lock", "one", "--reason", "disks are changed", "--expires-in", "1h"))
    assert state_of(local) == "LOCK_COMPLETE"
    refused = local.run("down", "one", "-y")
    assert refused.code != 0
    assert "disks are changed" in refused.err
    ok(local.run("unlock", "one"))
    assert state_of(local) == "UNLOCK_COMPLETE"
