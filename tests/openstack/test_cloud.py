"""The OpenStack of the tests itself: what other tests take for granted."""

import contextlib
import signal
from collections.abc import Iterator

import pytest
from keystoneauth1.exceptions import ConnectFailure
from openstack.compute.v2.server import Server
from openstack.connection import Connection
from openstack.exceptions import SDKException

from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually


@pytest.fixture(scope="module")
def user(project: Project) -> Iterator[Connection]:
    with contextlib.closing(project.connection()) as found:
        yield found


@pytest.fixture(scope="module")
def network(user: Connection) -> str:
    """Id of a network with a subnet."""
    made = user.network.create_network(name="net")
    user.network.create_subnet(network_id=made.id, name="net", ip_version=4, cidr="192.168.0.0/24")
    return str(made.id)


@pytest.fixture(scope="module")
def server(user: Connection, network: str) -> Server:
    """An ACTIVE server with a port that was there before."""
    port = user.network.create_port(network_id=network, name="port")
    return create_server(user, "server", port=port.id)


def create_server(user: Connection, name: str, **nic: str) -> Server:
    compute = user.compute
    flavor = compute.find_flavor("m1.tiny", ignore_missing=False)
    image = user.image.find_image("mini", ignore_missing=False)
    made = compute.create_server(name=name, flavor_id=flavor.id, image_id=image.id, networks=[nic])
    eventually(lambda: compute.get_server(made).status == "ACTIVE", f"{name} to be ACTIVE")
    return compute.get_server(made)


def test_a_server_has_the_port_it_was_given(user: Connection, server: Server) -> None:
    port = user.network.find_port("port", ignore_missing=False)
    assert port.device_id == server.id
    assert port.status == "ACTIVE"
    assert [each["addr"] for each in server.addresses["net"]] == [each["ip_address"] for each in port.fixed_ips]


def test_a_server_has_a_volume(user: Connection, server: Server) -> None:
    volumes = user.block_storage
    volume = volumes.create_volume(size=1, name="volume").id
    eventually(lambda: volumes.get_volume(volume).status == "available", "the volume")
    user.compute.create_volume_attachment(server, volume=volume)
    eventually(lambda: volumes.get_volume(volume).status == "in-use", "the volume to be attached")
    user.compute.delete_volume_attachment(server, volume)
    eventually(lambda: volumes.get_volume(volume).status == "available", "the volume to be detached")


def test_what_is_done_may_not_be_answered(openstack_cloud: OpenStack, user: Connection) -> None:
    with (
        openstack_cloud.fault("http", service="neutron-api", method="POST", path="/networks$", status=503, after=True),
        pytest.raises(SDKException, match="503"),
    ):
        user.network.create_network(name="unanswered")
    assert len(list(user.network.networks(name="unanswered"))) == 1


def test_a_fault_hits_as_often_as_it_says(openstack_cloud: OpenStack, user: Connection) -> None:
    rule = {"service": "neutron-api", "method": "GET", "path": "/routers$", "status": 500, "times": 1}
    with openstack_cloud.fault("http", **rule):
        answers = [user.network.get("/routers", raise_exc=False).status_code for _ in range(3)]
    assert answers == [500, 200, 200]


def test_a_driver_fails_for_what_a_rule_names(openstack_cloud: OpenStack, user: Connection) -> None:
    volumes = user.block_storage
    with openstack_cloud.fault("volume", op="create_volume", name="^bad$", error="disk full"):
        made = {name: volumes.create_volume(size=1, name=name).id for name in ("bad", "good")}
        for name, status in (("bad", "error"), ("good", "available")):
            eventually(lambda: volumes.get_volume(made[name]).status == status, f"{name} to be {status}")  # noqa: B023


def test_nova_hears_when_a_guest_stops_or_is_gone(openstack_cloud: OpenStack, user: Connection, network: str) -> None:
    compute = user.compute
    made = create_server(user, "fragile", uuid=network)
    openstack_cloud.vm("crash", made.id)
    eventually(lambda: compute.get_server(made).status == "SHUTOFF", "the server to be SHUTOFF")
    compute.start_server(made)
    eventually(lambda: compute.get_server(made).status == "ACTIVE", "the server to run again")
    openstack_cloud.vm("gone", made.id)
    eventually(lambda: compute.get_server(made).power_state != 1, "Nova to miss the guest")


def test_a_notification_arrives(openstack_cloud: OpenStack, user: Connection, server: Server) -> None:
    with openstack_cloud.notifications() as heard:
        user.compute.pause_server(server)
        wanted = {"instance.pause.end", "compute.instance.pause.end"}
        eventually(lambda: wanted <= set(heard.of_server(server.id)), "notifications of both formats")
    user.compute.unpause_server(server)
    eventually(lambda: user.compute.get_server(server).status == "ACTIVE", "the server to run again")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL], ids=lambda by: by.name)
def test_processes_stop_and_start(
    openstack_cloud: OpenStack, user: Connection, network: str, by: signal.Signals
) -> None:
    with openstack_cloud.stopped("glance-api", by):
        eventually(lambda: not answers(user), "Glance to be away")
    assert answers(user)
    with openstack_cloud.stopped("nova-compute1", by):
        pass
    create_server(user, f"after-{by.name}", uuid=network)


def answers(user: Connection) -> bool:
    try:
        list(user.image.images())
    except (SDKException, ConnectFailure):
        return False
    return True


def test_a_project_sees_only_its_own(openstack_cloud: OpenStack, user: Connection, server: Server) -> None:
    assert server.id in {each.id for each in user.compute.servers()}
    with contextlib.closing(openstack_cloud.user()) as demo:
        assert server.id not in {each.id for each in demo.compute.servers()}


@pytest.mark.services("octavia")
def test_members_are_as_they_are_said_to_be(openstack_cloud: OpenStack, user: Connection, network: str) -> None:
    balancers = user.load_balancer
    balancer = balancers.create_load_balancer(name="lb", vip_network_id=network)

    def settle() -> None:
        eventually(lambda: balancers.get_load_balancer(balancer).provisioning_status == "ACTIVE", "the load balancer")

    settle()
    listener = balancers.create_listener(name="lb", load_balancer_id=balancer.id, protocol="HTTP", protocol_port=80)
    settle()
    pool = balancers.create_pool(name="lb", listener_id=listener.id, protocol="HTTP", lb_algorithm="ROUND_ROBIN")
    settle()
    member = balancers.create_member(pool, name="m", address="192.168.0.200", protocol_port=8080)
    settle()
    balancers.create_health_monitor(pool_id=pool.id, type="HTTP", delay=5, timeout=3, max_retries=3)
    settle()
    for said, status in (("up", "ONLINE"), ("down", "ERROR"), ("up", "ONLINE")):
        openstack_cloud.member(said, member.id)
        eventually(lambda: balancers.get_member(member, pool).operating_status == status, status)  # noqa: B023
