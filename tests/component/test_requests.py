"""Operations, checks and recoveries that users ask of single nodes: carried out once, and harmless when they fail."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.execution.encrypted_operations import operate
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Observation
from homeostat.model.plan import Operate, Step
from homeostat.model.status import joined
from homeostat.store.encryption.encrypted_arguments import encrypt
from homeostat.store.encryption.encrypted_cells import Keyring
from homeostat.store.stacks import action_begin, locks
from tests.component.requested import CHECKED, Nodes, operation, reboot, recreation
from tests.component.test_crashes import Died, die_after_acting

DONE = ("SUCCEEDED", "Action completed successfully.")


def state(service: Nodes, number: int = 0) -> str:
    row = service.member(number)
    return joined(row.action, row.status)


# -- operations --------------------------------------------------------------------------------------------------------


def test_an_operation_is_carried_out_once_with_its_arguments() -> None:
    service = Nodes()
    asked = service.ask(reboot("HARD"), 0)
    assert service.end(asked) is None
    service.work()
    assert service.counting.operated == [("reboot", {"type": "HARD"})]
    assert service.ended(asked) == DONE
    service.live(300.0)
    assert len(service.counting.operated) == 1
    assert state(service) == "UPDATE_COMPLETE"
    assert service.member(0).marks is None
    assert service.has_valid_history(service.child().id, "0")
    begun, done = service.texts(0)[-2:]
    assert (begun, done) == (
        f"UPDATE_IN_PROGRESS Operation 'reboot' in progress (request {asked})",
        f"UPDATE_COMPLETE Operation 'reboot' succeeded (request {asked})",
    )


def test_several_requests_are_carried_out_in_order() -> None:
    service = Nodes()
    asked = [service.ask(operation(name), 0, 1) for name in ("stop", "start", "pause")]
    service.work()
    assert [verb for verb, _ in service.counting.operated] == ["stop", "stop", "start", "start", "pause", "pause"]
    assert [service.ended(each) for each in asked] == [DONE] * 3


def test_too_many_requests_at_a_time_are_refused() -> None:
    service = Nodes()
    for _ in range(5):
        service.ask(reboot(), 0)
    with pytest.raises(Rejected, match="5 requests of node n0 have not ended yet"):
        service.ask(reboot(), 0, 1)
    service.work()
    assert len(service.counting.operated) == 5


@pytest.mark.parametrize("converge", [True, False])
@pytest.mark.parametrize(
    ("name", "status", "back"),
    [("stop", "stopped", "start"), ("pause", "paused", "unpause"), ("suspend", "suspended", "resume")],
)
def test_what_a_user_has_stopped_is_not_healed_until_it_is_started(
    name: str, status: str, back: str, converge: bool
) -> None:
    service = Nodes(converge=converge)
    service.ask(operation(name), 0)
    service.live(300.0)
    assert (service.status(0), state(service)) == (status, "UPDATE_COMPLETE")
    service.ask(operation(back), 0)
    service.live(60.0)
    assert (service.status(0), service.member(0).marks) == ("active", None)
    service.cloud.change(service.member(0).handle, status=status)
    service.live(300.0)
    assert service.status(0) == ("active" if converge else status)


def test_what_was_stopped_and_is_started_by_others_is_healed_again() -> None:
    service = Nodes(converge=True)
    service.ask(operation("stop"), 0)
    service.live(10.0)
    handle = service.member(0).handle
    service.cloud.change(handle, status="active")
    service.live(100.0)
    service.cloud.change(handle, status="stopped")
    service.live(100.0)
    assert service.status(0) == "active"


def test_what_a_user_has_stopped_is_made_anew_when_it_is_gone() -> None:
    service = Nodes(converge=True)
    service.ask(operation("stop"), 0)
    service.live(10.0)
    before = service.member(0).handle
    service.cloud.vanish(before)
    service.live(100.0)
    assert (service.status(0), service.member(0).handle != before) == ("active", True)


@pytest.mark.parametrize("converge", [True, False])
def test_an_operation_that_fails_changes_nothing(converge: bool) -> None:
    service = Nodes(converge=converge)
    service.ask(operation("lock"), 0)
    service.work()
    before, servers = service.member(0), service.servers()
    asked = service.ask(operation("stop"), 0)
    service.live(300.0)
    status, reason = service.ended(asked)
    assert (status, "Operation 'stop' failed" in reason, "locked" in reason) == ("FAILED", True, True)
    assert service.servers() == servers
    assert (service.status(0), state(service)) == ("active", "UPDATE_COMPLETE")
    assert (service.member(0).handle, service.member(0).revision) == (before.handle, before.revision)
    assert service.state(service.id) == "CREATE_COMPLETE"
    assert service.has_valid_history(service.child().id, "0")


def test_an_operation_that_fails_during_an_update_does_not_fail_the_update() -> None:
    service = Nodes(behaviour=CloudBehaviour(build_s=5.0))
    service.ask(operation("lock"), 0)
    service.work()
    asked = service.ask(operation("stop"), 0)
    with service.db.write() as tx:
        stack = locks.changeable(tx, service.id)
        action_begin.converge(tx, stack, service.clock.now(), 600.0)
    service.rest()
    assert service.ended(asked)[0] == "FAILED"
    assert service.state(service.id) == "UPDATE_COMPLETE"


def test_an_operation_that_its_type_does_not_have_fails() -> None:
    service = Nodes()
    asked = service.ask(operation("explode"), 0)
    service.work()
    assert service.ended(asked) == (
        "FAILED",
        "Operation 'explode' failed: a OS::Nova::Server has no operation explode",
    )
    assert service.has_valid_history(service.child().id, "0")
    assert state(service) == "CHECK_COMPLETE"


def test_an_operation_whose_answer_is_lost_is_repeated_by_the_next_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Nodes()
    asked = service.ask(reboot("HARD"), 0)
    die_after_acting(service, monkeypatch)
    assert service.end(asked) is None
    service.live(60.0)
    assert service.ended(asked) == DONE
    assert service.counting.operated == [("reboot", {"type": "HARD"})] * 2


def test_an_operation_of_a_cloud_that_is_away_ends_with_its_time() -> None:
    service = Nodes()
    asked = service.ask(reboot(), 0, timeout_s=60)
    service.cloud.behaviour.faults.refused = 1.0
    service.live(30.0)
    assert service.end(asked) is None
    service.live(60.0)
    assert service.ended(asked) == ("FAILED", "Operation 'reboot' failed: its time was over")
    assert state(service) == "UPDATE_COMPLETE"
    assert service.status(0) == "active"


def test_a_locked_stack_takes_no_request_and_carries_out_none() -> None:
    service = Nodes()
    asked = service.ask(reboot(), 0, timeout_s=100)
    lock = {"level": "stacks", "owner": "me", "owner_id": None, "reason": "", "at": 0.0, "expires_at": None}
    service.actions.lock(service.id, lock, lambda _: True)
    service.live(10.0)
    assert service.counting.operated == []
    with pytest.raises(Rejected, match="locked"):
        service.ask(reboot(), 0)
    service.live(100.0)
    assert service.ended(asked) == ("FAILED", "Operation 'reboot' failed: its time was over")
    assert service.counting.operated == []


def test_a_node_that_was_never_made_has_nothing_to_operate_on() -> None:
    service = Nodes()
    asked = service.ask(reboot(), 7)
    assert service.ended(asked) == ("FAILED", "Node n7: It has no physical object yet.")


def test_a_node_that_goes_before_its_turn_has_failed() -> None:
    service = Nodes()
    asked = service.ask(reboot(), 0)
    service.delete(service.id)
    service.rest()
    status, reason = service.ended(asked)
    assert (status, "went away" in reason) == ("FAILED", True) or (status, reason) == DONE


def test_a_password_is_in_no_row_no_event_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    service = Nodes()
    service.db.use_keys(Keyring([b"k" * 64]))
    asked = service.ask(operation("change_password", admin_pass="very s3cret"), 0)
    assert "very s3cret" not in service.everything()
    service.cloud.behaviour.faults.refused = 1.0
    service.live(30.0)
    assert "very s3cret" not in service.everything()
    service.cloud.behaviour.faults.refused = 0.0
    service.live(30.0)
    assert service.ended(asked) == DONE
    assert service.cloud.passwords == {service.member(0).handle: "very s3cret"}
    assert "very s3cret" not in service.everything() + caplog.text


def test_a_cloud_that_quotes_a_password_is_not_quoted() -> None:
    service = Nodes()
    service.counting.says = "the password very s3cret is too weak"
    asked = service.ask(operation("change_password", admin_pass="very s3cret"), 0)
    service.work()
    assert service.ended(asked) == (
        "FAILED",
        "Operation 'change_password' failed: the password ****** is too weak",
    )


def test_a_key_that_is_lost_fails_the_operation_that_needs_it_alone() -> None:
    service, encrypted = Nodes(), encrypt(Keyring([b"k" * 64]), {"admin_pass": "very s3cret"})
    rows = [service.member(0), service.member(1)]
    steps = [
        Step(rows[0], Operate("change_password", encrypted)),
        Step(rows[1], Operate("stop", {})),
    ]
    failed, done = operate(service.cloud, "server", steps, Keyring())
    assert isinstance(failed, Terminal)
    assert "cannot be read" in str(failed)
    assert isinstance(done, Observation)
    assert (service.status(1), service.cloud.passwords) == ("stopped", {})


# -- checks ------------------------------------------------------------------------------------------------------------


def test_a_check_looks_and_says_what_it_sees() -> None:
    service = Nodes()
    well = service.ask(CHECKED, 0)
    service.work()
    assert service.ended(well) == DONE
    assert service.texts(0)[-1] == f"CHECK_COMPLETE Check: Node is ACTIVE. (request {well})"
    service.cloud.vanish(service.member(0).handle)
    unwell = service.ask(CHECKED, 0)
    service.work()
    status, reason = service.ended(unwell)
    assert (status, reason.startswith("Check: Node is not ACTIVE.")) == ("FAILED", True)
    service.live(100.0)
    assert len(service.servers()) == 1, "a check heals nothing"
    assert service.has_valid_history(service.child().id, "0")


# -- recoveries --------------------------------------------------------------------------------------------------------


def test_a_node_that_is_recovered_gets_another_server_and_stays_what_it_is() -> None:
    service = Nodes()
    before = service.member(0)
    asked = service.ask(recreation(), 0)
    service.rest()
    service.live(10.0)
    assert service.ended(asked) == DONE
    after = service.member(0)
    assert (after.name, after.handle != before.handle, len(service.servers())) == ("0", True, 2)
    assert before.handle not in service.servers()
    assert after.marks is None
    assert f"CHECK_COMPLETE Recovery succeeded (request {asked})" in service.texts(0)


def test_what_is_well_is_left_alone_where_that_was_asked_for() -> None:
    service = Nodes()
    servers = service.servers()
    asked = service.ask(recreation(check=True), 0)
    service.work()
    assert service.ended(asked) == DONE
    assert service.servers() == servers
    assert "Recover: Node is ACTIVE." in service.texts(0)[-1]
    service.cloud.vanish(service.member(1).handle)
    asked = service.ask(recreation(check=True), 1)
    service.live(30.0)
    assert (service.ended(asked), len(service.servers())) == (DONE, 2)


def test_a_lost_node_that_is_left_alone_is_recovered_on_request() -> None:
    service = Nodes()
    service.cloud.change(service.member(0).handle, status="stopped")
    service.live(100.0)
    assert service.status(0) == "stopped"
    asked = service.ask(reboot("HARD"), 0)
    service.live(10.0)
    assert (service.ended(asked), service.status(0)) == (DONE, "active")


def test_a_deletion_that_takes_too_long_fails_the_recovery_and_the_node_comes_back_later() -> None:
    service = Nodes(behaviour=CloudBehaviour(delete_s=100.0))
    asked = service.ask(recreation(20), 0)
    service.live(50.0)
    status, reason = service.ended(asked)
    assert (status, "not deleted after 20 s" in reason) == ("FAILED", True)
    service.live(100.0)
    assert len(service.servers()) == 2
    assert service.member(0).status == "COMPLETE"


def test_a_recovery_by_force_does_not_wait_for_the_deletion() -> None:
    service = Nodes(behaviour=CloudBehaviour(delete_s=100.0))
    asked = service.ask(recreation(20, force=True), 0)
    service.live(15.0)
    assert service.end(asked) is None
    service.live(10.0)
    assert service.ended(asked) == DONE
    assert len(service.servers()) == 3
    service.live(100.0)
    assert len(service.servers()) == 2


def test_what_is_fenced_first_is_made_anew_once_it_is_seen_to_be_cut_off() -> None:
    service = Nodes()
    service.cloud.behaviour.faults.fence = 1.0
    before = service.member(0).handle
    asked = service.ask(recreation(60, fence=["COMPUTE"]), 0)
    service.live(30.0)
    assert service.end(asked) is None
    assert before in service.servers()
    service.cloud.behaviour.faults.fence = 0.0
    service.live(30.0)
    assert service.ended(asked) == DONE
    assert before not in service.servers()


def test_what_cannot_be_fenced_is_not_made_anew() -> None:
    service = Nodes()
    service.cloud.behaviour.faults.fence = 1.0
    servers = service.servers()
    asked = service.ask(recreation(20, fence=["COMPUTE"]), 0)
    service.live(60.0)
    assert service.ended(asked) == ("FAILED", "Recovery failed: it was not seen to be cut off within 20 s")
    assert service.servers() == servers


def test_a_recovery_survives_the_death_of_its_worker_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Nodes(behaviour=CloudBehaviour(build_s=2.0, delete_s=2.0))
    asked = service.ask(recreation(60, fence=["COMPUTE"]), 0)
    deaths = 0
    for _ in range(100):
        if service.end(asked) is not None:
            break
        if service.board.job_count:
            try:
                die_after_acting(service, monkeypatch)
            except (Died, pytest.fail.Exception):
                pass
            else:
                deaths += 1
        service.live(6.0)
    assert service.ended(asked) == DONE
    assert (deaths > 0, len(service.servers()), service.cloud.doubled) == (True, 2, [])


def test_a_node_whose_creation_failed_is_made_on_request() -> None:
    service = Nodes(behaviour=CloudBehaviour(quota=1))
    assert len(service.servers()) == 1
    (failed,) = [number for number in (0, 1) if not service.member(number).handle]
    service.cloud.behaviour.quota = None
    asked = service.ask(recreation(), failed)
    service.live(60.0)
    assert (service.ended(asked), len(service.servers())) == (DONE, 2)
    assert service.member(failed).status == "COMPLETE"
