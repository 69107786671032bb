"""What people say of members under a health policy is a verdict; and no health is judged while they remove others."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.node_health import Finding
from homeostat.planner.policies.reported import with_report
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.stacks import member_health
from tests.component.checked import EVENTS, STATUS, Checked, actions, policy, url


def mark(service: Checked, number: int, **more: Any) -> None:
    Marks(service.db).mark(service.group, MarkRequest(True, "disk full", reporter="ann", **more), {"": str(number)})


def shown(service: Checked, number: int) -> tuple[Finding, str]:
    """What `homeostat health status` says of a member."""
    with service.db.read() as tx:
        now = tx.now()
        rows = member_health.listed(tx, service.stack(service.group), None, "", 100)
        (row,) = [each for each in rows if each.name == str(number)]
        node = with_report(row.health, row.marks, now)
        assert member_health.finding_of(tx, service.group, str(number), now) == node.finding
        return node.finding, node.reason


@pytest.mark.parametrize("mode", [STATUS, EVENTS, url()])
def test_a_member_that_a_person_marks_is_recovered_at_once(mode: dict[str, Any]) -> None:
    service = Checked(3, policy(mode))
    service.live(15.0)
    before = [service.handle(number) for number in range(3)]
    mark(service, 1)
    assert shown(service, 1) == (Finding.UNHEALTHY, "ann has marked it unhealthy: disk full")
    service.live(3.0)
    assert service.recoveries() == ["RECREATE"]
    service.live(30.0)
    assert [service.handle(number) == old for number, old in enumerate(before)] == [True, False, True]
    assert shown(service, 1)[0] is Finding.HEALTHY
    assert service.recoveries() == ["RECREATE"]


def test_it_climbs_the_ladder_from_its_first_action_and_is_well_once_a_look_says_so() -> None:
    service = Checked(2, policy(STATUS, actions=actions("REBOOT", "RECREATE")))
    service.live(15.0)
    before = service.handle(0)
    mark(service, 0)
    service.live(60.0)
    assert (service.recoveries(), service.handle(0)) == (["REBOOT"], before)
    assert shown(service, 0)[0] is Finding.HEALTHY
    (row,) = [row for row in service.rows(service.group) if row.name == "0"]
    assert (row.marks, row.reason) == (None, "recovered: it is healthy again")


def test_what_the_first_action_does_not_help_gets_the_next_one() -> None:
    service = Checked(2, policy(url(), actions=actions("REBOOT", "RECREATE"), verify_timeout=10))
    service.live(15.0)
    before = service.handle(0)
    mark(service, 0)
    service.answers["n-001"] = Answer(500, "ill")
    service.live(60.0)
    assert service.recoveries()[:2] == ["REBOOT", "RECREATE"]
    assert service.handle(0) != before


def test_it_counts_for_the_brake_and_waits_for_consent_where_its_policy_says_so() -> None:
    service = Checked(3, policy(STATUS, mode="propose"))
    service.live(15.0)
    mark(service, 0)
    service.live(60.0)
    assert service.recoveries() == []
    service.actions.converge(service.group, "0")
    service.live(60.0)
    assert service.recoveries() == ["RECREATE"]
    braked = Checked(3, policy(STATUS, max_unhealthy="1"))
    braked.live(15.0)
    mark(braked, 0)
    mark(braked, 1)
    braked.live(60.0)
    assert braked.recoveries() == []


def test_a_mark_that_ends_or_is_taken_away_begins_nothing() -> None:
    service = Checked(2, policy(STATUS, mode="propose"))
    service.live(15.0)
    mark(service, 0, lasts_s=20.0)
    service.live(60.0)
    assert (service.recoveries(), shown(service, 0)[0]) == ([], Finding.HEALTHY)


# -- while a user removes members --------------------------------------------------------------------------------------


def remove_to(service: Checked, count: int) -> None:
    service.update(service.id, service._wanted(count), internal_types={NodeGroup.name})


def slow() -> Checked:
    """Six nodes of a cloud that takes long to delete one."""
    return Checked(6, policy(STATUS), behaviour=CloudBehaviour(delete_s=40.0))


def test_while_members_are_removed_none_of_the_others_is_recovered_and_afterwards_it_is() -> None:
    service = slow()
    service.live(15.0)
    remove_to(service, 4)
    service.live(5.0)
    service.stop_server(1)
    service.live(25.0)
    assert service.recoveries() == []
    assert service.health_of(1).finding is Finding.HEALTHY, "it is not looked at meanwhile"
    service.live(40.0)
    assert service.recoveries() == ["RECREATE"]


def test_a_recovery_that_has_begun_looks_again_before_it_goes_on() -> None:
    ladder = policy(STATUS, actions=actions("REBOOT", "RECREATE"), verify_timeout=5)
    service = Checked(6, ladder, behaviour=CloudBehaviour(delete_s=40.0))
    service.live(15.0)
    before = service.handle(1)
    service.cloud.change(before, status="error")
    service.live(12.0)
    assert service.recoveries() == ["REBOOT"]
    service.cloud.change(before, status="error")
    remove_to(service, 4)
    service.live(30.0)
    service.cloud.change(before, status="active")
    service.live(60.0)
    assert (service.recoveries(), service.handle(1)) == (["REBOOT"], before)


def test_a_removal_ends_though_a_member_is_ill_meanwhile() -> None:
    service = slow()
    service.live(15.0)
    service.stop_server(0)
    remove_to(service, 3)
    service.live(120.0)
    assert len(service.servers()) == 3
    assert service.health_of(0).finding is Finding.HEALTHY
