"""The largest deployments that people have: everything mapped by the registry, eight levels deep, hundreds of files."""

import time
from collections import Counter

import pytest
from tests.overcloud import Overcloud, overcloud
from tests.unit.convergence.running import PROJECT, Service

from homeostat.api.intake import Intent, Quotas
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.planner.foresight import Fate

CPU_S = 60
"""On a busy machine; a tenth of it on a quiet one."""


@pytest.fixture(scope="module")
def large() -> Overcloud:
    return overcloud(roles=2)


def service() -> Service:
    there = Service()
    there.intake.quotas = Quotas(depth_max=8)
    return there


def intent(large: Overcloud) -> Intent:
    return Intent(large.template, environment=large.environment, files=large.files)


def test_its_shape(large: Overcloud) -> None:
    assert large.levels == 8
    assert len(large.files) >= 600


def test_it_is_checked_and_planned_in_seconds(large: Overcloud) -> None:
    there = service()
    began = time.thread_time()
    forecast = there.intake.foresee_new(PROJECT, "overcloud", intent(large))
    assert time.thread_time() - began < CPU_S
    fates = Counter(note.fate for each in forecast.all() for note in each.resources)
    assert fates.keys() == {Fate.ADDED}
    assert fates[Fate.ADDED] > 500
    assert max(len(each.path) for each in forecast.all()) == 8


def test_a_service_that_allows_less_says_what_to_set(large: Overcloud) -> None:
    there = Service()
    with pytest.raises(Rejected, match=r"Recursion depth exceeds 5: .* --depth-max"):
        there.intake.validate(Identity("None", "None", PROJECT), intent(large))
