"""Members that fail together are one incident: one of them is recovered first (ADR 0081)."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.explainer import Explainer
from tests.component.checked import HOST, STATUS, Checked, actions, policy
from tests.component.running import Service


def hosts(service: Checked) -> dict[int, str]:
    servers = service.cloud.things("server")
    return {number: str(servers[service.handle(number)]["host"]) for number in range(service.count)}


def explained(service: Service, stack_id: str) -> list[str]:
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(service.stack(stack_id), 100)
    return [each.explanation.reason for each in page.explanations]


def test_of_the_members_on_a_host_that_has_failed_one_is_recovered_first() -> None:
    service = Checked(12, policy(HOST, verify_timeout=60), behaviour=CloudBehaviour(build_s=8.0))
    failed = hosts(service)[0]
    service.cloud.fail_host(failed)
    service.live(45.0)
    assert service.recoveries() == ["RECREATE"]
    (said,) = {each.partition("; ")[2] for each in explained(service, service.group) if "incident" in each}
    assert said == (
        f"one incident: host {failed} is called down; one of them is recovered first, and the others once that has "
        "helped"
    )
    service.live(120.0)
    assert failed not in hosts(service).values()


@pytest.mark.heavy
def test_where_the_first_recovery_does_not_help_the_others_wait_and_one_more_is_tried_later() -> None:
    service = Checked(6, policy(STATUS, verify_timeout=30))
    service.cloud.behaviour.faults = Faults(error=1.0)  # an image, say, with which no server comes up
    for number in range(6):
        service.cloud.change(service.handle(number), status="error")
    service.live(60.0)
    begun = len({each.name for each in service.rows(service.group) if each.replaces is not None})
    assert begun == 1
    service.live(200.0)
    later = len({each.name for each in service.rows(service.group) if each.replaces is not None})
    assert 1 < later < 6
    service.cloud.behaviour.faults = Faults()
    service.live(900.0)
    assert {each.status for each in service.rows(service.group) if each.replaced_by is None} == {"COMPLETE"}


@pytest.mark.parametrize(("count", "ill"), [(6, 2), (6, 5), (2, 2)])
def test_members_that_fail_by_themselves_do_not_wait_for_each_other(count: int, ill: int) -> None:
    service = Checked(count, policy(STATUS, actions=actions("REBOOT")))
    for number in range(ill):
        # Each has a well neighbour on its host, or there are too few to tell.
        service.cloud.change(service.handle(number), status="stopped", host=f"h{number % 2}")
    for number in range(ill, count):
        service.cloud.change(service.handle(number), host=f"h{number % 2}")
        service.cloud.change(service.handle(number - 1), host=f"h{(number - 1) % 2}")
    service.live(4.0)
    if ill < 5:
        assert len(service.recoveries()) in (0, ill)
    service.live(60.0)
    assert len(service.recoveries()) == ill


def test_a_policy_may_have_all_recovered_at_once() -> None:
    service = Checked(4, policy(STATUS, actions=actions("REBOOT"), one_first=False))
    for number in range(4):
        service.stop_server(number)
    service.live(11.0)
    assert service.recoveries() == ["REBOOT"] * 4


def test_of_two_members_on_a_host_that_is_down_one_is_recovered_first() -> None:
    """The one that is recovered leaves the host: the other one waits until it is well all the same."""
    service = Checked(6, policy(HOST, verify_timeout=60), behaviour=CloudBehaviour(build_s=30.0))
    failed = hosts(service)[0]
    there = [number for number, host in hosts(service).items() if host == failed]
    assert len(there) == 2
    service.cloud.fail_host(failed)
    service.live(45.0)
    assert service.recoveries() == ["RECREATE"]
    (said,) = [each for each in explained(service, service.group) if "incident" in each]
    assert f"host {failed} is called down; one of them is recovered first" in said
    service.live(200.0)
    assert service.recoveries() == ["RECREATE"] * 2
    assert failed not in hosts(service).values()


def test_a_policy_may_have_both_members_of_a_host_recovered_at_once() -> None:
    service = Checked(6, policy(HOST, one_first=False), behaviour=CloudBehaviour(build_s=30.0))
    service.cloud.fail_host(hosts(service)[0])
    service.live(45.0)
    assert service.recoveries() == ["RECREATE"] * 2
