"""Load balancing policies of clusters: what they make or take, who is in the pool, and what is shown of it."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.clustering.decisions.load_balancing import DRAIN_S
from homeostat.clustering.decisions.sizes import Direction
from homeostat.model.errors import Rejected, Terminal
from homeostat.store import schema
from tests.component.node_clusters import Cluster, server_spec

VIP = {"subnet": "front", "protocol_port": 8080, "connection_limit": 100}
POOL = {"subnet": "back", "protocol_port": 80, "lb_method": "LEAST_CONNECTIONS"}
MONITOR = {"type": "HTTP", "delay": 5, "url_path": "/health", "expected_codes": "200"}


class Watched(SimulatedCloud):
    """Notes when servers come and go, and when they enter pools and leave them."""

    def __init__(self, now: Any) -> None:
        super().__init__(now, CloudBehaviour(build_s=2.0, delete_s=1.0))
        self.clock = now
        self.full = False
        self.left_at: list[float] = []
        self.gone_at: list[float] = []
        self.early: list[str] = []

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind == "pool_member":
            servers = self.things("server")
            self.early += [each.token for each in intents if servers[each.spec["server"]]["status"] != "active"]
            if self.full:
                return [Terminal("the pool is full") for _ in intents]
        return super().create(kind, intents)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        if kind == "pool_member":
            self.left_at.append(self.clock())
        if kind == "server":
            self.gone_at.append(self.clock())
        return super().delete(kind, handles)


def world(count: int = 2, **options: Any) -> Cluster:
    return Cluster(count, cloud=lambda clock: Watched(clock.now), **options)


def balanced(service: Cluster, **more: Any) -> str:
    return service.attach("loadbalance", "1.3", **{"pool": POOL, "vip": VIP, "health_monitor": MONITOR, **more})


def watched(service: Cluster) -> Watched:
    assert isinstance(service.cloud, Watched)
    return service.cloud


def the(service: Cluster, kind: str) -> tuple[str, dict[str, Any]]:
    """Id and fields of the only thing of a kind."""
    ((handle, fields),) = service.cloud.things(kind).items()
    return handle, fields


def test_attaching_makes_everything_and_enters_every_node() -> None:
    service = world(3)
    before = service.servers()
    policy = balanced(service)
    assert service.ended() == ("SUCCEEDED", "Action completed successfully.")
    (balancer, its), (listener, of_listener) = the(service, "load_balancer"), the(service, "listener")
    (pool, of_pool), (monitor, of_monitor) = the(service, "pool"), the(service, "health_monitor")
    assert (its["name"], its["vip_subnet"]) == ("senlin-lb-web", "front")
    assert (of_listener["protocol_port"], of_listener["connection_limit"]) == (8080, 100)
    assert (of_pool["name"], of_pool["lb_algorithm"]) == ("senlin-pool-web", "LEAST_CONNECTIONS")
    assert {name: of_monitor[name] for name in MONITOR} == MONITOR
    assert (service.servers(), service.balanced()) == (before, [1, 2, 3])
    members = service.cloud.things("pool_member")
    assert {(each["pool"], each["subnet"], each["protocol_port"]) for each in members.values()} == {(pool, "back", 80)}
    shown = {"loadbalancer": balancer, "listener": listener, "pool": pool, "healthmonitor": monitor}
    data = service.binding(policy)["data"]
    assert data == {"LoadBalancingPolicy": {"version": "1.3", "data": {**shown, "vip_address": its["vip_address"]}}}
    assert service.shown()["data"] == {"loadbalancers": {policy: {"vip_address": its["vip_address"]}}}
    assert sorted(each["data"]["lb_member"] for each in service.nodes().values()) == sorted(members)


def test_new_nodes_enter_the_pool_once_they_are_ready_and_those_that_go_leave_it_before() -> None:
    service = world(1)
    balanced(service)
    service.scale(Direction.OUT, 2)
    assert (service.balanced(), watched(service).early) == ([1, 2, 3], [])
    service.scale(Direction.IN, 2)
    assert len(service.balanced()) == 1
    assert min(watched(service).gone_at) - max(watched(service).left_at) >= DRAIN_S


@pytest.mark.parametrize(("grace_s", "wanted_s"), [(45, 45), (0, DRAIN_S)])
def test_a_deletion_policy_says_how_long_a_node_is_drained(grace_s: int, wanted_s: int) -> None:
    service = world(2)
    balanced(service)
    service.attach("deletion", "1.1", criteria="OLDEST_FIRST", grace_period=grace_s)
    (first,) = [each["id"] for index, each in service.nodes().items() if index == 1]
    service.delete_node(first)
    ((left,), (gone,)) = watched(service).left_at, watched(service).gone_at
    assert wanted_s <= gone - left < wanted_s + 10
    assert service.balanced() == [2]


def test_servers_that_an_update_replaces_are_drained_and_their_successors_balanced() -> None:
    service = world(2)
    balanced(service)
    before = service.servers()
    service.take(server_spec(key_name="other"))
    assert service.ended()[0] == "SUCCEEDED"
    assert not set(before) & set(service.servers())
    assert (service.balanced(), watched(service).early) == ([1, 2], [])
    assert min(watched(service).gone_at) - max(watched(service).left_at) >= DRAIN_S


def test_detaching_removes_what_the_policy_made_and_nothing_else() -> None:
    service = world(2)
    before = service.servers()
    policy = balanced(service)
    service.detach(policy)
    assert service.ended()[0] == "SUCCEEDED"
    assert (sorted(service.cloud.things()), service.bound()) == (before, [])
    assert service.shown()["data"] == {}
    assert all("lb_member" not in each["data"] for each in service.nodes().values())
    balanced(service)
    assert service.balanced() == [1, 2], "and it can be attached again"


def exist(service: Cluster, kind: str, **spec: Any) -> str:
    """Let the cloud have a thing that nobody here has made."""
    (made,) = service.cloud.create(kind, [Creation(f"other-{kind}", spec)])
    assert not isinstance(made, Exception)
    return str(made.handle)


def test_what_is_given_is_taken_and_left() -> None:
    service = world(2)
    balancer = exist(service, "load_balancer", name="mine", vip_address="192.0.2.7")
    listener = exist(service, "listener", loadbalancer=balancer, protocol="HTTP", protocol_port=80)
    pool = exist(service, "pool", listener=listener, protocol="HTTP", lb_algorithm="ROUND_ROBIN")
    monitor = exist(service, "health_monitor", pool=pool, type="TCP")
    mine = {balancer, listener, pool, monitor, *service.servers()}
    given = {"pool": {**POOL, "id": pool}, "loadbalancer": balancer, "vip": None, "health_monitor": {"id": monitor}}
    policy = balanced(service, **given)
    assert service.ended()[0] == "SUCCEEDED", service.ended()
    assert service.binding(policy)["data"]["LoadBalancingPolicy"]["data"] == {
        "loadbalancer": balancer,
        "listener": None,
        "pool": pool,
        "healthmonitor": monitor,
        "vip_address": "192.0.2.7",
        "preexisting": True,
    }
    assert service.balanced() == [1, 2]
    service.detach(policy)
    assert set(service.cloud.things()) == mine


def test_a_balancer_that_is_given_gets_a_listener_and_a_pool() -> None:
    service = world(1)
    balancer = exist(service, "load_balancer", name="mine")
    policy = balanced(service, loadbalancer=balancer, vip=None)
    assert the(service, "listener")[1]["loadbalancer"] == balancer
    assert service.balanced() == [1]
    service.detach(policy)
    assert set(service.cloud.things()) == {balancer, *service.servers()}


def test_a_balancer_that_does_not_exist_fails_the_action_and_nothing_is_left() -> None:
    service = world(1)
    policy = balanced(service, loadbalancer="nowhere", pool={**POOL, "id": "none"})
    status, reason = service.ended()
    assert (status, service.shown()["status"]) == ("FAILED", "WARNING")
    assert "nowhere" in reason or "none" in reason
    service.detach(policy)
    assert (service.ended()[0], service.shown()["status"]) == ("SUCCEEDED", "ACTIVE")
    assert sorted(service.cloud.things()) == service.servers()


def test_a_policy_that_is_switched_off_leaves_those_that_are_balanced() -> None:
    service = world(2)
    policy = balanced(service)
    service.switch(policy, enabled=False)
    service.scale(Direction.OUT, 1)
    assert service.balanced() == [1, 2]
    service.remove(service.nodes()[1]["id"], destroy_after_deletion=True)
    assert service.balanced() == [2], "who leaves leaves the pool, too"
    service.switch(policy, enabled=True)
    assert service.balanced() == [2, 3]


def test_a_policy_may_be_attached_switched_off() -> None:
    service = world(1)
    service.attach("loadbalance", "1.3", enabled=False, pool=POOL, vip=VIP)
    service.scale(Direction.OUT, 1)
    assert service.balanced() == [1]


def test_a_node_that_cannot_enter_the_pool_says_so() -> None:
    service = world(1)
    balanced(service)
    watched(service).full = True
    service.scale(Direction.OUT, 1)
    assert service.ended()[0] == "FAILED"
    states = {index: (each["status"], each["status_reason"]) for index, each in service.nodes().items()}
    assert states[2] == ("WARNING", "Failed in adding node into lb pool.")
    assert (states[1][0], service.shown()["status"]) == ("ACTIVE", "WARNING")
    watched(service).full = False
    service.scale(Direction.OUT, 1)
    assert (service.balanced(), service.shown()["status"]) == ([1, 2, 3], "ACTIVE")


def test_a_cluster_goes_with_all_that_its_policies_made() -> None:
    service = world(2)
    balanced(service)
    service.begun(service.clustering.clusters.delete(service.scope, service.id, force=False))
    assert service.cloud.things() == {}


def test_nodes_with_ports_of_their_own_are_balanced_by_their_servers() -> None:
    service = world(2, spec=server_spec(networks=[{"network": "n", "floating_network": "public"}]))
    balanced(service)
    members = service.cloud.things("pool_member").values()
    assert sorted(each["server"] for each in members) == service.servers()
    service.resize(1)
    assert len(service.cloud.things("pool_member")) == 1


def test_the_address_may_be_on_any_subnet_of_a_network() -> None:
    service = world(1)
    balanced(service, vip={"network": "front-net"})
    _, balancer = the(service, "load_balancer")
    assert (balancer["vip_network"], balancer.get("vip_subnet")) == ("front-net", None)


FAR = server_spec(context={"region_name": "east"})
REFUSED: list[tuple[str, Any, str]] = [
    ("attached twice", None, "Only one instance of policy type"),
    ("by region", ("region_placement", {"regions": [{"name": "default"}]}), "cannot be attached to one cluster"),
]


@pytest.mark.parametrize(("case", "other", "reason"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_does_not_go_with_it_fails(case: str, other: Any, reason: str) -> None:
    service = world(1)
    balanced(service)
    if other is None:
        balanced(service)
    else:
        service.attach(other[0], **other[1])
    status, why = service.ended()
    assert (status, reason in why, len(service.bound())) == ("FAILED", True, 1), why


def test_a_node_in_another_region_is_refused() -> None:
    service = world(1)
    balanced(service)
    with pytest.raises(Rejected, match="leads to nodes of its own region only"):
        service.add_node(FAR)


def test_nodes_that_join_enter_the_pool_and_those_that_leave_alive_leave_it() -> None:
    service = world(2)
    balanced(service)
    before = service.servers()
    service.remove(service.nodes()[1]["id"], destroy_after_deletion=False)
    assert (service.servers(), service.balanced()) == (before, [2])
    with service.db.read() as tx:
        (orphan,) = tx.execute(select(schema.node).where(schema.node.c.cluster_id.is_(None))).all()
    service.join(orphan.id)
    assert (service.servers(), service.balanced()) == (before, [2, 3])
