"""Clusters of templates with policies that put something into their stacks."""

from typing import Any

from tests.component.clusters import Clusters, bound, cluster, policy, profile

BALANCING = ("senlin.policy.loadbalance-1.3", {"pool": {"subnet": "back"}, "vip": {"subnet": "front"}})
APART = ("senlin.policy.affinity-1.0", {"servergroup": {"policies": "soft-anti-affinity"}})


def resources(count: int = 2, *names: str, **more: Any) -> dict[str, Any]:
    policies = {"balancing": policy(BALANCING), "apart": policy(APART)}
    return {"profile": profile(), **policies, "cluster": cluster(count, policies=bound(*names, **more))}


def balanced(service: Clusters) -> int:
    """How many servers are in the pool; each is there once."""
    members = [each["server"] for each in service.cloud.things("pool_member").values()]
    assert len(set(members)) == len(members)
    return len(set(members) & set(service.servers()))


def changed(service: Clusters, stack_id: str, *arguments: Any, **more: Any) -> None:
    service.update(stack_id, resources(*arguments, **more))
    service.rest(900)
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.stack(stack_id).reason


def test_a_cluster_is_made_with_its_balancer_and_its_group() -> None:
    service = Clusters()
    stack_id = service.create(resources(2, "balancing", "apart"))
    service.rest(900)
    assert service.state(stack_id) == "CREATE_COMPLETE", service.stack(stack_id).reason
    assert balanced(service) == 2
    assert len(service.cloud.things("server_group")) == 1
    changed(service, stack_id, 3, "balancing", "apart")
    ((group, _),) = service.cloud.things("server_group").items()
    hints = [(each.get("scheduler_hints") or {}).get("group") for each in service.cloud.things("server").values()]
    assert (balanced(service), sorted(map(str, hints))) == (3, ["None", "None", group])
    service.delete(stack_id)
    service.rest(900)
    service.live(900)
    service.check_nothing_left()


def test_a_policy_comes_and_goes_with_the_template() -> None:
    service = Clusters()
    stack_id = service.create(resources(1))
    service.rest(900)
    before = service.servers()
    changed(service, stack_id, 2, "balancing")
    assert (balanced(service), before[0] in service.servers()) == (2, True)
    changed(service, stack_id, 3, "balancing", enabled=False)
    assert balanced(service) == 2
    changed(service, stack_id, 3)
    assert (balanced(service), service.cloud.things("load_balancer")) == (0, {})
    assert len(service.servers()) == 3
