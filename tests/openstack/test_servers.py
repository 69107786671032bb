"""Servers of a real OpenStack, through the cloud port."""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack import OpenStack as Adapter
from homeostat.clouds.openstack import OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.port import Answer, Change, Cloud, Creation, Operation
from homeostat.model.errors import Terminal, Transient, Uncertain
from homeostat.model.observed import Condition, Observation, Presence, Remedy, Verdict
from homeostat.resources.base import Thing
from homeostat.resources.registry import type_of
from tests.openstack.calls import Calls
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.waiting import until

NEVER = "11111111-2222-4333-8444-555555555555"
"""Id of nothing."""
SERVER = type_of("OS::Nova::Server")
CIDR = "10.20.0.0/24"


def rest(seconds: float) -> None:
    time.sleep(max(seconds, 0.5))


@dataclass(frozen=True)
class World:
    """A project with a network, seen through the port and by its user."""

    cloud: Cloud
    user: Connection
    running: OpenStack
    network: str
    subnet: str
    image: str
    flavors: Mapping[str, str]

    def spec(self, **more: Any) -> dict[str, Any]:
        return {"image": self.image, "flavor": self.flavors["m1.tiny"], "networks": [{"network": self.network}], **more}

    def ports(self) -> set[str]:
        return {each.id for each in self.user.network.ports(network_id=self.network)}


@pytest.fixture(scope="module")
def world(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    login = tmp_path_factory.mktemp("login") / "clouds.yaml"
    login.write_text(json.dumps({"clouds": {"own": {"auth": project.auth, "region_name": "RegionOne"}}}))
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(project.connection()) as user:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(login))
        config = OpenStackConfig(cloud="own")
        network = user.network.create_network(name="net").id
        subnet = user.network.create_subnet(network_id=network, name="sub", ip_version=4, cidr=CIDR).id
        image = user.image.find_image("mini", ignore_missing=False).id
        flavors = {each.name: each.id for each in user.compute.flavors()}
        with contextlib.closing(Adapter(config, Connections(config))) as adapter:
            yield World(adapter.of(project.id), user, project.cloud, network, subnet, image, flavors)


@dataclass
class Server:
    """A server that is wanted, and what the port says of it."""

    world: World
    values: dict[str, Any]
    token: str = field(default_factory=lambda: f"{uuid.uuid4().hex[:12]}-1")
    handle: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        return SERVER.spec(SERVER.complete(self.values), f"s-{self.token}")

    def create(self) -> Answer:
        (answer,) = self.world.cloud.create("server", [Creation(self.token, self.spec)])
        self.handle = answer.handle if isinstance(answer, Observation) else ""
        return answer

    def built(self) -> "Server":
        answer = self.create()
        assert isinstance(answer, Observation), answer
        self.settled()
        return self

    def look(self) -> Observation:
        (seen,) = self.world.cloud.observe("server", [self.handle])
        return seen

    def found(self) -> Observation:
        (seen,) = self.world.cloud.find("server", [self.token])
        return seen

    def verdict(self, seen: Observation) -> Verdict:
        thing = Thing("k", "r", f"s-{self.token}", SERVER.complete(self.values), seen, handle=self.handle)
        return SERVER.judge(thing, time.time())

    def until(self, condition: Condition) -> Observation:
        def look() -> Observation | None:
            seen = self.look()
            return seen if self.verdict(seen).condition is condition else None

        try:
            return until(look, f"a server to be {condition}", rest)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.look()}") from error

    def settled(self) -> Observation:
        return self.until(Condition.READY)

    def change(self, **values: Any) -> Observation:
        """Change properties in place; ask again while the answer is to do so."""
        self.values |= values
        answers: list[Answer] = []

        def ask() -> bool:
            answers[:] = self.world.cloud.update("server", [Change(self.handle, self.spec, tuple(values))])
            return not isinstance(answers[0], Transient)

        until(ask, "an update to be done", rest)
        assert isinstance(answers[0], Observation), answers
        return self.settled()

    def operate(self, verb: str, **arguments: Any) -> Answer:
        (answer,) = self.world.cloud.operate("server", [Operation(self.handle, verb, arguments)])
        return answer

    def status(self, word: str) -> Observation:
        def look() -> Observation | None:
            seen = self.look()
            return seen if seen.properties.get("status") == word else None

        return until(look, f"a server to be {word}", rest)

    def delete(self) -> None:
        def is_gone() -> bool:
            (answer,) = self.world.cloud.delete("server", [self.handle])
            assert isinstance(answer, Observation | Transient), answer
            return isinstance(answer, Observation) and self.look().presence is Presence.ABSENT

        until(is_gone, "a server to be gone", rest)


def test_a_server_lives(world: World) -> None:
    before = world.ports()
    wanted = world.spec(
        metadata={"role": "web", "size": 3},
        tags=["blue"],
        user_data="#!/bin/sh\ntrue",
        user_data_format="RAW",
        config_drive=True,
        diskConfig="MANUAL",
        security_groups=["default"],
        personality={"/etc/motd": "hello"},
        admin_pass="secret-of-mine",
        availability_zone="nova",
    )
    server = Server(world, wanted)
    wrong = {**server.spec, "image": NEVER}
    made, refused = world.cloud.create("server", [Creation(server.token, server.spec), Creation("x-1", wrong)])
    assert isinstance(refused, Terminal)
    assert isinstance(made, Observation)
    assert "secret-of-mine" not in str(made)
    server.handle = made.handle
    seen = server.settled()
    assert server.found().handle == server.handle
    assert [seen.properties[name] for name in ("name", "locked", "fault")] == [server.spec["name"], False, None]
    (address,) = seen.properties["addresses"]["net"]
    assert address["port"] in world.ports() - before
    assert seen.properties["address"] == address["addr"]

    changes: tuple[dict[str, Any], ...] = (
        {"name": "other"},
        {"metadata": {"role": "db"}},
        {"tags": ["red", "green"]},
        {"admin_pass": "another-secret"},
        {"user_data": "#!/bin/sh\nfalse"},
    )
    for each in changes:
        after = server.change(**each).properties
        assert server.found().handle == server.handle
    assert after["metadata"] == {"role": "db"}
    assert sorted(after["tags"]) == ["green", "red"]

    server.delete()
    (again,) = world.cloud.delete("server", [server.handle])
    assert isinstance(again, Observation)
    assert again.not_found
    assert server.found().presence is Presence.ABSENT
    assert world.ports() == before


def test_what_never_was_is_absent(world: World) -> None:
    cloud = world.cloud
    looks = [
        *cloud.observe("server", [NEVER]),
        *cloud.find("server", ["never-1"]),
        *cloud.update("server", [Change(NEVER, {"name": "x"}, ("name",))]),
        *cloud.operate("server", [Operation(NEVER, "stop")]),
        *cloud.delete("server", [NEVER]),
    ]
    assert [getattr(each, "presence", each) for each in looks] == [Presence.ABSENT] * 5
    assert cloud.resolve("server", [NEVER, "no.such(name"]) == [None, None]


def test_networks_change_in_place_and_nothing_is_left(world: World) -> None:
    before = world.ports()
    own = {"network": world.network, "port_extra_properties": {"admin_state_up": False}}
    server = Server(world, world.spec(networks=[{"subnet": world.subnet, "fixed_ip": "10.20.0.50"}, own])).built()
    first = server.look().properties
    assert first["address"] == "10.20.0.50"
    kept = first["addresses"]["net"][0]["port"]
    port = world.user.network.get_port(kept)
    assert (port.name, port.device_id) == (f"{server.spec['name']}-port-0", server.handle)

    # The same place in other words keeps its port; the other entry gets a port of Nova's instead.
    server.change(networks=[{"network": world.network, "fixed_ip": "10.20.0.50"}, {"network": world.network}])

    def ports() -> set[str]:
        return {each["port"] for each in server.look().properties["addresses"].get("net", ())}

    until(lambda: kept in ports() and len(ports()) == 2 and len(world.ports() - before) == 2, "the other port", rest)
    server.change(networks=[{"allocate_network": "none"}])
    until(lambda: world.ports() == before, "no port to be left", rest)
    server.change(networks=[{"subnet": world.subnet}])
    until(lambda: len(ports()) == 1, "a new port", rest)
    server.delete()
    assert world.ports() == before


def test_block_devices(world: World) -> None:
    volumes = world.user.block_storage
    data = volumes.create_volume(size=1, name="data").id
    until(lambda: volumes.get_volume(data).status == "available", "a volume", rest)
    old = {"image": world.image, "block_device_mapping": [{"device_name": "vdb", "volume_id": data}]}
    boot = {"image": world.image, "volume_size": 1, "delete_on_termination": True}
    for values in (old, {"image": None, "block_device_mapping_v2": [boot, {"volume_id": data, "boot_index": -1}]}):
        server = Server(world, world.spec(**values)).built()
        attached = {each.volume_id for each in world.user.compute.volume_attachments(server.handle)}
        assert data in attached
        assert len(attached) == (1 if values is old else 2)
        server.delete()
        until(lambda: volumes.get_volume(data).status == "available", "the volume to be free", rest)
    until(lambda: [each.id for each in volumes.volumes()] == [data], "the disk to be gone", rest)
    volumes.delete_volume(data)


def test_an_entry_with_a_floating_ip(world: World) -> None:
    network = world.user.network
    public = network.find_network("public", ignore_missing=False).id
    router = network.create_router(name="way", external_gateway_info={"network_id": public}).id
    network.add_interface_to_router(router, subnet=world.subnet)
    address = network.create_ip(floating_network_id=public)
    server = Server(world, world.spec(networks=[{"network": world.network, "floating_ip": address.id, "tag": "nic"}]))
    server.built()
    (own,) = {each["port"] for each in server.look().properties["addresses"]["net"]}
    assert network.get_ip(address).port_id == own
    server.delete()
    assert network.get_ip(address).port_id is None
    network.delete_ip(address)
    network.remove_interface_from_router(router, subnet=world.subnet)
    network.delete_router(router)


def test_a_server_deleted_by_hand_leaves_ports_that_are_seen_and_deleted(world: World) -> None:
    before = world.ports()
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}])).built()
    world.user.compute.delete_server(server.handle)
    seen = server.until(Condition.BROKEN)
    assert server.verdict(seen).remedy is Remedy.RECREATE
    assert f"{server.spec['name']}-port-0" in seen.properties["fault"]
    server.delete()
    assert world.ports() == before


def test_a_refused_server_leaves_no_port(world: World) -> None:
    before = world.ports()
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}], key_name="no-such-key"))
    assert isinstance(server.create(), Terminal)
    assert world.ports() == before
    assert server.found().presence is Presence.ABSENT


def test_a_lost_answer_makes_one_server(world: World) -> None:
    """The answer is lost after the deed, so Nova has the server."""
    before = world.ports()
    lost = {"service": "nova-api", "method": "POST", "path": "/servers$", "status": 502, "times": 1}
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}]))
    with world.running.fault("http", **lost, after=True):
        assert isinstance(server.create(), Uncertain)
    server.handle = server.found().handle
    server.settled()
    assert len([each for each in world.user.compute.servers() if each.name == server.spec["name"]]) == 1
    server.delete()
    assert server.found().presence is Presence.ABSENT
    assert world.ports() == before


def test_a_server_that_is_deleted_as_soon_as_it_is_found_leaves_no_port(world: World) -> None:
    """Nothing has looked at it before, and Nova forgets its token with it."""
    before = world.ports()
    lost = {"service": "nova-api", "method": "POST", "path": "/servers$", "status": 502, "times": 1}
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}]))
    with world.running.fault("http", **lost, after=True):
        assert isinstance(server.create(), Uncertain)
    server.handle = server.found().handle
    server.delete()
    assert world.ports() == before


def test_a_server_is_known_once_its_ports_are_marked(world: World) -> None:
    before = world.ports()
    refused = {"service": "neutron-api", "method": "PUT", "path": "/ports/.*/tags/", "status": 502, "times": 2}
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}]))
    with world.running.fault("http", **refused):
        assert isinstance(server.create(), Uncertain)
        with pytest.raises(Transient, match="has no tag yet"):
            server.found()
    server.handle = server.found().handle
    server.delete()
    assert world.ports() == before


def test_a_server_that_was_never_requested_is_absent_and_leaves_no_port(world: World) -> None:
    """A worker that dies between the port and the server has not tried in vain: that is no broken server."""
    before = world.ports()
    lost = {"service": "nova-api", "method": "POST", "path": "/servers$", "status": 502, "times": 1}
    server = Server(world, world.spec(networks=[{"subnet": world.subnet}]))
    with world.running.fault("http", **lost):
        assert isinstance(server.create(), Uncertain)
    assert world.ports() > before

    def is_absent() -> bool:
        return server.found().presence is Presence.ABSENT and world.ports() == before

    until(is_absent, "the port to be deleted, once no server can come any more", rest)


def test_operations(world: World) -> None:
    server = Server(world, world.spec()).built()
    steps = (
        ("stop", "stopped"),
        ("start", "active"),
        ("pause", "paused"),
        ("unpause", "active"),
        ("suspend", "suspended"),
        ("suspend", "suspended"),
        ("resume", "active"),
        ("reboot", "active"),
        ("rebuild", "active"),
    )
    for verb, status in steps:
        assert isinstance(server.operate(verb), Observation)
        server.status(status)
    assert isinstance(server.operate("dance"), Terminal)

    for _ in range(2):
        server.operate("lock")
    assert server.look().properties["locked"] is True
    (refused,) = world.cloud.delete("server", [server.handle])
    (renamed,) = world.cloud.update("server", [Change(server.handle, {**server.spec, "name": "x"}, ("name",))])
    for answer in (server.operate("stop"), server.operate("resume"), renamed, refused):
        assert isinstance(answer, Terminal)
        assert "locked" in str(answer)
    server.operate("unlock")
    server.delete()


def test_a_resize_is_confirmed_and_its_failure_is_reported(world: World) -> None:
    server = Server(world, world.spec()).built()
    assert server.change(flavor=world.flavors["m1.small"]).properties["flavor"] == "m1.small"
    change = Change(server.handle, {**server.spec, "flavor": world.flavors["m1.medium"]}, ("flavor",))
    with world.running.fault("virt", op="migrate|resize|prep|finish", uuid=server.handle, error="no disk"):
        last: list[Answer] = []

        def ended() -> bool:
            last[:] = world.cloud.update("server", [change])
            return not isinstance(last[0], Transient)

        until(ended, "the resize to fail", rest)
    (answer,) = last
    failed = isinstance(answer, Terminal) or (
        isinstance(answer, Observation) and answer.properties["status"] == "error"
    )
    assert failed, answer
    server.delete()


def test_a_confirmation_that_comes_too_early_is_soon_sent_again(world: World) -> None:
    server = Server(world, world.spec()).built()
    change = Change(server.handle, {**server.spec, "flavor": world.flavors["m1.small"]}, ("flavor",))
    assert isinstance(world.cloud.update("server", [change])[0], Transient)

    def is_resized() -> bool:
        return bool(world.user.compute.get_server(server.handle).status == "VERIFY_RESIZE")

    until(is_resized, "the resize to wait for its confirmation", rest)
    early = {"status": 400, "body": json.dumps({"badRequest": {"message": "Instance has not been resized."}})}
    path = f"/servers/{server.handle}/action$"
    with world.running.fault("http", service="nova-api", method="POST", path=path, times=1, **early):
        (answer,) = world.cloud.update("server", [change])
    assert isinstance(answer, Transient)
    assert answer.retry_after_s is not None
    assert server.change(flavor=world.flavors["m1.small"]).properties["flavor"] == "m1.small"
    server.delete()


@pytest.mark.parametrize("way", ["off", "crash", "gone"])
def test_a_guest_that_does_not_run_is_started(world: World, way: str) -> None:
    server = Server(world, world.spec()).built()
    world.running.vm(way, server.handle)
    verdict = server.verdict(server.until(Condition.BROKEN))
    assert verdict.remedy is Remedy.OPERATE
    server.operate(verdict.operation)
    server.settled()
    server.delete()


def test_what_nova_says_of_a_server_in_error(world: World, project: Project) -> None:
    server = Server(world, world.spec()).built()
    with contextlib.closing(project.admin()) as admin:
        admin.compute.reset_server_state(server.handle, "error")
    assert server.verdict(server.until(Condition.BROKEN)).remedy is Remedy.RECREATE
    server.delete()

    with world.running.fault("virt", op="^spawn$", name="^unlucky", error="the disk burns"):
        unlucky = Server(world, world.spec(name="unlucky"))
        unlucky.create()
        seen = unlucky.until(Condition.BROKEN)
    assert unlucky.verdict(seen).remedy is Remedy.RECREATE
    # Nova writes the reason after the status.
    until(lambda: unlucky.look().properties["fault"], "the reason", rest)
    unlucky.delete()


def test_a_quota_is_terminal(world: World, project: Project) -> None:
    project.limit("compute", instances=0)
    try:
        answer = Server(world, world.spec()).create()
    finally:
        project.limit("compute", instances=100)
    assert isinstance(answer, Terminal)
    assert "Quota exceeded" in str(answer)


def test_a_snapshot_is_made_once_and_outlives_its_server(world: World) -> None:
    server = Server(world, world.spec()).built()
    token = f"{server.token}-r1"
    for _ in range(2):
        answer = server.operate("snapshot", token=token, name="copy")
        assert isinstance(answer, Observation)
        (listed,) = answer.properties["snapshots"]
        assert (listed["token"], listed["status"]) == (token, "creating")
    server.settled()
    # The hypervisor of the tests copies no disk: that is done here in its place.
    images = world.user.image
    images.update_image(listed["id"], disk_format="raw", container_format="bare")
    headers = {"Content-Type": "application/octet-stream"}
    assert images.put(f"/images/{listed['id']}/file", data=b"x", headers=headers).ok

    def available() -> Observation | None:
        (seen,) = world.cloud.find("server_snapshot", [token])
        return seen if seen.properties.get("status") == "available" else None

    snapshot = until(available, "the snapshot", rest)
    server.delete()
    copy = Server(world, world.spec(image=snapshot.handle)).built()
    copy.delete()
    for is_gone in (False, True):
        (answer,) = world.cloud.delete("server_snapshot", [snapshot.handle])
        assert isinstance(answer, Observation)
        assert (answer.presence, answer.not_found) == (Presence.ABSENT, is_gone)
    assert [each.presence for each in world.cloud.find("server_snapshot", [token])] == [Presence.ABSENT]


def test_many_quiet_servers_are_seen_with_one_small_request(world: World) -> None:
    servers = [Server(world, world.spec()) for _ in range(3)]
    for each in servers:
        each.create()
    for each in servers:
        each.settled()
    handles = [each.handle for each in servers]
    assert all(each.present for each in world.cloud.observe("server", handles))
    world.user.compute.set_server_metadata(servers[0].handle, seen="yes")
    with Calls() as calls:
        seen = world.cloud.observe("server", handles)[0]
    assert seen.properties["metadata"] == {"seen": "yes"}
    assert dict(calls.reading) == {"GET /servers/detail": 1}
    assert not calls.mutating
    assert "changes-since=" in calls.sent[0][1]
    world.user.compute.delete_server(servers[1].handle)
    until(lambda: not world.cloud.observe("server", handles)[1].present, "one to be gone", rest)
    for each in servers:
        each.delete()
