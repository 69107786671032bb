"""Causes of failures: which of them others take away, and when what lacked such a thing is tried again."""

import pytest
from tests.unit.planner.worlds import row

from homeostat.planner.retry import causes


@pytest.mark.parametrize(
    ("reason", "released_by"),
    [
        ("No valid host was found. There are not enough hosts available.", "a host"),
        ("No valid backend was found. No weighed backends available", "a host"),
        ("compute: Quota exceeded for cores: Requested 1, but already used 8 of 8 cores", "quota"),
        ("network: Quota exceeded for resources: ['port'].", "quota"),
        ("block-storage: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.", "quota"),
        ("load-balancer: Quota has been met for resources: Load Balancer", "quota"),
        ("network: Insufficient prefix space to allocate subnet size /16", "a prefix"),
        ("network: No more IP addresses available on network 7.", "address"),
        ("compute: Key pair 'ann' already exists.", "name"),
        ("network: IP address 10.0.0.5 already allocated in subnet 7", "name"),
        ("network: Port 7 is still in use.", ""),
        ("network: The VIP address 10.0.0.5 is in use by another port", "name"),
        ("compute: Can not find requested image", ""),
        ("Invalid input for field flavor", ""),
        ("", ""),
    ],
)
def test_what_others_take_away_is_known_by_the_words_of_the_services(reason: str, released_by: str) -> None:
    cause = causes.cause_of(row("a", state="CREATE_FAILED", reason=reason))
    assert (cause is not None, released_by in (cause.released_by if cause else "")) == (bool(released_by), True)


@pytest.mark.parametrize("state", ["CREATE_COMPLETE", "CREATE_IN_PROGRESS", "UPDATE_FAILED", "CHECK_FAILED"])
def test_only_what_could_not_be_made_lacks_something(state: str) -> None:
    assert causes.cause_of(row("a", state=state, reason="Quota exceeded")) is None


def test_it_is_tried_at_growing_intervals() -> None:
    times = [
        causes.due_at(row("a", state="CREATE_FAILED", reason="quota", attempts=n, updated_at=0.0)) for n in range(12)
    ]
    assert times[:4] == [30.0, 30.0, 60.0, 120.0]
    assert times[-1] == causes.PATIENT_RETRY.longest_s
