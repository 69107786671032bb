"""Tacker's own driver leads a network function through its life: the right servers, few calls."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import installed
from tests.customers.functions import CIDRS, GROUPED, HEALED, SINGLE, Life, check_known, check_sent, healed_step, lived
from tests.customers.tempest import PASSWORD
from tests.openstack.running import OpenStack
from tests.openstack.wire_log import WireLog

LIFECYCLE = Path(__file__).with_name("tacker_lifecycle.py")
SAMPLES = "source/samples/tests/functional/sol_v2_common"
PACKAGE = f"{SAMPLES}/test_instantiate_vnf_with_old_image_or_volume/contents"
"""A sample of Tacker: a scaling group of one to three servers VDU1, and a server VDU2 with a fixed address."""
NEW_PACKAGE = f"{SAMPLES}/test_change_vnf_pkg_with_new_image/contents"
"""What it is changed to: the same with another image."""
IMAGE, NEW_IMAGE = "mini", "mini-2"
FIXED_ADDRESS = "10.10.0.101"


@pytest.fixture
def images(openstack_cloud: OpenStack) -> Iterator[dict[str, str]]:
    """The ids of the images of both packages, by name."""
    with contextlib.closing(openstack_cloud.user()) as user:
        image: Any = user.image
        new = user.image.create_image(
            name=NEW_IMAGE, data=b"\0" * 1024, disk_format="raw", container_format="bare", allow_duplicates=True
        )
        yield {IMAGE: image.find_image(IMAGE).id, NEW_IMAGE: new.id}
        image.delete_image(new.id)


@pytest.mark.usefixtures("service_url")
def test_a_function_lives_with_the_right_servers(
    openstack_cloud: OpenStack, networks: dict[str, str], images: dict[str, str], wire: WireLog, tmp_path: Path
) -> None:
    place = installed("tacker", "source/samples")
    given = {
        "auth_url": openstack_cloud.auth_url,
        "package": str(place / PACKAGE),
        "new_package": str(place / NEW_PACKAGE),
        "image": images[IMAGE],
        "new_image": images[NEW_IMAGE],
        "networks": networks,
        "access": {"username": "demo", "project": "demo", "password": PASSWORD},
    }
    with contextlib.closing(openstack_cloud.user()) as user:
        life = lived([str(place / "bin/python"), "-u", str(LIFECYCLE)], given, user, wire, tmp_path)
    check_known(life)
    check_scaling(life)
    check_healing(life)
    check_package(life, images)
    check_connections(life, networks)
    check_ends(life)
    check_calls(life)


def check_scaling(life: Life) -> None:
    first, out, less, more = (life[step] for step in ("instantiated", "scaled out", "scaled in", "scaled out again"))
    # Who stays is the same server with the same addresses; scaling in takes the newest, which Tacker has named.
    assert first.servers.items() < out.servers.items()
    assert less.servers == first.servers
    assert less.servers.items() < more.servers.items()
    assert len(out.servers) == len(first.servers) + 1 == len(more.servers)
    for step in (first, out, less, more):
        ((_, server),) = step.of(SINGLE).items()
        assert server.addresses == (FIXED_ADDRESS,)


def check_healing(life: Life) -> None:
    ((name, healed),) = [(name, step) for name, step in life.items() if name.startswith(HEALED)]
    before, gone = life["scaled out again"], name.removeprefix(HEALED)
    assert before.parts[gone] == GROUPED
    assert before.servers.keys() - healed.servers.keys() == {gone}
    (new,) = healed.servers.keys() - before.servers.keys()
    assert healed.servers[new] == before.servers[gone], "it has taken over the port"
    assert {**before.servers, new: before.servers[gone]}.items() >= healed.servers.items()


def check_package(life: Life, images: Mapping[str, str]) -> None:
    """The servers are built again, each in its place."""
    before, after = life[healed_step(life)], life["of another package"]
    assert {each.image for each in before.servers.values()} == {images[IMAGE]}
    assert after.servers == {name: each._replace(image=images[NEW_IMAGE]) for name, each in before.servers.items()}


def check_connections(life: Life, networks: Mapping[str, str]) -> None:
    before, after = life["of another package"], life["connected elsewhere"]
    assert after.parts == before.parts
    assert after.of(SINGLE) == before.of(SINGLE)
    prefix = CIDRS["net1"].removesuffix("0/24")
    assert all(one.startswith(prefix) for each in after.of(GROUPED).values() for one in each.addresses)


def check_ends(life: Life) -> None:
    """A function that is healed as a whole is deleted and made again; one that is terminated leaves nothing."""
    before, after = life["connected elsewhere"], life["all healed"]
    assert not before.servers.keys() & after.servers.keys()
    assert sorted(after.parts.values()) == sorted(before.parts.values())
    assert {each.image for each in after.servers.values()} == {each.image for each in before.servers.values()}
    ((_, server),) = after.of(SINGLE).items()
    assert server.addresses == (FIXED_ADDRESS,)
    assert not life["terminated"].servers


def check_calls(life: Life) -> None:
    """Compare the requests that may change something with those that upstream sends for the same.

    That follows from what each resource needs: a server and its port are made by one request each, and deleted by one
    each. A server that is made anew on the same port: the port is taken from the old one, the new one made, the old one
    deleted. A new image: one order to rebuild. Another network: another port, which is attached, and the old one, which
    is detached and deleted. A stack needs one trust, which goes with it. Tacker marks who is to leave, and then makes
    the group smaller: nothing is begun for the mark.
    """
    few, many = len(life["instantiated"].servers), len(life["scaled out"].servers)
    grouped = len(life["connected elsewhere"].of(GROUPED))
    upstream = {
        "instantiated": 2 * few + 1,
        "scaled out": 2,
        "scaled in": 2,
        "scaled out again": 2,
        healed_step(life): 3,
        "of another package": many,
        "connected elsewhere": 4 * grouped,
        "all healed": 2 * many + 1 + 2 * many + 1,
        "terminated": 2 * many + 1,
    }
    check_sent(life, upstream)
