"""What stands beside the nodes of a group: their places in the pool of a load balancer, who has one, and when."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.model.errors import Terminal
from homeostat.resources.families.node_groups import NodeGroup, NodePlace
from tests.component.running import Service, server
from tests.component.test_node_groups import SEED

ALL = [[0, 1_000_000]]


def balancer(**pool: Any) -> dict[str, Any]:
    def one(kind: str, **properties: Any) -> dict[str, Any]:
        return {"type": f"OS::Octavia::{kind}", "properties": properties}

    listened = {"protocol": "HTTP", "protocol_port": 80, "loadbalancer": {"get_resource": "lb"}}
    return {
        "lb": one("LoadBalancer", vip_subnet="sub"),
        "listener": one("Listener", **listened),
        "pool": one(
            "Pool",
            **{"listener": {"get_resource": "listener"}, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", **pool},
        ),
    }


def place(numbers: Any = ALL, port: int = 80) -> list[dict[str, Any]]:
    properties = {"pool": {"get_resource": "pool"}, "protocol_port": port, "subnet": "sub"}
    one = {"type": NodePlace.name, "properties": properties}
    return [{"name": "lb", "numbers": numbers, "member": "server", "resource_def": one}]


def group(
    count: int,
    beside: Any = (),
    removed: Sequence[int] = (),
    drain_s: int = 0,
    one: dict[str, Any] | None = None,
) -> dict[str, Any]:
    policies = [{"resource_list": [str(number) for number in removed]}]
    wanted = {
        "count": count,
        "resource_def": one or server(name="%node_name%"),
        "nodes": {"seed": SEED, "format": ""},
        "removal_policies": policies,
        "beside": beside,
    }
    policy = {"update_policy": {"drain_time": drain_s}} if drain_s else {}
    return {"nodes": {"type": NodeGroup.name, "properties": wanted, **policy}}


class Ordered(SimulatedCloud):
    """Notes in which order servers and their places come and go, and when."""

    def __init__(self, now: Any, behaviour: CloudBehaviour) -> None:
        super().__init__(now, behaviour)
        self.clock = now
        self.full = False
        self.order: list[str] = []
        self.at: dict[str, float] = {}

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind == "pool_member" and self.full:
            return [Terminal("the pool is full") for _ in intents]
        if kind == "pool_member":
            for each in intents:
                ready = self.things("server")[each.spec["server"]]["status"] == "active"
                self.order.append(f"in {'a ready' if ready else 'an unready'} server")
        return super().create(kind, intents)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        for handle in handles:
            if kind == "pool_member":
                self.at["left"] = self.clock()
            if kind == "server":
                self.at["gone"] = self.clock()
                there = any(each.get("server") == handle for each in self.things("pool_member").values())
                self.order.append(f"delete a server {'in a pool' if there else 'of no pool'}")
        return super().delete(kind, handles)


class Balanced(Service):
    def __init__(
        self, count: int, behaviour: CloudBehaviour = CloudBehaviour(build_s=2.0, delete_s=1.0), **more: Any
    ) -> None:
        super().__init__(cloud=lambda clock: Ordered(clock.now, behaviour))
        self.id = self.begin({**balancer(), **group(count, **more)}, internal_types={NodeGroup.name})
        self.rest(3600)

    def change(self, count: int, balanced: Mapping[str, Any] | None = None, **more: Any) -> None:
        resources = {**(balancer() if balanced is None else balanced), **group(count, **more)}
        self.update(self.id, resources, internal_types={NodeGroup.name})
        self.rest(3600)

    @property
    def inside(self) -> Any:
        return next(each for each in self.stacks() if each.parent_id == self.id and each.deleted_at is None)

    @property
    def numbers(self) -> dict[str, str]:
        """Handle of the server -> number of the node."""
        return {row.handle: row.name for row in self.rows(self.inside.id) if row.name.isdigit()}

    @property
    def balanced(self) -> list[str]:
        """Numbers of the nodes that are in the pool."""
        (pool,) = self.cloud.things("pool")
        members = self.cloud.things("pool_member").values()
        assert {each["pool"] for each in members} <= {pool}
        return sorted(self.numbers[each["server"]] for each in members)

    @property
    def order(self) -> list[str]:
        assert isinstance(self.cloud, Ordered)
        return self.cloud.order


def test_nodes_that_are_there_enter_the_pool_as_they_are() -> None:
    service = Balanced(3)
    before = service.servers()
    service.change(3, beside=place())
    assert service.state(service.id) == "UPDATE_COMPLETE", service.states(service.id)
    assert (service.servers(), service.balanced) == (before, ["0", "1", "2"])
    assert {each["protocol_port"] for each in service.cloud.things("pool_member").values()} == {80}
    service.change(3, beside=place(port=8080))
    assert {each["protocol_port"] for each in service.cloud.things("pool_member").values()} == {8080}
    assert service.servers() == before


def test_a_node_is_ready_before_it_is_in_the_pool_and_leaves_it_before_it_goes() -> None:
    service = Balanced(2, beside=place())
    service.change(3, beside=place())
    service.change(2, beside=place(), removed=[1])
    assert service.balanced == ["0", "2"]
    assert service.order == ["in a ready server"] * 3 + ["delete a server of no pool"]


def test_a_node_is_drained_once_it_has_left_the_pool() -> None:
    service = Balanced(2, beside=place(), drain_s=30)
    service.change(1, beside=place(), removed=[0], drain_s=30)
    assert isinstance(service.cloud, Ordered)
    waited = service.cloud.at["gone"] - service.cloud.at["left"]
    assert (service.balanced, 30.0 <= waited < 35.0) == (["1"], True), waited


def test_only_some_nodes_may_have_a_place() -> None:
    service = Balanced(2, beside=place())
    service.change(4, beside=place([[0, 2]]))
    assert service.balanced == ["0", "1"]
    service.change(4, beside=place())
    assert service.balanced == ["0", "1", "2", "3"]


def test_what_nodes_leave_can_go() -> None:
    service = Balanced(2, beside=place())
    before = service.servers()
    service.change(2, balanced={})
    assert service.state(service.id) == "UPDATE_COMPLETE", service.states(service.id)
    assert service.servers() == before
    assert [*service.cloud.things("pool_member"), *service.cloud.things("pool")] == []
    service.delete(service.id)
    service.rest()
    assert service.cloud.things() == {}


def test_new_servers_take_the_places_of_the_old_ones() -> None:
    service = Balanced(2, beside=place())
    before = service.servers()
    service.change(2, beside=place(), one=server(name="%node_name%", key_name="k"))
    assert not set(before) & set(service.servers())
    assert service.balanced == ["0", "1"]
    assert set(service.order) == {"in a ready server", "delete a server of no pool"}


def test_a_pool_that_is_made_again_gets_its_members() -> None:
    service = Balanced(2, beside=place())
    before, (pool,) = service.servers(), service.cloud.things("pool")
    service.change(2, balancer(protocol="TCP"), beside=place())
    assert pool not in service.cloud.things("pool")
    assert (service.servers(), service.balanced) == (before, ["0", "1"])


def test_a_node_that_is_a_stack_is_balanced_by_its_server() -> None:
    inner = {
        "heat_template_version": "2018-08-31",
        "resources": {
            "server": server(name="inner"),
            "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
        },
        "outputs": {"OS::stack_id": {"value": {"get_resource": "server"}}},
    }
    service = Balanced(1)
    resources = {**balancer(), **group(2, beside=place(), one={"type": "one.yaml", "properties": {}}, drain_s=20)}
    files = {"one.yaml": json.dumps(inner)}
    service.update(service.id, resources, files=files, internal_types={NodeGroup.name})
    service.rest(3600)
    members = service.cloud.things("pool_member").values()
    assert sorted(each["server"] for each in members) == service.servers()
    resources = {**balancer(), **group(1, beside=place(), one={"type": "one.yaml"}, removed=[0], drain_s=20)}
    service.update(service.id, resources, files=files, internal_types={NodeGroup.name})
    service.rest(3600)
    assert isinstance(service.cloud, Ordered)
    assert service.cloud.at["gone"] - service.cloud.at["left"] >= 20.0
    assert service.order[-1] == "delete a server of no pool"
    assert len(service.cloud.things("pool_member")) == 1


def test_a_place_that_cannot_be_made_fails_by_itself() -> None:
    service = Balanced(1)
    assert isinstance(service.cloud, Ordered)
    service.cloud.full = True
    service.change(1, beside=place())
    assert service.state(service.id) == "UPDATE_FAILED"
    assert service.states(service.inside.id) == {"0": "CREATE_COMPLETE", "0-lb": "CREATE_FAILED"}
    service.cloud.full = False
    service.change(3, beside=place())
    assert (service.state(service.id), service.balanced) == ("UPDATE_COMPLETE", ["0", "1", "2"])


def test_nothing_is_doubled_or_left_over_in_a_bad_cloud() -> None:
    service = Balanced(3, CloudBehaviour(build_s=2.0, faults=Faults(lost=0.2, refused=0.2)), beside=place())
    service.change(2, beside=place(), removed=[1])
    assert service.balanced == ["0", "2"]
    service.delete(service.id)
    service.rest(3600)
    assert service.cloud.things() == {}
