"""Nodes of templates, policies that name clusters, and what is refused before anything is made."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.clustering.service import membership
from homeostat.model.errors import Rejected
from tests.component.clusters import (
    DELETION,
    SCALING,
    Clusters,
    changed,
    cluster,
    made,
    node,
    policy,
    profile,
    receiver,
)
from tests.component.running import double

# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_node_without_a_cluster_lives() -> None:
    resources = {"profile": profile(), "node": node(metadata={"a": 1})}
    service, stack_id = made(resources)
    row = service.the("node")
    assert (row.id, row.metadata, len(service.servers())) == (service.handle(stack_id, "node"), {"a": 1}, 1)
    changed(service, stack_id, {"profile": profile(image="j"), "node": node(name="mine", metadata={"a": 2})})
    row = service.the("node")
    assert (row.name, row.metadata) == ("mine", {"a": 2})
    (server,) = service.cloud.things("server").values()
    assert (server["name"], server["image"]) == ("mine", "j")
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()


def test_a_node_joins_the_cluster_that_it_names() -> None:
    inside = node(cluster={"get_resource": "cluster"}, name="mine")
    resources = {"profile": profile(), "cluster": cluster(1), "node": inside}
    service, stack_id = made(resources)
    named = {each.name: each.cluster_id for each in service.rows_in("node")}
    assert (named["mine"], len(named)) == (service.handle(stack_id), 2)
    assert service.seen(stack_id, "node")["cluster_id"] == service.handle(stack_id)
    changed(service, stack_id, {**resources, "more": double()})
    service.live(130)
    assert len(service.servers()) == 2, "the capacity of the cluster has grown with it"
    changed(service, stack_id, {"profile": profile(), "cluster": cluster(1)})
    assert [each for each in service.rows_in("node") if each.name == "mine" and not each.leaving] == []
    assert len(service.servers()) == 1


def test_a_node_moves_alive_from_cluster_to_cluster_and_out_of_them() -> None:
    both = {"profile": profile(), "cluster": cluster(0), "second": cluster(0)}
    alone = {**both, "node": node(name="mine")}
    service, stack_id = made(alone)
    before, servers = service.handle(stack_id, "node"), service.servers()
    for named in ("cluster", "second"):
        changed(service, stack_id, {**both, "node": node(name="mine", cluster={"get_resource": named})})
        assert service.seen(stack_id, "node")["cluster_id"] == service.handle(stack_id, named)
        assert (service.handle(stack_id, "node"), service.servers()) == (before, servers)
    changed(service, stack_id, {**both, "node": node(name="own", metadata={"a": 1})})
    row = service.the("node")
    assert (row.id, row.cluster_id, row.name, row.metadata) == (before, None, "own", {"a": 1})
    assert service.servers() == servers
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()


def test_a_node_that_others_take_out_of_its_cluster_comes_back() -> None:
    inside = node(cluster={"get_resource": "cluster"})
    service, stack_id = made({"profile": profile(), "cluster": cluster(0), "node": inside})
    one, id, servers = service.handle(stack_id), service.handle(stack_id, "node"), service.servers()
    sizing, out = service.clustering.sizing, {"destroy_after_deletion": False}
    service.clustering.clusters.change(
        service.scope, one, lambda tx, row: sizing.del_nodes(tx, row, service.scope, [id], out)
    )
    assert service.the("node").cluster_id is None
    service.live(200)
    assert (service.the("node").cluster_id, service.servers()) == (one, servers)
    assert service.handle(stack_id, "node") == id


def test_a_node_that_others_put_into_a_cluster_stays_there() -> None:
    resources = {"profile": profile(), "cluster": cluster(0), "node": node(name="mine")}
    service, stack_id = made(resources)
    one, id = service.handle(stack_id), service.handle(stack_id, "node")
    service.clustering.clusters.change(
        service.scope, one, lambda tx, row: membership.add_nodes(tx, row, service.scope, [id])
    )
    service.rest()
    changed(service, stack_id, {**resources, "node": node(name="other")})
    row = service.the("node")
    assert (row.name, row.cluster_id) == ("other", one)


# -- policies that name clusters ---------------------------------------------------------------------------------------


def binding(of: tuple[str, dict[str, Any]] = SCALING, *names: str, enabled: bool = True) -> dict[str, Any]:
    bindings = [{"cluster": {"get_resource": name}, "enabled": enabled} for name in names]
    return policy(of, bindings=bindings)


def test_a_policy_is_attached_to_the_clusters_that_it_names() -> None:
    both = {"profile": profile(), "cluster": cluster(0), "second": cluster(0)}
    service, stack_id = made({**both, "policy": binding(DELETION, "cluster")})
    one, two = service.handle(stack_id), service.handle(stack_id, "second")
    assert (list(service.bound(one).values()), service.bound(two)) == ([True], {})
    changed(service, stack_id, {**both, "policy": binding(DELETION, "second", enabled=False)})
    assert (service.bound(one), list(service.bound(two).values())) == ({}, [False])
    service.clustering.bindings.detach(service.scope, two, service.the("policy").id)
    service.live(200)
    assert list(service.bound(two).values()) == [False], "and attached again"
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()


def test_a_policy_waits_for_a_cluster_that_is_busy() -> None:
    service, stack_id = made(
        {"profile": profile(), "cluster": cluster(1, name="c")}, behaviour=CloudBehaviour(build_s=30.0)
    )
    service.scale_out(service.handle(stack_id), 1)
    other = service.create({"policy": policy(bindings=[{"cluster": "c"}])}, name="other")
    service.live(3)
    assert service.state(other) == "CREATE_IN_PROGRESS"
    service.rest()
    assert service.state(other) == "CREATE_COMPLETE"
    assert list(service.bound(service.handle(stack_id)).values()) == [True]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        (cluster(1, min_size=2), "desired_capacity must be between min_size and max_size"),
        (cluster(5, min_size=5, max_size=4), "min_size can not be greater than max_size"),
        (cluster(1001), "maximum number of nodes"),
        (cluster(1, name="a b"), "letters, digits and"),
        (cluster(1, max_size=-2), "out of range"),
        (cluster(1, profile="nothing"), "The Profile (nothing) could not be found"),
        (cluster(1, policies=[{"policy": "nothing"}]), "The Policy (nothing) could not be found"),
        (profile(flavour="small"), "flavour"),
        (policy(("senlin.policy.sharding-1.0", {})), "available policy types are senlin.policy.affinity-1.0"),
        (policy(("senlin.policy.scaling-1.0", {"event": "x"})), "event"),
        (policy(bindings=[{"cluster": "nothing"}]), "The Cluster (nothing) could not be found"),
        (receiver(action="CLUSTER_CREATE"), "not an allowed value"),
        (receiver(type="message"), "not an allowed value"),
        (receiver(cluster="nothing"), "The Cluster (nothing) could not be found"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(resource: dict[str, Any], says: str) -> None:
    service = Clusters()
    with pytest.raises(Rejected) as error:
        service.create({"profile": profile(), "cluster": cluster(0), "it": resource})
    assert says in str(error.value)
    assert service.count("profile") == 0


def test_container_profiles_are_refused_with_a_reason() -> None:
    one = {"type": "OS::Senlin::Profile", "properties": {"type": "container.dockerinc.docker-1.0"}}
    with pytest.raises(Rejected, match="OS::Zun::Container"):
        Clusters().create({"it": one})
