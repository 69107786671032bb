"""Rollouts of metadata whose members are gone before they have reported, or after."""

from tests.component.test_metadata_rollouts import Group


def test_a_member_that_is_replaced_meanwhile_is_not_waited_for() -> None:
    service = Group()
    service.change("2")
    service.cloud.vanish(service.members[0])
    service.live(30)
    assert service.values().count("2") == 1
    for _ in range(5):
        for number, value in enumerate(service.values()):
            if value == "2":
                service.report(number)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_a_canary_that_is_replaced_before_it_reports_is_followed_by_another_one() -> None:
    """Nothing has said yes yet, so that the other members wait."""
    service = Group(pattern="canary", steps=["1", "100%"], progress_deadline=600)
    service.change("2")
    service.cloud.vanish(service.members[0])
    service.live(60)
    assert service.values().count("2") == 1
    service.report(service.values().index("2"))
    assert service.values() == "2222"


def test_canaries_that_are_gone_one_after_the_other_fail_when_the_time_of_the_step_is_over() -> None:
    service = Group(pattern="canary", steps=["1", "100%"], progress_deadline=120)
    service.change("2")
    for _ in range(8):
        gone = service.values().find("2")
        if gone >= 0:
            service.cloud.vanish(service.members[gone])
        service.live(30)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("1111", "UPDATE_FAILED")
    assert "step 1:" in service.group_row.reason


def test_a_convergence_reaches_members_that_all_seem_to_be_gone() -> None:
    """Nobody but their user can say that they are, and the user names the stack of the template."""
    service = Group(progress_deadline=86400)
    service.change("2")
    gone = set(service.members)
    for each in gone:
        service.cloud.vanish(each)
    service.live(90)
    assert set(service.members) == gone
    service.actions.converge(service.id)
    service.live(60)
    assert not gone & set(service.members)
    for member in range(4):
        service.report(member)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("2222", "UPDATE_COMPLETE")


def test_no_member_is_left_out_for_one_that_was_reached_and_has_gone() -> None:
    service = Group(3, progress_deadline=600)
    service.change("2")
    service.report(0)
    service.cloud.vanish(service.members[0])
    service.live(90)
    assert service.values() == "121"
    service.report(1)
    assert service.values() == "221"
    service.report(0)
    service.live(10)
    assert (service.values(), service.state(service.id)) == ("222", "UPDATE_IN_PROGRESS")
    service.report(2)
    service.rest()
    assert (service.values(), service.state(service.id)) == ("222", "UPDATE_COMPLETE")
