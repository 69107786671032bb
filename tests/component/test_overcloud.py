"""The largest deployments that people have: everything mapped by the registry, eight levels deep, hundreds of files."""

import time
from collections import Counter

import pytest

from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.planner.report.preview import Fate
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import PROJECT, Service
from tests.overcloud import Overcloud, overcloud

CPU_S = 60
"""On a busy machine; a tenth of it on a quiet one."""


@pytest.fixture(scope="module")
def large() -> Overcloud:
    return overcloud(roles=2)


def service() -> Service:
    return Service(depth_max=8)


def intent(large: Overcloud) -> StackRequest:
    return StackRequest(large.template, environment=large.environment, files=large.files)


def test_its_shape(large: Overcloud) -> None:
    assert large.levels == 8
    assert len(large.files) == 619


@pytest.mark.heavy
def test_it_is_checked_and_planned_in_seconds(large: Overcloud) -> None:
    there = service()
    began = time.thread_time()
    preview = there.stack_service.preview_new(PROJECT, "overcloud", intent(large))
    assert time.thread_time() - began < CPU_S
    fates = Counter(note.fate for each in preview.all() for note in each.resources)
    assert fates == {Fate.ADDED: 813}
    stacks = Counter(len(each.path) for each in preview.all())
    assert stacks == {0: 1, 1: 5, 2: 8, 3: 154, 4: 148, 5: 142, 6: 100, 7: 100, 8: 100}


def test_a_service_that_allows_less_says_what_to_set(large: Overcloud) -> None:
    there = Service()
    with pytest.raises(Rejected, match=r"Recursion depth exceeds 5: .* --depth-max"):
        there.stack_service.validate(Identity("None", "None", PROJECT), intent(large))


def test_a_smaller_one_as_deep_is_made_left_alone_and_deleted() -> None:
    small = overcloud(roles=1, services=4, nodes=1)
    assert small.levels == 8
    there = service()
    stack_id = there.stack_service.create(PROJECT, None, "overcloud", intent(small))
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE", there.stack(stack_id).reason
    made = {row.key: row.handle for each in there.stacks() for row in there.rows(each.id)}
    assert len(made) > 40
    there.stack_service.update(stack_id, intent(small))
    there.rest()
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert {row.key: row.handle for each in there.stacks() for row in there.rows(each.id)} == made
    there.delete(stack_id)
    there.rest()
    assert there.state(stack_id) == "DELETE_COMPLETE"
    assert there.cloud.things() == {}
