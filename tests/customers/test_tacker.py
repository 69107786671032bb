"""Tacker's own driver leads a network function through its life: the right servers, and the healthy ones kept."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import installed
from tests.customers.tempest import PASSWORD
from tests.openstack.running import OpenStack

LIFECYCLE = Path(__file__).with_name("tacker_lifecycle.py")
PACKAGE = "samples/tests/functional/sol_v2_common/test_instantiate_vnf_with_old_image_or_volume/contents"
"""A sample of Tacker: a scaling group of one to three servers VDU1, and a server VDU2 with a fixed address."""
CIDRS = {"net0": "10.10.0.0/24", "net1": "10.10.1.0/24"}
GROUPED = "VDU1"


@pytest.fixture
def networks(openstack_cloud: OpenStack) -> Iterator[dict[str, str]]:
    """The networks that the function is connected to, by name."""
    made: dict[str, str] = {}
    with contextlib.closing(openstack_cloud.user()) as user, contextlib.ExitStack() as ends:
        network: Any = user.network
        for name, cidr in CIDRS.items():
            made[name] = network.create_network(name=name).id
            ends.callback(network.delete_network, made[name])
            network.create_subnet(network_id=made[name], name=name, ip_version=4, cidr=cidr)
        yield made


@pytest.mark.usefixtures("service_url")
def test_a_function_lives_with_the_right_servers(
    openstack_cloud: OpenStack, networks: dict[str, str], tmp_path: Path
) -> None:
    place = installed("tacker", "source/samples")
    given = {
        "auth_url": openstack_cloud.auth_url,
        "package": str(place / "source" / PACKAGE),
        "networks": networks,
        "access": {"username": "demo", "project": "demo", "password": PASSWORD},
    }
    reported: dict[str, dict[str, str]] = {}
    live: dict[str, set[str]] = {}
    with (tmp_path / "tacker.log").open("w+") as log, contextlib.closing(openstack_cloud.user()) as user:
        others = _live(user)
        command = [str(place / "bin/python"), "-u", str(LIFECYCLE)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(given))
            process.stdin.close()
            for line in process.stdout:
                found = json.loads(line)
                reported[found["reported"]], live[found["reported"]] = found["servers"], _live(user) - others
        log.seek(0)
        assert process.returncode == 0, log.read()
    _check(reported)
    for step in ("scaled out", "scaled in", "terminated"):
        assert live[step] == set(reported[step]), step


def _live(user: Any) -> set[str]:
    return {each.id for each in user.compute.servers() if each.status == "ACTIVE"}


def _check(reported: dict[str, dict[str, str]]) -> None:
    """Check which servers each operation has kept, made and removed."""
    first, out, less = (set(reported[step]) for step in ("instantiated", "scaled out", "scaled in"))
    more, healed = set(reported["scaled out again"]), set(reported["one healed"])
    elsewhere, anew = set(reported["connected elsewhere"]), set(reported["all healed"])
    assert first < out
    assert less < out
    assert less < more
    assert len(out) == len(first) + 1 == len(less) + 1 == len(more)
    (gone,) = more - healed
    assert reported["scaled out again"][gone] == GROUPED
    assert len(healed) == len(elsewhere) == len(anew) == len(more)
    # A function that is healed as a whole is deleted and made again.
    assert not elsewhere & anew
    assert not reported["terminated"]
