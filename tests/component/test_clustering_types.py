"""Clusters, nodes, profiles, policies and receivers of templates: made, changed, kept, and deleted."""

import pytest

from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.notifications.sinks import Sinks
from tests.component.clusters import (
    BATCH,
    DELETION,
    HEALTH,
    Clusters,
    bound,
    changed,
    cluster,
    made,
    node,
    policy,
    profile,
    whole,
)
from tests.component.running import PROJECT, double


def test_a_template_makes_a_cluster_with_all_that_belongs_to_it_and_removes_it_in_order() -> None:
    service, stack_id = made(whole())
    one = service.the("cluster")
    assert (one.id, one.desired_capacity, one.max_size) == (service.handle(stack_id), 2, 6)
    assert list(service.bound(one.id).values()) == [True]
    assert len(service.servers()) == 2
    assert service.the("receiver").cluster_id == one.id
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    gone = [each.partition(" ")[0] for each in service.story(stack_id) if each.endswith("DELETE_COMPLETE")]
    assert gone.index("out") < gone.index("cluster") < min(gone.index("policy"), gone.index("profile"))
    service.check_nothing_left()


def test_names_follow_from_the_stack_where_the_template_gives_none() -> None:
    service, _ = made(
        {"the profile!": profile(), "c": cluster(0, profile={"get_resource": "the profile!"}, name="web")}
    )
    assert service.the("profile").name.startswith("web-the-profile--")
    assert service.the("cluster").name == "web"


def test_another_capacity_resizes_in_place() -> None:
    service, stack_id = made(whole())
    before = service.handle(stack_id)
    changed(service, stack_id, whole(4))
    assert (service.handle(stack_id), len(service.servers())) == (before, 4)
    changed(service, stack_id, whole(1))
    assert (service.the("cluster").desired_capacity, len(service.servers())) == (1, 1)
    assert [each.action for each in service.rows_in("action")][-2:] == ["CLUSTER_RESIZE", "CLUSTER_RESIZE"]


def test_what_has_scaled_it_since_counts_until_the_template_says_another_capacity() -> None:
    service, stack_id = made(whole())
    service.scale_out(service.handle(stack_id), 3)
    service.rest()
    service.live(130)
    assert len(service.servers()) == 5, "it is no drift"
    changed(service, stack_id, whole(name="other"))
    assert len(service.servers()) == 5, "an update that does not change it leaves it alone"
    changed(service, stack_id, whole(name="other", max_size=3))
    assert (service.the("cluster").desired_capacity, len(service.servers())) == (3, 3), "limits hold"
    changed(service, stack_id, whole(1, name="other", max_size=3))
    assert len(service.servers()) == 1


def test_all_that_an_update_changes_is_one_revision_of_the_cluster() -> None:
    service, stack_id = made(whole())
    one = service.handle(stack_id)
    before = service.stack(one).revision
    after = whole(3, name="other", metadata={"a": 1}, timeout=600, min_size=1)
    changed(service, stack_id, {**after, "profile": profile(flavor="large")})
    row = service.the("cluster")
    assert (row.name, row.metadata, row.timeout, row.min_size) == ("other", {"a": 1}, 600, 1)
    assert service.stack(one).revision == before + 1
    flavors = [each["flavor"] for each in service.cloud.things("server").values()]
    assert flavors == ["large"] * 3
    assert service.count("profile") == 1, "the old profile goes once nothing uses it"


def test_members_are_changed_in_batches_where_a_policy_says_so() -> None:
    one = {"profile": profile(), "batch": policy(BATCH), "cluster": cluster(3, policies=bound("batch"))}
    service, stack_id = made(one, behaviour=CloudBehaviour(build_s=2.0))
    changed(service, stack_id, {**one, "profile": profile(image="j")})
    (group,) = [each.id for each in service.stacks() if each.parent_name == "nodes"]
    story = [each for each in service.story(group) if "UPDATE" in each and each[0].isdigit()]
    assert [each.split("_")[-1] for each in story] == ["PROGRESS", "COMPLETE"] * 3, "one after the other"
    assert {each["image"] for each in service.cloud.things("server").values()} == {"j"}


def test_a_policy_that_makes_things_comes_and_goes_with_an_update() -> None:
    balanced = ("senlin.policy.loadbalance-1.3", {"pool": {"subnet": "s"}, "vip": {"subnet": "s"}})
    resources = {"profile": profile(networks=[{"network": "n"}]), "lb": policy(balanced), "kills": policy(DELETION)}
    service, stack_id = made({**resources, "cluster": cluster(2)})
    one = service.handle(stack_id)
    assert service.cloud.things("load_balancer") == {}
    both = cluster(2, policies=bound("lb", "kills"), name="c")
    changed(service, stack_id, {**resources, "cluster": both})
    assert (len(service.cloud.things("load_balancer")), len(service.cloud.things("pool_member"))) == (1, 2)
    assert (len(service.bound(one)), service.the("cluster").name) == (2, "c")
    changed(service, stack_id, {**resources, "cluster": cluster(2, policies=bound("kills"), name="c")})
    assert (service.cloud.things("load_balancer"), len(service.servers())) == ({}, 2)
    changed(service, stack_id, {**resources, "cluster": both})
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()


def test_nodes_go_once_others_were_notified_and_the_rest_is_changed_before_that() -> None:
    hooks = {"type": "zaqar", "params": {"queue": "q"}, "timeout": 20}
    hooked = policy((DELETION[0], {**DELETION[1], "hooks": hooks}))
    service = Clusters()
    service.cloud.create("queue", [Creation("q-1", {"name": "q"})])
    resources = {"profile": profile(), "hooked": hooked, "cluster": cluster(3, policies=bound("hooked"))}
    stack_id = service.create(resources)
    service.rest()
    smaller = cluster(1, policies=bound("hooked"), name="small")
    service.update(stack_id, {**resources, "profile": profile(image="j"), "cluster": smaller})
    service.live(5)
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    assert {each["image"] for each in service.cloud.things("server").values()} == {"j"}
    assert len(service.servers()) == 3
    tidier = service.clustering.hook_waits.tidier(Sinks(service.clouds))
    for _ in range(30):
        tidier.tidy()
        service.live(1)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert (len(service.servers()), len(service.cloud.messages["q"])) == (1, 2)
    assert service.the("cluster").name == "small"


def test_a_node_leaves_a_cluster_alive_whatever_its_policy_of_deletion_says() -> None:
    one = {"profile": profile(), "kills": policy(DELETION), "cluster": cluster(0, policies=bound("kills"))}
    service, stack_id = made({**one, "node": node(cluster={"get_resource": "cluster"})})
    before, servers = service.handle(stack_id, "node"), service.servers()
    changed(service, stack_id, {**one, "node": node()})
    assert (service.handle(stack_id, "node"), service.servers()) == (before, servers)
    assert service.the("node").cluster_id is None


def test_policies_are_attached_switched_and_detached_in_place() -> None:
    resources = {**whole(policies=[]), "gone": policy(DELETION)}
    service, stack_id = made(resources)
    one = service.handle(stack_id)
    assert service.bound(one) == {}
    changed(service, stack_id, {**resources, **whole(policies=bound("policy", "gone"))})
    assert sorted(service.bound(one).values()) == [True, True]
    changed(service, stack_id, {**resources, **whole(policies=bound("policy", "gone", enabled=False))})
    assert sorted(service.bound(one).values()) == [False, False]
    changed(service, stack_id, {**resources, **whole(policies=bound("gone"))})
    assert list(service.bound(one).values()) == [True]
    assert service.handle(stack_id) == one


def test_policies_that_others_have_attached_stay() -> None:
    service, stack_id = made(whole())
    one = service.handle(stack_id)
    spec = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
    service.clustering.policies.create(service.scope, "theirs", spec)
    service.clustering.bindings.attach(service.scope, one, "theirs", enabled=True)
    changed(service, stack_id, whole(policies=[]))
    service.live(130)
    assert service.bound(one) == {"theirs": True}


def test_a_policy_that_does_not_fit_makes_no_cluster() -> None:
    service = Clusters()
    twice = {"other": policy(DELETION), "policy": policy(DELETION)}
    stack_id = service.create({**whole(policies=bound("policy", "other")), **twice})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "Only one instance of policy type" in service.row(stack_id, "cluster").reason
    assert service.count("cluster") == 0


def test_what_others_change_is_changed_back() -> None:
    service, stack_id = made(whole(name="mine", metadata={"a": "1"}))
    one = service.handle(stack_id)
    service.change(one, name="theirs", metadata={"a": "2"})
    service.clustering.bindings.detach(service.scope, one, service.the("policy").id)
    service.live(130)
    row = service.the("cluster")
    assert (row.name, row.metadata) == ("mine", {"a": "1"})
    assert list(service.bound(one).values()) == [True]
    assert (service.state(stack_id), service.handle(stack_id)) == ("CREATE_COMPLETE", one)


def test_a_cluster_that_is_deleted_behind_the_back_is_made_again_with_what_names_it() -> None:
    service, stack_id = made(whole())
    before = service.handle(stack_id)
    service.clustering.clusters.delete(service.scope, before, force=True)
    service.live(200)
    service.rest()
    after = service.handle(stack_id)
    assert before != after
    assert (service.the("cluster").id, len(service.servers())) == (after, 2)
    assert service.the("receiver").cluster_id == after
    assert list(service.bound(after).values()) == [True]
    assert [each.id for each in service.rows_in("record") if each.kind == "node_cluster"] == [after]
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()


def test_a_receiver_and_a_policy_that_are_deleted_behind_the_back_are_made_again() -> None:
    service, stack_id = made(whole(policies=[]))
    service.clustering.receivers.delete(service.scope, service.the("receiver").id)
    service.clustering.policies.delete(service.scope, service.the("policy").id)
    service.live(200)
    assert service.the("receiver").id == service.handle(stack_id, "out")
    assert service.the("policy").id == service.handle(stack_id, "policy")
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_cluster_that_lacks_nodes_says_so_and_stays_as_it_is() -> None:
    service, stack_id = made(whole())
    service.cloud.vanish(service.servers()[0])
    service.live(200)
    assert service.states(stack_id)["cluster"] == "CREATE_COMPLETE", "without a health policy no lost node is replaced"
    assert service.seen(stack_id, "cluster")["status"] == "warning"
    changed(service, stack_id, {**whole(), "more": double()})
    assert len(service.servers()) == 1


def test_a_cluster_with_a_health_policy_gets_its_nodes_back_by_itself() -> None:
    healing = {**whole(policies=bound("health")), "health": policy(HEALTH)}
    service, stack_id = made(healing)
    one, (lost, _) = service.handle(stack_id), service.servers()
    service.cloud.vanish(lost)
    service.live(300)
    assert len(service.servers()) == 2
    # Where a look falls between, it was found to lack a node.
    assert service.states(stack_id)["cluster"] in ("CREATE_COMPLETE", "CHECK_COMPLETE")
    assert service.handle(stack_id) == one
    assert service.seen(stack_id, "cluster")["status"] == "active"
    changed(service, stack_id, {**whole(policies=[]), "health": policy(HEALTH)})
    service.cloud.vanish(service.servers()[0])
    service.live(300)
    assert len(service.servers()) == 1, "no policy, no recovery"


def test_a_cluster_whose_nodes_fail_fails_its_resource_and_is_mended_not_replaced() -> None:
    service = Clusters(behaviour=CloudBehaviour(faults=Faults(error=1.0)))
    stack_id = service.create(whole())
    service.rest()
    assert service.states(stack_id)["cluster"] == "CREATE_FAILED"
    assert "went to status error" in service.row(stack_id, "cluster").reason.lower()
    before = service.handle(stack_id)
    service.cloud.behaviour.faults.error = 0.0
    changed(service, stack_id, whole())
    assert service.handle(stack_id) == before
    assert service.seen(stack_id, "cluster")["status"] == "active"
    assert service.seen(stack_id, "cluster")["desired_capacity"] == 2


def test_a_cluster_below_its_least_size_fails_its_resource_until_it_is_well_again() -> None:
    service, stack_id = made(whole(min_size=2))
    service.cloud.vanish(service.servers()[0])
    service.live(200)
    assert service.states(stack_id)["cluster"] == "CHECK_FAILED"
    assert "below min_size" in service.row(stack_id, "cluster").reason
    service.actions.converge(service.handle(stack_id))
    service.rest()
    service.live(130)
    assert (service.states(stack_id)["cluster"], len(service.servers())) == ("CHECK_COMPLETE", 2)


def test_an_update_brings_back_the_nodes_of_a_cluster_below_its_least_size() -> None:
    service, stack_id = made(whole(min_size=2))
    before = service.handle(stack_id)
    service.cloud.vanish(service.servers()[0])
    service.live(200)
    changed(service, stack_id, {**whole(min_size=2), "more": double()})
    assert (service.handle(stack_id), len(service.servers())) == (before, 2)
    assert service.seen(stack_id, "cluster")["status"] == "active"


@pytest.mark.heavy
def test_an_update_waits_while_something_else_goes_on_in_the_cluster() -> None:
    service, stack_id = made(whole(), behaviour=CloudBehaviour(build_s=30.0))
    service.scale_out(service.handle(stack_id), 1)
    service.update(stack_id, whole(name="other", policies=[]))
    service.live(5)
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    assert "it is already locked" in service.row(stack_id, "cluster").reason
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert (service.the("cluster").name, service.bound(service.handle(stack_id))) == ("other", {})


def test_a_stack_is_deleted_while_its_cluster_is_busy() -> None:
    service, stack_id = made(whole())
    service.cloud.behaviour.build_s = 1000.0
    service.scale_out(service.handle(stack_id), 1)
    service.delete(stack_id)
    service.rest(60)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    service.check_nothing_left()


# -- attributes --------------------------------------------------------------------------------------------------------


def test_attributes_of_a_cluster_and_its_nodes_are_read_by_other_resources() -> None:
    read = {
        "name": {"get_attr": ["cluster", "name"]},
        "nodes": {"get_attr": ["cluster", "nodes"]},
        "ids": {"get_attr": ["cluster", "collect", "$.details.id"]},
        "first": {"get_attr": ["cluster", "collect", "physical_id", 0]},
        "policies": {"get_attr": ["cluster", "policies", 0, "policy_id"]},
        "capacity": {"get_attr": ["cluster", "desired_capacity"]},
        "url": {"get_attr": ["out", "channel", "alarm_url"]},
        "server": {"get_attr": ["alone", "details", "name"]},
    }
    value = {"type": "OS::Heat::Value", "properties": {"value": read}}
    service, stack_id = made({**whole(name="c"), "alone": node(name="single"), "value": value})
    found = service.seen(stack_id, "value")["value"]
    assert (found["name"], found["capacity"], found["server"]) == ("c", 2, "single")
    assert sorted(found["nodes"]) == sorted(each.id for each in service.rows_in("node") if each.cluster_id)
    assert set(found["ids"]) < set(service.servers())
    assert found["first"] == found["ids"][0]
    assert found["policies"] == service.the("policy").id
    assert found["url"].startswith("http://api.test:8004/clustering/v1/webhooks/")


@pytest.mark.parametrize(
    ("path", "says"),
    [((), "a JSON path has to follow it"), (("$..a..b",), "more than one"), (("[",), "Invalid attribute path")],
)
def test_a_wrong_path_is_an_error_of_the_template(path: tuple[str, ...], says: str) -> None:
    value = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["cluster", "collect", *path]}}}
    service = Clusters()
    stack_id = service.create({**whole(), "value": value})
    service.rest()
    assert service.states(stack_id)["value"] == "CREATE_FAILED"
    assert says in service.row(stack_id, "value").reason


# -- moving ------------------------------------------------------------------------------------------------------------


def test_a_cluster_is_handed_from_one_stack_to_another() -> None:
    service, stack_id = made(whole())
    one = service.handle(stack_id)
    document = service.moving.abandon(stack_id)
    service.rest()
    assert service.alive() == ["cluster"], "what was abandoned stays"
    other = service.adopt(document)
    service.rest()
    assert service.state(other) == "ADOPT_COMPLETE", service.stack(other).reason
    assert (service.handle(other), len(service.servers())) == (one, 2)
    changed(service, other, whole(3))
    assert (service.handle(other), len(service.servers())) == (one, 3)
    service.delete(other)
    service.rest()
    service.check_nothing_left()


def test_a_cluster_that_is_not_there_is_made_from_the_document() -> None:
    service, stack_id = made(whole())
    document = service.moving.abandon(stack_id)
    service.rest()
    fresh = Clusters()
    other = fresh.adopt(document)
    fresh.rest()
    assert fresh.state(other) == "ADOPT_COMPLETE", fresh.stack(other).reason
    assert len(fresh.servers()) == 2
    assert fresh.the("cluster").project == PROJECT
