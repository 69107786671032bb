"""Health policies at work: what is found unhealthy is recovered, by the actions of the policy, one by one."""

from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.health_checks.probes import Answer
from homeostat.convergence.health_checks.rounds import HealthRounds
from homeostat.model.errors import Terminal
from homeostat.model.node_health import Finding
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.shards import health
from tests.component.checked import EVENTS, HOST, SOURCE, STATUS, Checked, actions, policy, url


@pytest.mark.shows("HP2", "HS20")
def test_a_stopped_node_is_found_at_the_next_look_and_made_again() -> None:
    service = Checked(3, policy(STATUS))
    before = {number: service.handle(number) for number in range(3)}
    service.stop_server(1)
    service.live(25.0)
    assert service.handle(1) != before[1]
    assert [service.handle(number) for number in (0, 2)] == [before[0], before[2]]
    assert before[1] not in service.servers()
    assert service.health_of(1).finding is Finding.HEALTHY


@pytest.mark.shows("HS20")
def test_a_node_that_vanished_is_made_again() -> None:
    service = Checked(3, policy(STATUS))
    before = service.handle(1)
    service.cloud.vanish(before)
    service.live(15.0)
    assert len(service.servers()) == 3
    assert service.handle(1) != before


def test_without_a_policy_a_lost_node_stays_lost() -> None:
    service = Checked(2, policy(EVENTS, detection={"detection_modes": []}))
    service.stop_server(0)
    service.live(300.0)
    assert service.cloud.things()[service.handle(0)]["status"] == "stopped"


def test_a_reboot_is_tried_before_anything_else() -> None:
    service = Checked(2, policy(STATUS, actions=actions({"name": "REBOOT", "params": {"type": "SOFT"}}, "RECREATE")))
    before = service.handle(0)
    service.cloud.change(before, status="error")
    service.live(30.0)
    assert (service.handle(0), service.cloud.things()[before]["status"]) == (before, "active")
    assert service.row(service.group, "0").marks is None
    assert "0 CHECK_COMPLETE" in service.story(service.group, "0")


def test_what_a_reboot_has_mended_is_well_soon_after_it_not_an_interval_later() -> None:
    wanted = policy(STATUS, detection={"interval": 300}, actions=actions("REBOOT"))
    service = Checked(2, wanted)
    before = service.handle(0)
    service.cloud.change(before, status="error")
    while service.recoveries() != ["REBOOT"]:
        service.live(1.0)
    service.live(45.0)
    assert service.cloud.things()[before]["status"] == "active"
    assert service.row(service.group, "0").marks is None


@pytest.mark.heavy
@pytest.mark.shows("HP8", "HS13")
def test_the_next_action_follows_when_one_has_not_helped() -> None:
    wanted = actions("REBOOT", "REBUILD", "RECREATE")
    service = Checked(2, policy(url(poll_url_retry_limit=1), actions=wanted, verify_timeout=20))
    before = service.handle(0)
    service.answers["n-001"] = Answer(500, "ill")
    service.live(20.0)
    assert (service.handle(0), service.recoveries()) == (before, ["REBOOT"])
    service.live(120.0)
    assert service.recoveries()[:3] == ["REBOOT", "REBUILD", "RECREATE"]
    assert service.handle(0) != before


@pytest.mark.shows("HP3", "HS8", "HS9")
def test_a_url_is_asked_again_before_a_node_counts_as_unhealthy() -> None:
    service = Checked(2, policy(url(poll_url_retry_limit=3, poll_url_retry_interval=2)))
    service.answers["n-001"] = Answer(0, "refused")
    service.live(11.0)
    service.answers.clear()
    service.live(20.0)
    assert service.health_of(0).finding is Finding.HEALTHY
    assert "0 CHECK_FAILED" not in service.story(service.group, "0")


@pytest.mark.shows("HP7")
def test_all_failed_needs_all_modes() -> None:
    both = policy(STATUS, url(poll_url_retry_limit=1), detection={"recovery_conditional": "ALL_FAILED"})
    service = Checked(2, both)
    before = service.handle(0)
    service.stop_server(0)
    service.live(30.0)
    assert service.handle(0) == before
    service.answers["n-001"] = Answer(500, "ill")
    service.live(30.0)
    assert service.handle(0) != before


def test_polling_has_no_say_during_the_grace_of_a_new_node() -> None:
    service = Checked(2, policy(STATUS, detection={"node_update_timeout": 120}))
    before = service.handle(0)
    service.stop_server(0)
    service.live(60.0)
    assert service.handle(0) == before
    service.live(120.0)
    assert service.handle(0) != before


@pytest.mark.shows("HS25")
def test_what_is_stopped_is_started_by_hint() -> None:
    service = Checked(2, policy(EVENTS))
    before = service.handle(0)
    service.stop_server(0)
    service.live(70.0)
    assert (service.handle(0), service.cloud.things()[before]["status"]) == (before, "active")


@pytest.mark.shows("HS34")
def test_a_policy_that_observes_recovers_nothing_and_says_so() -> None:
    service = Checked(2, policy(STATUS, mode="observe"))
    before = service.handle(0)
    service.stop_server(0)
    service.live(60.0)
    assert service.handle(0) == before
    assert service.states(service.group)["0"] == "CHECK_FAILED"


def test_a_proposed_recovery_waits_for_consent() -> None:
    service = Checked(2, policy(STATUS, mode="propose"))
    before = service.handle(0)
    service.stop_server(0)
    service.live(60.0)
    assert service.handle(0) == before
    service.actions.converge(service.group, "0")
    service.live(20.0)
    assert service.handle(0) != before


@pytest.mark.shows("HS34")
def test_of_too_many_unhealthy_nodes_none_is_recovered() -> None:
    service = Checked(10, policy(STATUS, max_unhealthy="40%"))
    before = [service.handle(number) for number in range(10)]
    for number in range(5):
        service.stop_server(number)
    service.live(120.0)
    assert [service.handle(number) for number in range(10)] == before
    service.cloud.change(before[4], status="active")
    service.live(60.0)
    assert [service.handle(number) == before[number] for number in range(10)] == [False] * 4 + [True] * 6


@pytest.mark.shows("HP12")
def test_an_observer_that_reaches_nothing_doubts_itself() -> None:
    service = Checked(4, policy(url(poll_url_retry_limit=1)))
    before = service.servers()
    service.answers = {f"n-{number:03}": Answer(0, "no route") for number in range(1, 5)}
    service.live(120.0)
    assert service.servers() == before
    service.answers.clear()
    service.live(30.0)
    assert service.health_of(0).finding is Finding.HEALTHY


def test_a_cloud_that_is_away_makes_no_node_unhealthy() -> None:
    service = Checked(3, policy(STATUS))
    before = service.servers()
    service.cloud.behaviour = CloudBehaviour(faults=Faults(unreachable=1.0))
    service.live(120.0)
    service.cloud.behaviour = CloudBehaviour()
    service.live(30.0)
    assert service.servers() == before


def test_a_policy_that_is_taken_away_leaves_no_marks() -> None:
    service = Checked(2, policy(STATUS, mode="observe"))
    service.stop_server(0)
    service.live(30.0)
    service.detach()
    service.live(5.0)
    assert service.row(service.group, "0").marks is None
    assert service.states(service.group)["0"] == "CHECK_COMPLETE"


@pytest.mark.heavy
@pytest.mark.shows("HS34")
def test_recoveries_of_an_hour_are_limited() -> None:
    service = Checked(10, policy(STATUS, max_per_hour=2))
    before = [service.handle(number) for number in range(10)]
    for number in range(3):
        service.stop_server(number)
        service.live(30.0)
    assert [service.handle(number) == before[number] for number in range(3)] == [False, False, True]
    service.live(3700.0)
    assert service.handle(2) != before[2]


@pytest.mark.shows("HS18")
@pytest.mark.parametrize("what", [STATUS, HOST])
def test_a_busy_node_is_no_case_for_its_policy(what: dict[str, str]) -> None:
    service = Checked(2, policy(what))
    service.cloud.change(service.handle(0), status="rebooting")
    before = service.handle(0)
    service.live(60.0)
    assert service.handle(0) == before


def fenced(*what: str, **more: Any) -> dict[str, Any]:
    return policy(STATUS, HOST, fencing=list(what), **more)


@pytest.mark.shows("HP9", "HS32")
def test_a_node_is_cut_off_before_another_one_is_made() -> None:
    service = Checked(3, fenced("COMPUTE", "NETWORK"))
    before = service.handle(0)
    service.cloud.change(before, status="error")
    service.live(30.0)
    assert service.handle(0) != before
    assert service.recoveries() == ["fence", "RECREATE"]


@pytest.mark.heavy
@pytest.mark.shows("HS32")
def test_no_other_one_is_made_while_it_is_not_confirmed_that_a_node_is_cut_off() -> None:
    service = Checked(3, fenced("COMPUTE"), behaviour=CloudBehaviour(faults=Faults(fence=1.0)))
    before = service.handle(0)
    service.cloud.change(before, status="error")
    service.live(300.0)
    assert (service.handle(0), len(service.servers())) == (before, 3)
    assert "COMPUTE" in service.row(service.group, "0").reason
    service.cloud.behaviour = CloudBehaviour()
    service.live(120.0)
    assert (service.handle(0) != before, len(service.servers())) == (True, 3)


def test_nodes_of_a_dead_host_are_found_and_evacuated_once_it_is_forced_down() -> None:
    service = Checked(3, policy(HOST, actions=actions("EVACUATE"), fencing=["COMPUTE"], max_unhealthy="2"))
    before = service.servers()
    host = service.cloud.things()[service.handle(1)]["host"]
    service.cloud.fail_host(host)
    service.live(60.0)
    there = service.cloud.things()
    assert service.servers() == before
    assert all(there[each]["host"] != host and there[each]["status"] == "active" for each in before)


def test_a_kept_node_is_cut_off_and_another_one_serves() -> None:
    service = Checked(2, fenced("NETWORK", quarantine=True))
    before = service.handle(0)
    service.cloud.change(before, status="error")
    service.live(60.0)
    assert service.handle(0) != before
    assert before in service.servers()


def test_a_node_whose_recovery_failed_is_well_once_it_is_seen_healthy() -> None:
    service = Checked(2, policy(STATUS, actions=actions("REBOOT"), verify_timeout=3600))
    before = service.handle(0)
    with patch.object(service.cloud, "operate", return_value=[Terminal("no")]):
        service.cloud.change(before, status="error")
        service.live(25.0)
        assert service.states(service.group)["0"] == "UPDATE_FAILED"
        service.cloud.change(before, status="active")
        service.live(25.0)
    assert service.states(service.group)["0"] == "CHECK_COMPLETE"
    assert service.has_valid_history(service.group, "0")


def test_what_a_round_finds_of_a_policy_that_is_taken_away_meanwhile_is_not_kept() -> None:
    service = Checked(2, policy(STATUS))
    store = HealthRounds._store

    def too_late(rounds: HealthRounds, current: Any) -> None:
        with service.db.write() as tx:
            health.detach(tx, SOURCE, tx.now())
        store(rounds, current)

    service.stop_server(0)
    with patch.object(HealthRounds, "_store", too_late):
        service.live(15.0)
    with service.db.read() as tx:
        assert health.of_shard(tx, service.group, 0) == {}


def test_an_update_makes_no_other_node_in_the_place_of_an_ill_one_that_is_not_cut_off() -> None:
    service = Checked(2, fenced("COMPUTE", detection={"node_update_timeout": 300}))
    before = service.handle(0)
    service.cloud.change(before, status="error")
    service.live(70.0)  # it is seen, and not judged yet
    service.resize(3)
    assert (service.handle(0), service.recoveries()) == (before, [])
    service.live(300.0)
    assert service.handle(0) != before
    assert service.recoveries() == ["fence", "RECREATE"]


def test_what_was_recovered_is_seen_healthy_at_once() -> None:
    service = Checked(2, policy(STATUS, actions=actions("REBOOT"), detection={"interval": 60}))
    service.cloud.change(service.handle(0), status="error")
    service.live(63.0)
    assert service.recoveries() == ["REBOOT"]
    assert service.health_of(0).finding is Finding.HEALTHY


def test_what_could_not_be_looked_at_has_not_failed_once_more() -> None:
    service = Checked(2, policy(STATUS, actions=actions("REBOOT"), detection={"failures": 3}))
    service.stop_server(0)
    service.live(12.0)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(120.0)
    assert service.row(service.group, "0").marks is None
    service.cloud.behaviour.faults = Faults()
    service.live(60.0)
    assert service.recoveries() == ["REBOOT"]


def test_what_a_policy_has_found_counts_for_no_other_one() -> None:
    service = Checked(2, policy(STATUS, mode="observe"))
    service.stop_server(0)
    service.live(12.0)
    assert service.health_of(0).finding is Finding.UNHEALTHY
    service.detach()
    service.attach(policy(HOST, detection={"interval": 20}))
    service.live(30.0)
    assert service.health_of(0).finding is Finding.HEALTHY
    assert service.recoveries() == []


def test_what_a_user_has_marked_is_cut_off_before_an_update_replaces_it() -> None:
    service = Checked(2, fenced("COMPUTE"))
    before = service.handle(0)
    Marks(service.db).mark(service.group, MarkRequest(True, "by hand"), {"": "0"})
    service.resize(3)
    service.live(60.0)
    assert service.handle(0) != before
    assert service.recoveries()[:1] == ["fence"]


def test_an_update_ends_though_a_policy_only_observes_that_a_member_is_ill() -> None:
    service = Checked(2, policy(STATUS, mode="observe"))
    service.stop_server(0)
    service.live(12.0)
    service.resize(3)
    service.live(30.0)
    assert len(service.servers()) == 3
    assert service.stack(service.group).status == "FAILED"
    assert service.stack(service.group).action == "CHECK"


def test_a_policy_with_fewer_actions_takes_over_a_recovery() -> None:
    wanted = actions("REBOOT", "REBUILD", "RECREATE")
    service = Checked(2, policy(url(poll_url_retry_limit=1), actions=wanted, verify_timeout=20))
    service.answers["n-001"] = Answer(500, "ill")
    while len(service.recoveries()) < 2:
        service.live(5.0)
    service.detach()
    service.attach(policy(url(poll_url_retry_limit=1), actions=actions("REBOOT"), verify_timeout=20))
    service.live(60.0)
    assert service.recoveries()[:3] == ["REBOOT", "REBUILD", "REBOOT"]


@pytest.mark.heavy
@pytest.mark.shows("HS12")
@pytest.mark.parametrize("forced", [False, True])
def test_a_node_whose_deletion_takes_long_is_made_again_where_its_policy_forces_it(forced: bool) -> None:
    wanted = policy(STATUS, node_delete_timeout=30, node_force_recreate=forced)
    service = Checked(2, wanted, behaviour=CloudBehaviour(delete_s=500.0))
    before = service.handle(0)
    service.stop_server(0)
    service.live(25.0)
    assert service.servers_of(0) == [before, ""]
    service.live(60.0)
    there = service.servers_of(0)
    assert (before in there, len(there), "" in there) == (True, 2, not forced)
    service.live(600.0)
    assert before not in service.servers_of(0)
    assert service.health_of(0).finding is Finding.HEALTHY
