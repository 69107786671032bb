"""Rollouts of metadata: members of a group get new metadata step by step, and what they report decides what follows."""

from typing import Any

import pytest
from sqlalchemy import event

from homeostat.builtin.group_metadata import VirtualLocation, instance_metadata
from homeostat.builtin.signals import metadata_of
from homeostat.model.errors import Rejected
from homeostat.model.rollout import RolloutSettings, step_size
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.stacks import rollouts
from tests.component.running import PROJECT, Service, group, server

TIMEOUT_S = 60


def resources(
    value: str, count: int = 4, pattern: str = "rolling", gated: bool = True, **policy: Any
) -> dict[str, Any]:
    """A group with metadata, and a wait condition that depends on it."""
    mine = {**group(count, server(name="m%index%"), metadata_update_pattern=pattern), "metadata": {"v": value}}
    if policy:
        mine["update_policy"] = {"rollout": policy}
    condition = {"handle": {"get_resource": "handle"}, "timeout": TIMEOUT_S, "count": 1}
    gate = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {"type": "OS::Heat::WaitCondition", "properties": condition, "depends_on": ["group"]},
    }
    return {"group": mine, **(gate if gated else {})}


class Group(Service):
    """A service with one group at rest."""

    def __init__(self, count: int = 4, pattern: str = "rolling", gated: bool = True, **policy: Any) -> None:
        super().__init__()
        self.more = {"count": count, "pattern": pattern, "gated": gated, **policy}
        self.id = self.begin(resources("1", **self.more))
        if gated:
            self.live(5)
            self.signal(self.id, "handle")
        self.rest()
        assert self.state(self.id) == "CREATE_COMPLETE"

    def change(self, value: str, **more: Any) -> None:
        self.more |= more
        self.update(self.id, resources(value, **self.more))
        self.live(1)

    @property
    def members(self) -> list[str]:
        """Handles of the members, in the order of their numbers."""
        rows = sorted(self.rows(self.child().id), key=lambda row: int(row.name))
        return [row.handle for row in rows]

    def metadata(self, member: str) -> Any:
        """What a member reads at its virtual location."""
        with self.db.read() as tx:
            row = rollouts.metadata_of(tx, self.id, "group", member)
        assert row is not None
        return row.metadata if row.instance_id is None else row.new_metadata

    def own(self, number: int) -> Any:
        """What a member reads at its own address."""
        with self.db.read() as tx:
            (owner,) = records.owners_of(tx, [self.members[number]])
            return metadata_of(tx, PROJECT, owner, owner.parent_key)

    def values(self) -> str:
        return "".join(self.metadata(each)["v"] for each in self.members)

    def report(self, member: int, status: str = "SUCCESS", reason: str = "done") -> None:
        self.signal(self.id, "handle", {"status": status, "reason": reason, "data": self.members[member]})
        self.live(0.1)

    def active(self) -> int:
        with self.db.read() as tx:
            return len(tx.execute(schema.active_metadata_updates.select()).all())

    @property
    def group_row(self) -> Any:
        return self.row(self.id, "group")


@pytest.mark.shows("RU3", "RU6", "RU7")
def test_one_member_after_the_other_gets_it_as_the_one_before_reports() -> None:
    service = Group()
    assert service.values() == "1111"
    service.change("2")
    seen = [service.values()]
    for number in range(4):
        service.report(number)
        seen.append(service.values())
    assert seen == ["2111", "2211", "2221", "2222", "2222"]
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"
    assert (service.group_row.metadata, service.group_row.new_metadata) == ({"v": "2"}, None)
    assert service.active() == 0


@pytest.mark.shows("RU3")
def test_a_failure_brings_the_old_metadata_back_at_once() -> None:
    service = Group()
    service.change("2")
    service.report(0)
    assert service.values() == "2211"
    service.report(1, "FAILURE", "it does not start")
    assert (service.values(), service.active()) == ("1111", 0)
    service.rest()
    assert service.state(service.id) == "UPDATE_FAILED"
    reason = service.group_row.reason
    assert "step 2: 1 member failed" in reason
    assert f"{service.members[1]}: it does not start" in reason
    assert service.group_row.metadata == {"v": "1"}


@pytest.mark.shows("RU3")
def test_silence_is_a_failure_once_the_time_of_the_wait_condition_is_over() -> None:
    service = Group()
    service.change("2")
    service.live(TIMEOUT_S - 5)
    assert service.values() == "2111"
    service.live(10)
    assert service.values() == "1111"
    service.rest()
    assert service.state(service.id) == "UPDATE_FAILED"
    assert "0 of 1 member reported success within 60 s" in service.group_row.reason


@pytest.mark.shows("RU4")
def test_a_canary_goes_on_in_growing_steps() -> None:
    service = Group(60, "canary")
    service.change("2")
    steps = []
    while "1" in service.values():
        steps.append(service.values().count("2"))
        for number, value in enumerate(service.values()):
            if value == "2":
                service.report(number)
    assert steps == [1, 3, 12]
    for number in range(60):
        service.report(number)
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


@pytest.mark.shows("RU1")
def test_immediate_gives_it_to_all() -> None:
    service = Group(pattern="immediate")
    service.change("2")
    assert (service.values(), service.active()) == ("2222", 0)
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_without_a_gate_every_step_follows_at_once() -> None:
    service = Group(gated=False)
    service.change("2")
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_a_corrected_template_repairs_a_rollout_and_begins_with_those_that_had_the_wrong_one() -> None:
    service = Group(pattern="canary", steps=["2", "100%"], order="random", seed=3)
    service.change("2")
    first = service.values()
    assert sorted(first) == ["1", "1", "2", "2"]
    service.change("3")
    assert service.values() == first.replace("2", "3")
    for number in range(4):
        service.report(number)
    for number in range(4):
        service.report(number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("3333", "UPDATE_COMPLETE")


def test_a_change_of_mind_brings_the_old_metadata_back() -> None:
    service = Group()
    service.change("2")
    service.report(0)
    service.change("1")
    service.rest()
    assert (service.values(), service.active()) == ("1111", 0)
    assert service.state(service.id) == "UPDATE_COMPLETE"


@pytest.mark.shows("RU8")
def test_so_many_failures_as_the_budget_allows_do_not_stop_it() -> None:
    service = Group(pattern="canary", steps=["100%"], max_failures=1)
    service.change("2")
    service.report(0, "FAILURE", "old hardware")
    assert service.values() == "2222"
    for number in range(1, 4):
        service.report(number)
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


@pytest.mark.shows("RU8")
def test_a_rollout_that_is_held_waits_for_a_person() -> None:
    service = Group(on_failure="hold")
    service.change("2")
    service.report(0, "FAILURE", "no")
    service.live(7200)
    assert (service.values(), service.state(service.id)) == ("2111", "UPDATE_IN_PROGRESS")
    service.rollouts.resume(service.group_row.key)
    service.live(1)
    assert service.values() == "2211"
    service.rollouts.promote(service.group_row.key)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


@pytest.mark.shows("RU8")
def test_an_aborted_rollout_leaves_all_as_it_is_and_the_next_one_begins_there() -> None:
    service = Group()
    service.change("2")
    service.report(0)
    service.rollouts.abort(service.group_row.key)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2211", "UPDATE_FAILED")
    service.change("3")
    for number in (0, 1, 2, 3):
        assert service.values().count("3") == number + 1
        service.report(number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("3333", "UPDATE_COMPLETE")


@pytest.mark.shows("RU8")
def test_each_step_waits_for_approval_where_that_is_wanted() -> None:
    service = Group(2, approval=True)
    service.change("2")
    service.report(0)
    service.live(100)
    assert service.values() == "21"
    service.rollouts.approve(service.group_row.key)
    service.live(1)
    assert service.values() == "22"
    service.report(1)
    service.rest()
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_a_paused_rollout_moves_when_it_is_resumed() -> None:
    service = Group()
    service.change("2")
    service.rollouts.pause(service.group_row.key)
    service.report(0)
    service.live(2 * TIMEOUT_S)
    assert service.values() == "2111"
    service.rollouts.resume(service.group_row.key)
    service.live(1)
    assert service.values() == "2211"


def test_a_step_bakes_before_the_next_one() -> None:
    service = Group(2, bake_time=30)
    service.change("2")
    service.report(0)
    service.live(25)
    assert service.values() == "21"
    service.live(10)
    assert service.values() == "22"


@pytest.mark.parametrize(("step", "size"), [("1", 1), ("1%", 1), ("5%", 3), ("20%", 12), ("100%", 60), ("0.1%", 1)])
def test_sizes_of_steps(step: str, size: int) -> None:
    assert step_size(step, 60) == size


def test_steps_that_would_not_grow_are_passed_by() -> None:
    settings = RolloutSettings(steps=("1", "1%", "5%", "100%"))
    assert [settings.target(active, 10) for active in (0, 1, 10)] == [1, 10, 10]


ALARM = {"current": "alarm", "previous": "ok", "alarm_name": "errors", "reason": "too many errors"}
ALERT = {"status": "firing", "alerts": [{"labels": {"alertname": "Errors"}}, {"labels": {"alertname": "Errors"}}]}


@pytest.mark.parametrize(("body", "says"), [(ALARM, "errors: too many errors"), (ALERT, "Errors fires")])
def test_an_alarm_stops_it(body: dict[str, Any], says: str) -> None:
    service = Group(alarms=["handle"])
    service.change("2")
    over = {"current": "ok"} if "current" in body else {"status": "resolved"}
    service.signal(service.id, "handle", {**body, **over})
    service.report(0)
    assert service.values() == "2211"
    service.signal(service.id, "handle", body)
    assert service.values() == "1111"
    service.rest()
    assert f"step 2: {says}" in service.group_row.reason


def test_an_alarm_counts_once_its_stack_is_unlocked() -> None:
    """A lock leaves members as they are; the alarm is not lost."""
    service = Group(alarms=["handle"])
    service.change("2")
    service.report(0)
    lock_row(service)
    service.signal(service.id, "handle", ALARM)
    service.live(30)
    assert service.values() == "2211"
    lock_row(service, locked=False)
    service.live(5)
    assert service.values() == "1111"
    assert "step 2: errors: too many errors" in service.group_row.reason


def test_a_lock_takes_no_time_from_the_members_of_a_step() -> None:
    service = Group()
    service.change("2")
    lock_row(service)
    service.live(2 * TIMEOUT_S)
    lock_row(service, locked=False)
    service.live(TIMEOUT_S / 2)
    assert service.values() == "2111"
    service.report(0)
    assert service.values() == "2211"


def lock_row(service: Service, *, locked: bool = True) -> None:
    """A lock that stands while an update goes on: users get one only at rest, a program of another version may not."""
    lock = {"level": "stacks", "owner": "ann", "reason": "audit"} if locked else None
    with service.db.write() as tx:
        tx.execute(schema.stack.update().where(schema.stack.c.parent_id.is_(None)).values(lock=lock))


def test_an_alarm_that_comes_while_it_is_paused_is_accepted_with_the_resumption() -> None:
    service = Group(alarms=["handle"])
    service.change("2")
    service.rollouts.pause(service.group_row.key)
    service.signal(service.id, "handle", ALARM)
    service.signal(service.id, "handle", ALARM)
    said = [each.reason for each in service.events(service.id, "group") if each.action == "SIGNAL"]
    assert said == ["Signal: errors: too many errors"]
    service.rollouts.resume(service.group_row.key)
    service.report(0)
    assert service.values() == "2211"


@pytest.mark.parametrize(
    ("answers", "values", "state"),
    [
        (["200"], "22", "UPDATE_COMPLETE"),
        (["503", "it took more than 3 s", "200"], "22", "UPDATE_COMPLETE"),
        (["404"], "11", "UPDATE_FAILED"),
        (["200", "500"], "11", "UPDATE_FAILED"),
    ],
    ids=["yes", "yes in the end", "no", "never yes to the second step"],
)
def test_a_url_approves_each_step(answers: list[str], values: str, state: str) -> None:
    service = Group(2, gated=False, checks=["https://health.example/web"], progress_deadline=60)
    left = list(answers)

    def ask(url: str) -> str:
        assert url == "https://health.example/web"
        return left.pop(0) if len(left) > 1 else left[0]

    service.rollouts._ask = ask
    service.change("2")
    service.rest()
    assert (service.values(), service.state(service.id)) == (values, state)


@pytest.mark.parametrize("policy", ["text", ["list"], {"alarms": "nothing"}])
def test_a_template_may_mean_something_else_by_a_rollout(policy: Any) -> None:
    """The update policy of a nested template is its own."""
    files = {"inner.yaml": "heat_template_version: 2018-08-31\nresources: {}\n"}
    resources = {"a": {"type": "inner.yaml", "update_policy": {"rollout": policy}}}
    assert Service().begin(resources, files=files)


def test_handles_for_alarms_have_to_be_in_the_template() -> None:
    with pytest.raises(Rejected, match="'nothing' is no wait condition handle"):
        Service().begin(resources("1", alarms=["nothing"]))


@pytest.mark.shows("RU2", "RU5")
def test_a_member_has_the_metadata_of_its_group_beside_its_own() -> None:
    service = Group(2)
    service.change("2")
    assert [service.own(number) for number in (0, 1)] == [{"v": "2"}, {"v": "1"}]


def test_a_member_of_a_group_without_a_pattern_has_its_own_metadata_alone_as_in_heat() -> None:
    service = Service()
    stack_id = service.create({"group": {**group(1), "metadata": {"v": "1"}}})
    service.rest()
    with service.db.read() as tx:
        (owner,) = records.owners_of(tx, [service.rows(service.child().id)[0].handle])
        assert metadata_of(tx, PROJECT, owner, owner.parent_key) == {}
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_member_is_reached_in_one_statement() -> None:
    service = Group(2)
    service.change("2")
    statements: list[str] = []
    first, second = service.members
    with service.db.read() as tx:
        event.listen(tx, "before_cursor_execute", lambda *said: statements.append(said[2]))
        assert instance_metadata(tx, service.id, VirtualLocation("group", first)) == {"v": "2"}
        assert instance_metadata(tx, service.id, VirtualLocation("group", second)) == {"v": "1"}
    assert len([each for each in statements if each.startswith("SELECT")]) == 2
    with service.db.read() as tx:
        assert instance_metadata(tx, service.id, VirtualLocation("wait", "x")) is None
        assert instance_metadata(tx, service.id, VirtualLocation("group", "nobody")) is None


def test_what_a_member_inherits_is_one_statement_more_and_in_a_root_stack_none() -> None:
    service = Group(2)
    service.change("2")
    statements: list[str] = []
    with service.db.read() as tx:
        (owner,) = records.owners_of(tx, [service.members[0]])
        event.listen(tx, "before_cursor_execute", lambda *said: statements.append(said[2]))
        assert metadata_of(tx, PROJECT, owner, owner.parent_key) == {"v": "2"}
        inside = len(statements)
        assert metadata_of(tx, PROJECT, owner, None) == {}
    assert inside - (len(statements) - inside) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": ["0"]},
        {"steps": ["5%", "a"]},
        {"steps": ["101%"]},
        {"max_failures": -1},
        {"checks": ["file:///etc/passwd"]},
    ],
)
def test_wrong_settings_are_refused_with_their_place(settings: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match=r"resources.group.*rollout") as refused:
        Service().begin(resources("1", **settings))
    assert "update_policy" in ".".join(map(str, refused.value.path)) or "update_policy" in str(refused.value)
