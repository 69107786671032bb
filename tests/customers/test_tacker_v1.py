"""Tacker's driver for version 1 of its API, which scales by signals and heals by marks, leads a network function
through its life: the right servers, few calls."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.clients.conftest import installed
from tests.customers.functions import (
    CIDRS,
    GROUPED,
    SINGLE,
    Life,
    check_known,
    check_sent,
    healed_step,
    lived,
)
from tests.customers.tempest import PASSWORD
from tests.openstack.running import OpenStack
from tests.openstack.wire_log import WireLog

LIFECYCLE = Path(__file__).with_name("tacker_v1_lifecycle.py")
PACKAGE = "source/samples/tests/etc/samples/etsi/nfv/functional7"
"""A sample of Tacker: a group of one to three servers VDU1 and a group of one VDU2, each server with five ports."""
IMAGE = "cirros-0.5.2-x86_64-disk"
"""As the sample calls it."""
FIXED_ADDRESS = "10.10.1.101"
PORTS = 5
"""Of each server."""
OWN_NETWORKS = 3
"""Of the function, with a subnet each."""


@pytest.fixture
def user(openstack_cloud: OpenStack) -> Iterator[Connection]:
    """A member of a project, who has the image of the sample."""
    with contextlib.closing(openstack_cloud.user()) as found:
        image: Any = found.image.create_image(
            name=IMAGE, data=b"\0" * 1024, disk_format="raw", container_format="bare", allow_duplicates=True
        )
        yield found
        found.image.delete_image(image.id)


@pytest.mark.usefixtures("service_url")
def test_a_function_of_the_first_api_lives_with_the_right_servers(
    openstack_cloud: OpenStack, user: Connection, networks: dict[str, str], wire: WireLog, tmp_path: Path
) -> None:
    place = installed("tacker", "source/samples")
    network: Any = user.network
    given = {
        "package": str(place / PACKAGE),
        "networks": networks,
        "subnets": {name: network.find_subnet(name, network_id=id).id for name, id in networks.items()},
        "address": FIXED_ADDRESS,
        "access": {
            "auth_url": openstack_cloud.auth_url,
            "username": "demo",
            "password": PASSWORD,
            "project_name": "demo",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
    }
    life = lived([str(place / "bin/python"), "-u", str(LIFECYCLE)], given, user, wire, tmp_path)
    check_known(life)
    check_scaling(life)
    check_healing(life)
    check_connections(life)
    check_calls(life)


def check_scaling(life: Life) -> None:
    first, out, less, more, last = (
        life[step] for step in ("instantiated", "scaled out", "scaled in", "scaled out again", "newest scaled in")
    )
    assert [len(each.of(GROUPED)) for each in (first, out, less, more, last)] == [1, 2, 1, 2, 1]
    assert first.servers.items() < out.servers.items()
    # A signal takes the oldest, as upstream; what is marked goes first.
    assert less.servers.keys() == out.servers.keys() - first.of(GROUPED).keys()
    assert less.servers.items() < more.servers.items()
    assert last.servers == less.servers
    for step in life.values():
        assert all(FIXED_ADDRESS in server.addresses for server in step.of(SINGLE).values())


def check_healing(life: Life) -> None:
    """A server is made again on the same ports, with its addresses; the others stay."""
    before, healed = life["newest scaled in"], life[healed_step(life)]
    assert healed.of(SINGLE) == before.of(SINGLE)
    assert not healed.of(GROUPED).keys() & before.of(GROUPED).keys()
    assert list(healed.of(GROUPED).values()) == list(before.of(GROUPED).values())
    before, healed = life["connected elsewhere"], life["all healed"]
    assert not healed.servers.keys() & before.servers.keys()
    assert sorted(healed.servers.values()) == sorted(before.servers.values())
    assert not life["terminated"].servers


def check_connections(life: Life) -> None:
    """One of the ports of a server is on another network; the server is the same."""
    before, after = life[healed_step(life)], life["connected elsewhere"]
    assert after.parts == before.parts
    assert after.of(SINGLE) == before.of(SINGLE)
    (old,), (new,) = before.of(GROUPED).values(), after.of(GROUPED).values()
    assert [_count(each.addresses, "net0") for each in (old, new)] == [1, 0]
    assert [_count(each.addresses, "net1") for each in (old, new)] == [1, 2]


def _count(addresses: tuple[str, ...], network: str) -> int:
    return sum(each.startswith(CIDRS[network].removesuffix("0/24")) for each in addresses)


def check_calls(life: Life) -> None:
    """Compare the requests that may change something with those that upstream sends for the same.

    That follows from what each resource needs: one request makes a server, port, network, subnet or trust, and one
    deletes it. A server that is made anew: each port is taken from the old one, the new one made, the old one deleted.
    Another network: another port, which is attached, and the old one, which is detached and deleted.
    """
    member, again = 1 + PORTS, PORTS + 2
    all_of_it = 2 * member + 2 * OWN_NETWORKS + 1
    upstream = {
        "instantiated": all_of_it,
        "scaled out": member,
        "scaled in": member,
        "scaled out again": member,
        "newest scaled in": member,
        healed_step(life): again,
        "connected elsewhere": 4,
        "all healed": 2 * again,
        "terminated": all_of_it,
    }
    check_sent(life, upstream)
