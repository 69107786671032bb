"""Hosts that are called down: what is done about their servers, and what is not (ADR 0093)."""

from typing import Any

import pytest

from homeostat.clouds.simulated.objects import HOSTS
from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.explainer import Explainer
from homeostat.store.shards import health
from homeostat.store.stacks import member_health
from tests.component.checked import HOST, SOURCE, STATUS, Checked, actions, policy

CUT = ["COMPUTE", "NETWORK", "STORAGE"]


def checked(count: int = 6, *names: str, **more: object) -> Checked:
    return Checked(count, policy(HOST, actions=actions(*(names or ("RECREATE",))), fencing=CUT, **more))


def declared(service: Checked) -> list[dict[str, Any]]:
    """Hosts that are declared down, as users see them."""
    with service.db.read() as tx:
        return [each._asdict() for each in member_health.declared_hosts(tx, service.stack(service.id))]


def hosts_of(service: Checked) -> set[str]:
    return {str(each["host"]) for each in service.cloud.things("server").values()}


def explained(service: Checked) -> list[str]:
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(service.stack(service.group), 100)
    return [each.explanation.reason for each in page.explanations]


@pytest.mark.parametrize("pause_s", [15.0, 40.0, 90.0])
def test_a_control_plane_that_pauses_costs_no_host_and_no_server(pause_s: float) -> None:
    """All hosts are called down at once; then they are heard of again, one after the other."""
    service = checked()
    before = service.servers()
    service.cloud.hosts.pause(service.clock.now())
    service.live(pause_s)
    for host in HOSTS:
        service.cloud.hosts.hear(host)
        service.live(12.0)
    service.live(120.0)
    assert (service.servers(), service.recoveries(), service.cloud.hosts.forced) == (before, [], set())


def test_a_host_that_fails_beside_others_is_declared_down_and_its_servers_are_made_again() -> None:
    service = checked()
    (failed, *_) = HOSTS
    service.cloud.fail_host(failed)
    service.live(40.0)
    assert service.cloud.hosts.forced == {failed}
    service.live(300.0)
    assert failed not in hosts_of(service)
    assert {each.status for each in service.rows(service.group) if each.replaced_by is None} == {"COMPLETE"}


def test_nothing_is_cut_off_before_there_is_room_for_another_one() -> None:
    service = checked()
    before, (failed, *_) = service.servers(), HOSTS
    service.cloud.hosts.no_room = True
    service.cloud.fail_host(failed)
    service.live(120.0)
    assert (service.servers(), service.cloud.hosts.forced) == (before, set())
    assert any("no other host has room for another one" in each for each in explained(service)), explained(service)
    service.cloud.hosts.no_room = False
    service.live(300.0)
    assert (service.cloud.hosts.forced, failed in hosts_of(service)) == ({failed}, False)


def test_what_was_to_be_cut_off_of_a_host_that_works_again_is_left_as_it_is() -> None:
    service = checked()
    before, (failed, *_) = service.servers(), HOSTS
    service.cloud.hosts.no_room = True
    service.cloud.fail_host(failed)
    service.live(60.0)
    service.cloud.fail_host(failed, back=True)
    service.cloud.hosts.no_room = False
    service.live(200.0)
    assert (service.servers(), service.cloud.hosts.forced) == (before, set())
    assert {each["status"] for each in service.cloud.things("server").values()} == {"active"}
    assert {each.status for each in service.rows(service.group)} == {"COMPLETE"}


def test_that_a_host_was_declared_down_is_no_evidence_once_it_is_heard_of() -> None:
    """One of its servers was made again; the others live on, and it beats."""
    service = checked(9, max_per_hour=1)
    (failed, *_) = HOSTS
    service.cloud.fail_host(failed)
    service.live(45.0)
    assert service.cloud.hosts.forced == {failed}
    service.cloud.hosts.down.clear()  # it works again, and nobody says so to Compute
    service.live(60.0)
    there = [number for number in range(9) if service.cloud.things("server")[service.handle(number)]["host"] == failed]
    assert there
    said = [service.health_of(number) for number in there]
    assert {each.finding.value for each in said} == {"unknown"}
    assert all("heard of again" in each.reason for each in said), said
    assert all(f"openstack compute service set --up {failed} nova-compute" in each.reason for each in said), said


def test_why_a_host_is_declared_down_is_said_until_that_is_lifted() -> None:
    """By then no member is on it any more: its evidence is nowhere else."""
    service = checked()
    (failed, *_) = HOSTS
    service.cloud.fail_host(failed)
    service.live(300.0)
    (said,) = declared(service)
    assert failed not in hosts_of(service)
    assert (said["host"], said["parent_name"], said["stack_id"]) == (failed, "nodes", service.group)
    # The first one was cut off for its own silence, not since the host was declared down for it.
    assert f"its host {failed} is down, heard of last at " in said["reason"]
    assert 0 < said["at"] < service.clock.now() - 200.0
    service.cloud.fail_host(failed, back=True)
    service.live(15.0)
    assert declared(service) == []


def test_hosts_are_known_while_a_policy_is_switched_off_and_forgotten_with_it() -> None:
    service = checked()
    service.cloud.fail_host(HOSTS[0])
    service.live(60.0)
    assert len(declared(service)) == 1
    with service.db.write() as tx:
        health.switch(tx, SOURCE, enabled=False, now=tx.now())
    service.live(15.0)
    assert len(declared(service)) == 1
    service.detach()
    assert declared(service) == []


def test_a_server_that_is_only_powered_off_says_of_no_host_that_it_is_declared_down() -> None:
    service = Checked(3, policy(STATUS, actions=actions("RECREATE"), fencing=["COMPUTE"]))
    service.cloud.change(service.handle(0), status="error")
    service.live(60.0)
    assert ("fence" in service.recoveries(), declared(service)) == (True, [])
