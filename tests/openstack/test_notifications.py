"""Notifications of the real services over a real RabbitMQ, and a message bus that is away."""

import contextlib
import logging
import queue
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from openstack.connection import Connection

from homeostat.clouds.port import ChangeNotice
from tests.openstack.message_bus import PROMPT_S, listening, send
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import serving
from tests.waiting import until

LONG_S = 3600.0
"""Between two looks: longer than a test waits."""


def all_of(heard: "queue.Queue[ChangeNotice]") -> list[ChangeNotice]:
    found = []
    with contextlib.suppress(queue.Empty):
        while True:
            found.append(heard.get_nowait())
    return found


@pytest.mark.shows("CV7")
def test_a_server_deleted_by_hand_is_noticed_at_once(openstack_cloud: OpenStack, project: Project, pool: str) -> None:
    url = openstack_cloud.transport_url
    with (
        contextlib.closing(project.connection()) as user,
        listening(url, pool=pool) as (one, first),
        listening(url, pool=pool) as (other, second),
    ):
        until(lambda: one.connected.is_set() and other.connected.is_set(), "the listeners")
        image = next(iter(user.image.images()))
        flavor = next(iter(user.compute.flavors()))
        server = user.compute.create_server(name="gone", image_id=image.id, flavor_id=flavor.id, networks="none")
        notice = ChangeNotice("server", server.id)
        seen: list[ChangeNotice] = []

        def noticed() -> bool:
            seen[:] = [each for each in (*all_of(first), *all_of(second)) if each == notice]
            return bool(seen)

        until(noticed, "a notice of the creation")
        user.compute.wait_for_server(server, wait=60)
        user.compute.delete_server(server)
        user.compute.wait_for_delete(server, wait=60)
        until(noticed, "a notice of the deletion", within_s=PROMPT_S)


@dataclass(frozen=True, slots=True)
class Noticed:
    """A thing of a user: how it is made (its id), changed and deleted by hand, and asked whether it settled."""

    kind: str
    make: Callable[[Connection], str]
    change: Callable[[Connection, str], object]
    delete: Callable[[Connection, str], object]
    settled: Callable[[Connection, str], bool] = lambda user, id: True


def make_port(user: Connection) -> str:
    return str(user.network.create_port(network_id=user.network.create_network(name="noticed").id).id)


def make_balancer(user: Connection) -> str:
    net = user.network.create_network(name="noticed")
    subnet = user.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.80.0.0/24")
    return str(user.load_balancer.create_load_balancer(name="noticed", vip_subnet_id=subnet.id).id)


NOTICED = (
    Noticed(
        "network",
        lambda user: str(user.network.create_network(name="noticed").id),
        lambda user, id: user.network.update_network(id, description="changed"),
        lambda user, id: user.network.delete_network(id),
    ),
    Noticed(
        "port",
        make_port,
        lambda user, id: user.network.update_port(id, description="changed"),
        lambda user, id: user.network.delete_port(id),
    ),
    Noticed(
        "volume",
        lambda user: str(user.block_storage.create_volume(size=1, name="noticed").id),
        lambda user, id: user.block_storage.update_volume(id, description="changed"),
        lambda user, id: user.block_storage.delete_volume(id),
        lambda user, id: user.block_storage.get_volume(id).status == "available",
    ),
    Noticed(
        "load_balancer",
        make_balancer,
        lambda user, id: user.load_balancer.update_load_balancer(id, description="changed"),
        lambda user, id: user.load_balancer.delete_load_balancer(id),
        lambda user, id: user.load_balancer.get_load_balancer(id).provisioning_status == "ACTIVE",
    ),
)


@pytest.mark.services("octavia")
@pytest.mark.shows("CV7")
@pytest.mark.parametrize("it", NOTICED, ids=lambda each: each.kind)
def test_what_is_done_by_hand_is_noticed(openstack_cloud: OpenStack, project: Project, pool: str, it: Noticed) -> None:
    with (
        contextlib.closing(project.connection()) as user,
        listening(openstack_cloud.transport_url, pool=pool) as (listener, heard),
    ):
        until(listener.connected.is_set, "the listener")
        id = it.make(user)
        eventually(lambda: it.settled(user, id), f"the {it.kind}")
        until(lambda: ChangeNotice(it.kind, id) in all_of(heard), "a notice of the creation")
        for act in (it.change, it.delete):
            act(user, id)
            until(lambda: ChangeNotice(it.kind, id) in all_of(heard), f"a notice that it was done: {act}")
            eventually(lambda: act is it.delete or it.settled(user, id), f"the {it.kind}")  # noqa: B023
            all_of(heard)


@pytest.mark.services("octavia")
@pytest.mark.shows("CV7")
def test_what_is_gone_is_made_anew_by_a_notice_alone(
    openstack_cloud: OpenStack, project: Project, pool: str, tmp_path: Path
) -> None:
    """Looks at intervals come too late: only a notice can have told of it."""
    resources = {
        "net": {"type": "OS::Neutron::Net"},
        "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
    }
    flags = ("--os-notifications", openstack_cloud.transport_url, "--os-notification-pool", pool)
    with serving(project, tmp_path / "state", *flags) as served, contextlib.closing(project.connection()) as user:
        served.create("noticed", resources, look_s=LONG_S)
        assert served.at_rest("noticed")["stack_status"] == "CREATE_COMPLETE"
        for resource, delete in (("net", user.network.delete_network), ("volume", user.block_storage.delete_volume)):
            before = served.handles("noticed")
            delete(before[resource])
            eventually(lambda: served.handles("noticed")[resource] != before[resource], f"another {resource}")  # noqa: B023
            eventually(lambda: served.is_well("noticed"), "it to be complete")
        served.delete("noticed")


def test_each_notification_reaches_one_process_of_a_service(openstack_cloud: OpenStack, pool: str) -> None:
    url = openstack_cloud.transport_url
    with listening(url, pool=pool) as (one, first), listening(url, pool=pool) as (other, second):
        until(lambda: one.connected.is_set() and other.connected.is_set(), "the listeners")
        ids = {f"test-{n}" for n in range(10)}
        for each in sorted(ids):
            send(url, "neutron", "port.delete.end", {"port": {}, "port_id": each})
        seen: list[ChangeNotice] = []

        def heard() -> bool:
            seen.extend(each for each in (*all_of(first), *all_of(second)) if each.handle in ids)
            return len(seen) >= len(ids)

        until(heard, "all notices")
        assert sorted(each.handle for each in seen) == sorted(ids)


def test_a_message_bus_that_is_away_is_named_once_and_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"rabbit://user:s3cret@127.0.0.1:{free.getsockname()[1]}/"
    attempts = Attempts()
    library = logging.getLogger("oslo.messaging")
    library.addHandler(attempts)
    try:
        with caplog.at_level(logging.INFO), listening(url, pool="none"):
            until(lambda: attempts.count >= 2, "the second attempt")
    finally:
        library.removeHandler(attempts)
    # The records of loggers that pass nothing on are captured, too.
    assert [each.levelname for each in caplog.records if each.name.startswith("homeostat")] == ["WARNING"]
    assert not library.propagate
    assert "s3cret" not in caplog.text


class Attempts(logging.Handler):
    """Counts what the library says about its attempts."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.levelno >= logging.ERROR
