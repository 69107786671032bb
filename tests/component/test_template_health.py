"""Homeostat::HealthPolicy: groups and servers of templates get a health policy of their own."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.store.shards import health
from homeostat.store.stacks import member_health
from tests.component.marked import mark
from tests.component.running import Service, group, server, volume

STATUS = {"type": "NODE_STATUS_POLLING"}


def policy(target: str = "g", modes: Sequence[Any] = (STATUS,), **more: Any) -> dict[str, Any]:
    detection = {"interval": 60, "node_update_timeout": 0, "detection_modes": list(modes)}
    return {
        "type": "Homeostat::HealthPolicy",
        "properties": {"target": {"get_resource": target}, "detection": detection, **more},
    }


class Healed(Service):
    """A stack of these resources at rest."""

    def __init__(self, resources: dict[str, Any]) -> None:
        super().__init__(CloudBehaviour(build_s=1.0))
        self.id = self.create(resources)
        self.rest()
        assert self.state(self.id) == "CREATE_COMPLETE"

    def change(self, resources: dict[str, Any]) -> None:
        self.update(self.id, resources)
        self.rest()

    def members(self) -> list[str]:
        rows = self.rows(self.child().id)
        return [row.handle for row in sorted(rows, key=lambda row: int(row.name)) if row.replaced_by is None]

    def findings(self) -> list[str]:
        with self.db.read() as tx:
            return [each.health.finding for each in member_health.listed(tx, self.stack(self.id), None, "", 100)]


def grouped(**more: Any) -> dict[str, Any]:
    return {"g": group(3, server(name="m%index%")), "p": policy(**more)}


def test_a_policy_that_asks_what_the_service_may_not_ask_is_refused_when_it_is_made_and_when_it_is_changed() -> None:
    options = {"poll_url": "http://10.1.2.3/{nodename}"}
    scope = grouped(modes=[{"type": "NODE_STATUS_POLL_URL", "options": options}])
    service = Healed(grouped())
    for request in (lambda: service.update(service.id, scope), lambda: service.begin(scope, name="other")):
        with pytest.raises(Rejected) as refused:
            request()
        assert "the operator can allow it with --fetch-from" in str(refused.value)
        assert "detection.detection_modes" in str(refused.value)


@pytest.mark.parametrize("kind", ["OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"])
def test_a_member_that_is_unhealthy_is_made_again_and_no_other(kind: str) -> None:
    member = server(name="m")
    wanted = {"count": 3, "resource_def": member}
    if kind == "OS::Heat::AutoScalingGroup":
        wanted = {"min_size": 1, "max_size": 5, "desired_capacity": 3, "resource": member}
    service = Healed({"g": {"type": kind, "properties": wanted}, "p": policy()})
    before = service.members()
    service.cloud.change(before[1], status="stopped")
    service.live(90.0)
    after = service.members()
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert before[1] not in service.servers()
    assert service.findings() == ["healthy"] * 3
    assert service.state(service.id) == "CREATE_COMPLETE"


@pytest.mark.shows("HS13")
def test_its_actions_are_tried_one_by_one() -> None:
    service = Healed(grouped(recovery={"actions": [{"name": "REBOOT"}, {"name": "RECREATE"}]}))
    before = service.members()
    service.cloud.change(before[1], status="stopped")
    service.live(90.0)
    assert service.members() == before
    assert service.cloud.things("server")[before[1]]["status"] == "active"


def test_a_single_server_has_one_too() -> None:
    service = Healed({"one": server(), "other": server(), "p": policy("one")})
    one, other = (service.row(service.id, name).handle for name in ("one", "other"))
    service.cloud.change(one, status="stopped")
    service.live(90.0)
    assert service.row(service.id, "one").handle != one
    assert service.row(service.id, "other").handle == other


def test_what_has_vanished_is_recovered_by_the_policy_and_made_once() -> None:
    service = Healed(grouped())
    before = service.members()
    service.cloud.vanish(before[0])
    service.live(90.0)
    assert len(service.servers()) == 3
    assert before[0] not in service.members()


def test_a_policy_that_observes_leaves_it_to_users() -> None:
    service = Healed(grouped(recovery={"mode": "observe"}))
    before = service.members()
    service.cloud.change(before[1], status="error")
    service.live(200.0)
    assert service.members() == before
    assert service.findings().count("unhealthy") == 1


def test_it_holds_as_long_as_the_template_has_it_and_as_the_template_says() -> None:
    service = Healed(grouped(recovery={"mode": "observe"}))
    before = service.members()
    service.cloud.change(before[1], status="stopped")
    service.live(90.0)
    service.change(grouped())
    service.live(90.0)
    assert service.members()[1] != before[1], "amended, it recovers what it has found"
    service.change(grouped(enabled=False))
    assert service.findings() == []
    resources = grouped()
    del resources["p"]
    service.change(resources)
    before = service.members()
    service.cloud.change(before[0], status="stopped")
    service.live(200.0)
    assert service.members() == before, "without a policy convergence starts it"
    assert service.cloud.things("server")[before[0]]["status"] == "active"


def test_deleting_the_stack_leaves_nothing() -> None:
    service = Healed(grouped())
    service.delete(service.id)
    service.rest()
    assert service.state(service.id) == "DELETE_COMPLETE"
    with service.db.read() as tx:
        assert (service.servers(), health.checks_of(tx, [service.id])) == ([], {})


def test_a_second_policy_for_the_same_group_is_refused() -> None:
    service = Service()
    stack_id = service.create({**grouped(), "q": {**policy(), "depends_on": "p"}})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "Another health policy holds for g already" in service.row(stack_id, "q").reason


def test_what_is_neither_a_group_nor_a_server_is_refused() -> None:
    service = Service()
    stack_id = service.create(
        {"g": volume(), "word": {"type": "OS::Heat::RandomString"}, "p": policy(), "q": policy("word")}
    )
    service.rest()
    assert "a health policy holds for a group or a server" in service.row(stack_id, "p").reason
    assert "it refers to no group and no server of this stack" in service.row(stack_id, "q").reason


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"interval": 5}, "health_check_interval_min of 60 seconds"),
        ({"strange": 1}, "strange"),
        ({"detection_modes": [{"type": "SMOKE"}]}, "SMOKE"),
    ],
)
def test_a_wrong_policy_is_refused_at_the_door(wrong: dict[str, Any], said: str) -> None:
    resources = grouped()
    resources["p"]["properties"]["detection"] |= wrong
    with pytest.raises(Rejected) as refused:
        Service().create(resources)
    assert said in str(refused.value)
    assert "resources.p.properties" in str(refused.value)


def test_a_wrong_policy_of_values_that_come_late_is_refused_too() -> None:
    resources = {**grouped(), "late": {"type": "OS::Heat::TestResource", "properties": {"value": "1"}}}
    resources["p"]["properties"]["detection"]["interval"] = {"get_attr": ["late", "output"]}
    service = Service()
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "health_check_interval_min of 60 seconds" in service.row(stack_id, "p").reason


def test_the_policy_before_holds_when_a_change_of_it_is_refused() -> None:
    service = Healed({**grouped(), "v": volume()})
    service.update(service.id, {**grouped(), "v": volume(), "p": policy("v")})
    service.rest()
    assert service.state(service.id) == "UPDATE_FAILED"
    before = service.members()
    service.cloud.change(before[1], status="error")
    service.live(90.0)
    assert service.members()[1] != before[1]


def test_a_policy_that_is_made_again_takes_the_place_of_the_one_before() -> None:
    service = Healed(grouped())
    mark(service, service.id, "p")
    service.change(grouped())
    service.live(90.0)
    assert service.state(service.id) == "UPDATE_COMPLETE"
    before = service.members()
    service.cloud.change(before[1], status="error")
    service.live(90.0)
    assert service.members()[1] != before[1]


@pytest.mark.shows("HS30")
def test_an_action_for_servers_alone_is_refused_for_others() -> None:
    service = Service()
    member = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}
    recovery = {"actions": [{"name": "REBOOT"}]}
    stack_id = service.create({"g": group(2, member), "p": policy(recovery=recovery)})
    service.rest()
    assert "REBOOT" in service.row(stack_id, "p").reason
