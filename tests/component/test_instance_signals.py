"""Groups of instances that wait for the signals of their members, as CloudFormation's templates ask for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import func, select

from homeostat.builtin import member_reports
from homeostat.builtin.member_reports import MemberReport, report_of
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.members import rolling_update
from homeostat.desired import members
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.services.explainer import Explainer
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.stacks import stacks
from tests.component.fleets import AWS, HEAT, Fleet, cfn, creation
from tests.component.running import PROJECT, Service

MEMBER = """
heat_template_version: 2018-08-31
parameters:
  ImageId: { type: string }
  InstanceType: { type: string }
  Tags: { type: json }
resources:
  server:
    type: OS::Nova::Server
    properties: { image: { get_param: ImageId }, flavor: { get_param: InstanceType } }
"""


@pytest.mark.parametrize("kind", [AWS, HEAT])
def test_the_next_batch_begins_once_the_members_of_the_one_before_have_signalled(kind: str) -> None:
    fleet = Fleet(kind=kind)
    assert fleet.status == "CREATE_COMPLETE", "an update policy asks nothing of a creation"
    fleet.change("two")
    seen = [fleet.images()]
    for number in (2, 1):
        fleet.live(60)
        assert fleet.images() == seen[-1]
        fleet.say(number)
        seen.append(fleet.images())
    assert seen == ["oot", "ott", "ttt"]
    assert fleet.status == "UPDATE_IN_PROGRESS", "the last one has to signal, too"
    fleet.say(0)
    assert fleet.status == "UPDATE_COMPLETE"
    assert left(fleet) == 0


def left(service: Service) -> int:
    """How many reports are stored."""
    with service.db.read() as tx:
        return int(tx.execute(select(func.count()).select_from(schema.member_report)).scalar_one())


def test_who_does_not_signal_in_time_fails_the_update() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.say(2)
    fleet.live(200)
    assert (fleet.status, fleet.images()) == ("UPDATE_FAILED", "ott")
    assert fleet.reason == (
        "ResourceInError: resources.group: Received 1 SUCCESS signal(s) out of 3. Unable to satisfy 100% "
        "MinSuccessfulInstancesPercent requirement, which needs 3: batch 2: 1 did not report within 120 s"
    )
    fleet.live(300)
    assert fleet.images() == "ott", "nobody else was touched"


def test_who_signals_a_failure_ends_it_at_once() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.say(2, "FAILURE", "port 80 is closed")
    assert fleet.status == "UPDATE_FAILED"
    assert "batch 1: 2 failed: port 80 is closed" in fleet.reason
    assert "Received 0 SUCCESS signal(s) out of 3." in fleet.stack(fleet.id).reason


def test_a_stack_goes_back_where_it_may_and_waits_for_signals_there_too() -> None:
    fleet = Fleet(rollback=True)
    fleet.change("two")
    fleet.say(2)
    fleet.say(1, "FAILURE", "no")
    assert fleet.status == "ROLLBACK_IN_PROGRESS"
    seen = [fleet.images()]
    for number in (1, 2):  # the one that failed first: it is away anyway
        fleet.say(number)
        seen.append(fleet.images())
    assert seen == ["oot", "ooo", "ooo"]
    assert fleet.status == "ROLLBACK_COMPLETE"


def test_a_share_of_the_whole_update_has_to_succeed() -> None:
    fleet = Fleet(4, MinSuccessfulInstancesPercent=50)
    fleet.change("two")
    fleet.say(3, "FAILURE", "no")
    fleet.live(130)  # 2 says nothing
    assert fleet.images() == "ottt"
    fleet.say(1)
    fleet.say(0, "FAILURE", "not I either")
    assert fleet.status == "UPDATE_FAILED"
    assert "Received 1 SUCCESS signal(s) out of 4. Unable to satisfy 50%" in fleet.reason
    assert "needs 2: batch 4: 0 failed: not I either; 2 of earlier batches did not report success" in fleet.reason


def test_a_failure_after_a_success_counts_and_a_success_after_a_failure_does_not() -> None:
    fleet = Fleet(4, MaxBatchSize=2, MinSuccessfulInstancesPercent=75)
    fleet.change("two")
    fleet.say(3)
    fleet.say(3, "FAILURE", "later")
    fleet.say(3)
    assert fleet.status == "UPDATE_IN_PROGRESS"
    fleet.say(2, "FAILURE")
    assert fleet.status == "UPDATE_FAILED"
    assert "batch 1: 2 failed; 3 failed: later" in fleet.reason


def test_a_signal_may_come_while_the_batch_is_being_made() -> None:
    fleet = Fleet()
    fleet.stack_service.update(fleet.id, StackRequest(cfn("two", **fleet.more)))
    fleet.work()
    fleet.live(0.5)
    new = next(each for each in fleet.rows(fleet.child().id) if each.properties["ImageId"] == "two" and each.handle)
    fleet.report_member(fleet.id, "group", new.handle)
    fleet.live(10)
    assert fleet.images() == "ott", "the first batch is done"


def test_what_was_said_of_the_definition_before_says_nothing_of_the_new_one() -> None:
    fleet = Fleet(2)
    fleet.change("two")
    fleet.say(1)
    fleet.change("three")
    assert fleet.images() == "th" or fleet.images() == "tt"
    assert fleet.status == "UPDATE_IN_PROGRESS"
    for number in (0, 1):  # the one that has not signalled takes the new definition first
        fleet.say(number)
    assert fleet.status == "UPDATE_COMPLETE"
    assert {each["image"] for each in fleet.cloud.things("server").values()} == {"three"}


def test_an_update_that_leaves_the_definition_waits_for_the_same_signals() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.change("two", MinSuccessfulInstancesPercent=99)
    fleet.live(60)
    assert fleet.images() == "oot"
    fleet.say(2)
    assert fleet.images() == "ott"


def test_the_same_update_once_more_goes_on_after_a_refusal() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.say(2, "FAILURE")
    assert fleet.status == "UPDATE_FAILED"
    fleet.change("two")
    assert fleet.images() == "ott"
    for number in (1, 0):
        fleet.say(number)
    assert fleet.status == "UPDATE_COMPLETE"


def test_an_alarm_does_not_carry_on_what_was_refused() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.say(2, "FAILURE")
    assert fleet.status == "UPDATE_FAILED"
    fleet.signal(fleet.id, "grow")
    fleet.live(60)
    assert fleet.images() == "oott"
    fleet.change("two")
    assert (fleet.status, fleet.images()) == ("UPDATE_IN_PROGRESS", "ottt")


def test_a_policy_without_signals_lets_it_go_on_at_once() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.change("two", WaitOnResourceSignals=False, PauseTime="PT0S")
    fleet.rest()
    assert (fleet.status, fleet.images()) == ("UPDATE_COMPLETE", "ttt")


def test_a_scaling_signal_keeps_the_batch_that_has_to_report() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.signal(fleet.id, "grow")
    fleet.live(10)
    assert fleet.images() == "oot", "neither another one is changed, nor is the new one made"
    fleet.say(2)
    fleet.live(10)
    assert len(fleet.images()) in (3, 4)
    for _ in range(4):
        for number in sorted(fleet.members()):
            if fleet.status == "UPDATE_IN_PROGRESS" or fleet.child().status == "IN_PROGRESS":
                fleet.say(number)
    assert fleet.images() == "tttt"
    assert fleet.status == "UPDATE_COMPLETE"


def test_an_update_that_is_asked_to_converge_waits_on() -> None:
    fleet = Fleet()
    fleet.change("two")
    fleet.actions.converge(fleet.id)
    fleet.live(10)
    assert fleet.images() == "oot"
    fleet.say(2)
    assert fleet.images() == "ott"


def test_a_complete_group_that_converges_asks_nothing_again() -> None:
    fleet = Fleet(1)
    fleet.change("two")
    fleet.say(0)
    assert fleet.status == "UPDATE_COMPLETE"
    fleet.actions.converge(fleet.id)
    fleet.rest()
    assert fleet.status == "UPDATE_COMPLETE"


def test_a_server_within_a_member_signals_with_its_own_id() -> None:
    service = Service(CloudBehaviour(build_s=1.0))
    environment = {"resource_registry": {"OS::Heat::ScaledResource": "member.yaml"}}
    template = cfn("one", 2, creation=creation())
    request = StackRequest(template, files={"member.yaml": MEMBER}, environment=environment)
    stack_id = service.stack_service.create(PROJECT, None, "web", request)
    service.live(10)
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"
    first, second = service.rows(service.row(stack_id, "group").handle)
    (server,) = [each for each in service.rows(first.handle) if each.name == "server"]
    service.report_member(stack_id, "group", server.handle)
    service.report_member(stack_id, "group", second.handle)
    service.live(10)
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_what_is_hidden_is_so_in_the_words_of_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is hidden is read before the transaction that fails the stack, which must not wait for another one."""
    service = Service(CloudBehaviour(build_s=1.0))
    template = cfn("one", 2, creation=creation())
    template["Parameters"] = {"pw": {"Type": "String", "NoEcho": True}}
    template["Resources"]["launch"]["Properties"]["UserData"] = {"Ref": "pw"}
    request = StackRequest(template, parameters={"pw": "the-hidden-one"})
    stack_id = service.stack_service.create(PROJECT, None, "web", request)
    service.live(10)
    write = service.db.write

    def nothing() -> Any:
        raise AssertionError("a look in the middle of a transaction")

    @contextmanager
    def alone() -> Iterator[Any]:
        with write() as tx, pytest.MonkeyPatch.context() as patch:
            patch.setattr(service.db, "read", nothing)
            yield tx

    monkeypatch.setattr(service.db, "write", alone)
    first = service.rows(service.row(stack_id, "group").handle)[0]
    key = service.row(stack_id, "group").key
    service.reports.take(key, MemberReport(str(first.handle), failed=True, reason="no login with the-hidden-one"))
    service.live(10)
    assert service.state(stack_id) == "CREATE_FAILED"
    reason = str(service.row(stack_id, "group").reason)
    assert "no login with" in reason
    assert "the-hidden-one" not in reason


def test_a_group_of_several_shards_waits_for_the_members_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    fleet = Fleet(5, MaxBatchSize=3)
    fleet.change("two")
    assert fleet.images() == "oottt"
    for number in (2, 4):
        fleet.say(number)
        assert fleet.images() == "oottt"
    fleet.say(3)
    assert fleet.images() == "ttttt"
    for number in (0, 1):
        assert fleet.status == "UPDATE_IN_PROGRESS"
        fleet.say(number)
    assert fleet.status == "UPDATE_COMPLETE"


def test_workers_that_die_when_they_decide_make_no_batch_twice() -> None:
    """Whatever a worker did not commit never was; the next owner of the shard decides the same."""
    fleet = Fleet()
    fleet.change("two")
    decide, deaths = rolling_update.settle, []

    def dies(*arguments: Any, **options: Any) -> Any:
        decide(*arguments, **options)
        deaths.append(1)
        raise KeyboardInterrupt

    seen = [fleet.images()]
    for number in (2, 1, 0):
        fleet.reports.take(fleet.row(fleet.id, "group").key, MemberReport(fleet.handle(number), failed=False))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("homeostat.convergence.members.rolling_update.settle", dies)
            with pytest.raises(KeyboardInterrupt):
                run_pass(fleet.reconciler, fleet.claim())
        assert fleet.images() == seen[-1]
        fleet.live(20)
        seen.append(fleet.images())
    assert len(deaths) == 3
    assert seen == ["oot", "ott", "ttt", "ttt"]
    assert fleet.status == "UPDATE_COMPLETE"


# -- while it waits ----------------------------------------------------------------------------------------------------


def test_a_wait_costs_no_passes_and_a_report_one() -> None:
    fleet = Fleet(8, MaxBatchSize=8)
    fleet.change("two")
    before = passes(fleet)
    fleet.live(60)
    for number in range(7):
        fleet.report_member(fleet.id, "group", fleet.handle(number))
        fleet.report_member(fleet.id, "group", fleet.handle(number))
    assert passes(fleet) == before, "none of them is the last"
    fleet.say(7)
    assert fleet.status == "UPDATE_COMPLETE"


def passes(service: Service) -> int:
    """How often the shards of the group were claimed."""
    table = schema.shard
    mine = table.c.stack_id == service.child().id
    with service.db.read() as tx:
        return int(tx.execute(select(func.sum(table.c.epoch)).where(mine)).scalar_one())


def test_it_is_explained() -> None:
    fleet = Fleet()
    fleet.change("two")
    with fleet.db.read() as tx:
        row = stacks.get(tx, fleet.id)
        assert row is not None
        page = Explainer(tx, DesiredGraphs(), fleet.clock.now()).page(row, limit=10)
    (found,) = [each.explanation for each in page.explanations if each.path == ("group",)]
    assert (found.why, found.reason) == ("reports", "a batch of its members is done, and they have to report")
    assert found.due_at is not None
    assert 60 < found.due_at - fleet.clock.now() <= 120


def test_the_signals_of_a_group_without_gates_are_refused() -> None:
    fleet = Fleet(WaitOnResourceSignals=False, PauseTime="PT0S")
    with pytest.raises(Rejected, match="WaitOnResourceSignals, or a CreationPolicy"):
        fleet.report_member(fleet.id, "group", fleet.handle(0))
    assert left(fleet) == 0


def test_a_suspended_stack_takes_no_signals() -> None:
    fleet = Fleet()
    fleet.actions.begin(fleet.id, Action.SUSPEND)
    fleet.rest()
    with pytest.raises(Rejected, match="during SUSPEND"):
        fleet.report_member(fleet.id, "group", fleet.handle(0))


@pytest.mark.parametrize("member", ["", "a\0b", "x" * 1001, "a\nb"])
def test_what_is_no_id_is_refused(member: str) -> None:
    fleet = Fleet(1)
    with pytest.raises(Rejected, match="printable characters"):
        fleet.report_member(fleet.id, "group", member)


def test_unknown_ids_count_for_no_member_and_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_reports, "REPORTS_MAX", 5)
    fleet = Fleet(1)
    fleet.change("two")
    for number in range(7):
        fleet.report_member(fleet.id, "group", f"nobody-{number}", "FAILURE")
    with pytest.raises(Rejected, match="a group of 1 members keeps the reports of at most 7; send the ids of members"):
        fleet.report_member(fleet.id, "group", "one-too-many")
    fleet.report_member(fleet.id, "group", "nobody-3")
    assert fleet.status == "UPDATE_IN_PROGRESS"
    assert left(fleet) == 7


def test_a_failure_that_is_repeated_is_one_event() -> None:
    fleet = Fleet(4, MaxBatchSize=4, MinSuccessfulInstancesPercent=50)
    fleet.change("two")
    for _ in range(3):
        fleet.say(1, "FAILURE", "no")
    said = [each.reason for each in fleet.events(fleet.id, "group") if each.action == "SIGNAL"]
    assert said == [f"Signal: status:FAILURE reason:no from {fleet.handle(1)}"]


def test_a_deleted_group_leaves_no_reports() -> None:
    fleet = Fleet(2, MaxBatchSize=2)
    fleet.change("two")
    fleet.say(0)
    assert left(fleet) == 1
    fleet.delete(fleet.id)
    fleet.rest()
    assert left(fleet) == 0


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"id": "m", "status": "FAILURE", "reason": "a\nb\x1b[0m"}, ("m", True, "a b [0m")),
        ({"data": "m"}, ("m", False, "")),
        ({"id": 7, "status": "SUCCESS"}, ("7", False, "")),
        ({"id": {"a": 1}}, ("", False, "")),
        (None, ("", False, "")),
    ],
)
def test_bodies(body: Any, wanted: tuple[str, bool, str]) -> None:
    found = report_of(body)
    assert (found.member, found.failed, found.reason) == wanted


@pytest.mark.parametrize("body", [{"id": "m", "status": "GOOD"}, {"id": "m", "colour": "red"}])
def test_bodies_that_are_none(body: Any) -> None:
    with pytest.raises(Rejected, match="Metadata format invalid"):
        report_of(body)
