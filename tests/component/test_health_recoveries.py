"""Recoveries in trouble: what the simulation of health policies has found (see `tests/simulation/test_health.py`)."""

import pytest

from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.observed import Observation
from homeostat.model.status import joined
from homeostat.services.marks import MarkRequest, Marks
from tests.component.checked import STATUS, Checked, actions, policy, url


def test_a_member_that_an_operation_has_recovered_has_its_check_complete() -> None:
    service = Checked(2, policy(STATUS, actions=actions("REBOOT")))
    service.stop_server(0)
    service.live(30.0)
    row = service.row(service.group, "0")
    assert (joined(row.action, row.status), row.marks) == ("CHECK_COMPLETE", None)
    assert service.has_valid_history(service.group, "0")


@pytest.mark.shows("HS4")
def test_grace_counts_from_the_end_of_a_recovery() -> None:
    wanted = policy(url(poll_url_retry_limit=1), actions=actions("REBOOT"), detection={"node_update_timeout": 100})
    service = Checked(2, wanted)
    service.live(110.0)
    service.answers["n-001"] = Answer(500, "ill")
    service.live(10.0)
    service.answers.clear()
    service.live(20.0)
    assert service.recoveries() == ["REBOOT"]
    service.answers["n-001"] = Answer(500, "ill")
    service.live(60.0)
    assert service.recoveries() == ["REBOOT"]


def test_grace_counts_from_the_end_of_a_change() -> None:
    service = Checked(2, policy(STATUS, detection={"node_update_timeout": 100}))
    before = service.handle(0)
    service.live(110.0)
    service.change(flavor="large")
    service.stop_server(0)
    service.live(80.0)
    assert service.handle(0) == before
    service.live(60.0)
    assert service.handle(0) != before


def test_the_time_in_which_a_member_is_built_is_no_part_of_its_grace() -> None:
    service = Checked(2, policy(STATUS, detection={"node_update_timeout": 60}), behaviour=CloudBehaviour(build_s=50.0))
    before = service.handle(0)
    service.stop_server(0)
    service.live(40.0)
    assert service.handle(0) == before


def address(service: Checked, number: int) -> str:
    return str(service.cloud.things("server")[service.handle(number)]["address"])


def test_a_member_made_again_keeps_its_address_as_long_as_its_template_says_the_same() -> None:
    service = Checked(2, policy(STATUS, preserve=["addresses"]), networks=[{"network": "n"}])
    before = (service.handle(0), address(service, 0))
    for _ in range(2):  # what was kept once is kept again
        service.cloud.change(service.handle(0), status="error")
        service.live(30.0)
        now = (service.handle(0), address(service, 0))
        assert (now[0] != before[0], now[1]) == (True, before[1])
        before = now
    service.change(flavor="large", networks=[{"network": "n"}])
    assert (service.handle(0), address(service, 0)) == before
    service.change(networks=[{"network": "other"}])
    assert "fixed_ip" not in service.row(service.group, "0").properties["networks"][0]


@pytest.mark.parametrize("trouble", ["quota", "error", "taken"])
def test_a_member_that_cannot_be_made_at_once_has_its_address_in_the_end(trouble: str) -> None:
    """Found by the simulation: what was tried after a creation that failed knew nothing of the address any more.

    It was tried about once a second, by another row each time.
    """
    service = Checked(2, policy(STATUS, preserve=["addresses"]), networks=[{"network": "n"}])
    before = (service.handle(0), address(service, 0))
    service.cloud.behaviour.faults = Faults(error=1.0 if trouble == "error" else 0.0)
    service.cloud.behaviour.quota = 0 if trouble == "quota" else None
    service.cloud.change(before[0], status="error")
    if trouble == "taken":
        service.cloud.behaviour.quota = 0
    while before[0] in service.cloud.things():
        service.live(0.1)
    service.live(5.0)
    if trouble == "taken":
        service.cloud.behaviour.quota = None
        port = {"network": "n", "fixed_ips": [{"ip_address": before[1]}]}
        (taken,) = service.cloud.create("port", [Creation("t", port)])
        service.live(60.0)
        said = [row.reason for row in service.rows(service.group) if row.name == "0" and row.replaced_by is None]
        assert ["already in use" in each for each in said] == [True]
        assert len(service.rows(service.group)) <= 3, "each try has the same row"
        service.cloud.vanish(taken.handle if isinstance(taken, Observation) else "")
    service.cloud.behaviour.faults, service.cloud.behaviour.quota = Faults(), None
    service.live(300.0)
    assert service.handle(0) != before[0]
    assert address(service, 0) == before[1]


def test_a_marked_member_that_an_update_replaces_gives_up_its_address_first() -> None:
    """Found by the simulation: the cloud refused the address for as long as the old server, cut off, had it."""
    network = [{"network": "n"}]
    wanted = policy(STATUS, preserve=["addresses"], fencing=["NETWORK"], mode="propose")
    service = Checked(2, wanted, networks=network)
    before = (service.handle(0), address(service, 0))
    Marks(service.db).mark(service.group, MarkRequest(True, "disk full"), {"": "0"})
    service.change(key_name="other", networks=network)
    assert service.row(service.id, "nodes").reason == "state changed"
    assert (service.handle(0) != before[0], address(service, 0)) == (True, before[1])
    assert before[0] not in service.cloud.things()


def test_volumes_that_are_cut_off_before_are_attached_to_the_member_made_again() -> None:
    service = Checked(2, policy(STATUS, preserve=["Volumes"], fencing=["STORAGE"]))
    before = service.handle(0)
    service.cloud.change(before, status="error", volumes=[{"id": "v1", "delete_on_termination": False}])
    service.live(30.0)
    assert service.handle(0) != before
    assert service.cloud.things("server")[service.handle(0)]["volumes"][0]["id"] == "v1"
