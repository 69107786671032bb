"""Looks at servers and the ports made for them: how many requests there are, and which of them wait for another."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.server_ports import PER_QUERY, TAG, TOKEN
from homeostat.clouds.openstack.servers import PORTS_ONLY_PREFIX, Servers
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import InTags
from homeostat.clouds.port import Change
from homeostat.model.errors import Transient
from homeostat.model.observed import Presence

ADDRESS_MAX = 8000
"""The longest line of a request that common proxies take, less what else is in it."""


@dataclass
class Api:
    """Lists what there is and has the values asked for, and notes each request.

    together — is entered in each list. keeps — whether what is deleted stays for now.
    """

    things: list[Wire]
    asked: list[tuple[str, Any]] = field(default_factory=list)
    together: threading.Barrier | None = None
    keeps: bool = False

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[Wire]:
        self.asked.append((path, params))
        if self.together is not None:
            self.together.wait(timeout=10)
        wanted = {name: set(values) for name, values in params.items() if name in ("device_id", "description")}
        tags = {each for each in params.get("tags-any", "").split(",") if path == "/ports" and each}
        return (
            each
            for each in self.things
            if all(each[name] in values for name, values in wanted.items()) and (not tags or tags & {*each["tags"]})
        )

    def get(self, path: str, **params: Any) -> Wire:
        self.asked.append((path, params))
        if self.together is not None:
            self.together.wait(timeout=10)
        found = next((each for each in self.things if path.endswith(f"/{each['id']}")), None)
        if found is None:
            raise Missing(path)
        return {path.split("/")[1].removesuffix("s"): found}

    def request(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Wire:
        self.asked.append((f"{method} {path}", body))
        found = next((each for each in self.things if path.endswith(f"/{each['id']}")), None)
        if method == "DELETE" and found is not None and not self.keeps:
            if found.get("device_owner"):
                raise Transient("rule:delete_port is disallowed by policy")
            self.things.remove(found)
        if method == "PUT" and found is not None:
            found |= body["port"]
        return {}


@dataclass
class World:
    """The cloud port over a Compute and a Networking."""

    compute: Api
    network: Api
    cloud: OpenStackCloud

    def serve(self, type: str) -> Service:
        return cast(Service, {"compute": self.compute, "network": self.network}[type])


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(4) as pool:
        found = World(Api([]), Api([]), cast(OpenStackCloud, None))
        found.cloud = OpenStackCloud([Servers], found.serve, pool)
        yield found


def server(id: str, token: str = "") -> Wire:
    address = {"addr": "10.0.0.2", "version": 4, "OS-EXT-IPS-MAC:mac_addr": f"mac-{id}", "OS-EXT-IPS:type": "fixed"}
    made = {"id": id, "name": id, "status": "ACTIVE", "addresses": {"net": [address]}, "locked": False, "metadata": {}}
    return InTags().write({**made, "tags": [], "flavor": {"original_name": "small"}, "image": None}, token)


def port(id: str, token: str, device: str = "") -> Wire:
    made = {"id": id, "name": id, "device_id": device, "network_id": "net", "mac_address": f"mac-{device}", "tags": []}
    return TOKEN.write({**made, "fixed_ips": [{"ip_address": "10.0.0.2"}]}, token)


def test_the_ports_of_many_servers_are_one_list_and_are_remembered(world: World) -> None:
    ids = [f"{number:036}" for number in range(PER_QUERY)]
    world.compute.things = [server(id) for id in ids]
    world.network.things = [port(f"p-{id}", "", id) for id in ids]
    for _ in range(2):
        seen = world.cloud.observe("server", ids)
        assert {each.properties["addresses"]["net"][0]["port"] for each in seen} == {f"p-{id}" for id in ids}
    assert [path for path, _ in world.network.asked] == ["/ports"]
    assert [path for path, _ in world.compute.asked] == ["/servers/detail"] * 2


def test_the_address_of_a_list_of_ports_does_not_become_too_long() -> None:
    tags = [f"{TAG}{number:036}" for number in range(PER_QUERY)]
    texts = [str(TOKEN.write({}, f"{number:032}")[TOKEN.field]) for number in range(PER_QUERY)]
    for params in ({"tags-any": ",".join(tags)}, {"description": texts}):
        assert len(urlencode(params, doseq=True)) < ADDRESS_MAX


def test_the_ports_of_a_server_are_asked_for_again_once_it_shows_others(world: World) -> None:
    there = server("a")
    world.compute.things = [there]
    world.network.things = [port("p", "", "a")]
    (seen,) = world.cloud.observe("server", ["a"])
    assert seen.properties["ports"] == [{"id": "p", "name": "p"}]
    bare = {**port("bare", "", "a"), "mac_address": "mac-bare", "fixed_ips": []}
    world.network.things, there["addresses"] = [bare], {}
    for _ in range(2):
        (seen,) = world.cloud.observe("server", ["a"])
        assert seen.properties["ports"] == [{"id": "bare", "name": "bare"}]
    assert [path for path, _ in world.network.asked] == ["/ports"] * 2


def test_ports_that_are_not_known_are_not_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.compute.things = [{**server("a"), "addresses": {}}]

    def away(*_: Any, **__: Any) -> Iterator[Wire]:
        raise Transient("network: away")

    monkeypatch.setattr(world.network, "list", away)
    (seen,) = world.cloud.observe("server", ["a"])
    assert "ports" not in seen.properties


@pytest.mark.timeout(30)
def test_a_server_that_was_missed_is_looked_at_side_by_side_with_its_ports(world: World) -> None:
    assert not world.cloud.observe("server", ["gone"])[0].present
    assert [path for path, _ in world.compute.asked] == ["/servers/gone"]
    world.compute.together = world.network.together = threading.Barrier(2)
    assert not world.cloud.observe("server", ["gone"])[0].present
    assert not world.network.together.broken


def test_a_server_that_is_back_is_seen_although_ports_were_made_for_it(world: World) -> None:
    world.network.things = [{**port("own", "t-1", "back"), "tags": [f"{TAG}back"]}]
    (remains,) = world.cloud.observe("server", ["back"])
    assert remains.properties["status"] == "error"
    world.compute.things = [server("back", "t-1")]
    (seen,) = world.cloud.observe("server", ["back"])
    assert seen.properties["status"] == "active"


@pytest.mark.timeout(30)
def test_a_server_and_its_ports_are_looked_for_side_by_side(world: World) -> None:
    world.compute.together = world.network.together = threading.Barrier(2)
    (seen,) = world.cloud.find("server", ["t-1"])
    assert seen.presence is Presence.ABSENT
    assert not world.network.together.broken


def test_ports_that_no_server_got_are_deleted_and_those_of_one_that_is_there_are_not(world: World) -> None:
    world.compute.things = [server("there", "t-1")]
    world.network.things = [port("early", "t-1"), port("never", "t-2"), port("used", "t-3", "gone")]
    there, never, used = world.cloud.find("server", ["t-1", "t-2", "t-3"])
    assert there.handle == "there"
    assert never.presence is Presence.ABSENT
    assert used.handle == f"{PORTS_ONLY_PREFIX}t-3"
    assert [each for each, _ in world.network.asked if each.startswith("DELETE")] == ["DELETE /ports/never"]


def test_a_port_that_nova_does_not_let_go_of_is_freed_once_its_server_is_gone(world: World) -> None:
    held = port("held", "t-1", "gone") | {"device_owner": "compute:nova", "tags": [f"{TAG}gone"]}
    world.network.things = [held]
    world.cloud.delete("server", ["gone"])
    assert world.network.things == []


def test_a_port_that_another_service_has_is_left_to_it(world: World) -> None:
    held = port("held", "t-1", "gone") | {"device_owner": "baremetal:none", "tags": [f"{TAG}gone"]}
    world.network.things = [held]
    (answer,) = world.cloud.delete("server", ["gone"])
    assert isinstance(answer, Transient)
    assert world.network.things == [held]


def test_a_port_is_detached_once_although_nova_takes_its_time(world: World) -> None:
    there, held = server("a", "t-1"), port("held", "", "a")
    world.compute.things, world.network.things = [there], [held]
    bare, whole = [{"allocate_network": "none"}], [{"port": "held"}]

    def update(networks: list[Wire]) -> list[str]:
        del world.compute.asked[:]
        world.cloud.update("server", [Change("a", {"networks": networks}, ("networks",))])
        return [each for each, _ in world.compute.asked if each.split(" ")[0] in ("DELETE", "POST")]

    detach = "DELETE /servers/a/os-interface/held"
    assert [update(bare), update(bare)] == [[detach], []]
    held["device_id"] = ""
    assert update(whole) == ["POST /servers/a/os-interface"]
    held["device_id"] = "a"
    assert update(bare) == [detach]


def test_the_deletion_of_a_server_with_ports_of_its_own_is_requested_once(world: World) -> None:
    there = server("a", "t-1") | {"OS-EXT-STS:task_state": "deleting"}
    world.compute.things, world.network.things = [there], [port("own", "t-1", "a") | {"tags": [f"{TAG}a"]}]
    world.compute.keeps = True
    for _ in range(2):
        (answer,) = world.cloud.delete("server", ["a"])
        assert isinstance(answer, Transient)
    world.compute.things = []
    world.cloud.delete("server", ["a"])
    assert [each for each, _ in world.compute.asked if each.startswith("DELETE")] == ["DELETE /servers/a"]
    assert world.network.things == []
