"""Explanations are given in any trouble, and reading them changes nothing."""

from contextlib import closing

import pytest

from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.status import Status
from homeostat.services.explainer import Explainer
from homeostat.store.stacks import stacks
from tests.simulation.parts import Part
from tests.simulation.trouble import troubled

pytestmark = pytest.mark.heavy

EVERY = 40
"""Steps between two explanations."""


class Explanations(Part):
    """Every stack is explained again and again."""

    def __init__(self) -> None:
        self._looks = 0
        self._definitions = DesiredGraphs()

    def check(self) -> None:
        self._looks += 1
        if self._looks % EVERY == 0:
            for stack in self.world.all_stacks():
                if stack.deleted_at is None:
                    self._explain(stack.id)

    def _explain(self, stack_id: str) -> None:
        with self.db.read() as tx:
            stack = stacks.get(tx, stack_id)
            assert stack is not None
            explainer = Explainer(tx, self._definitions, self.clock.time)
            page = explainer.page(stack, 1000, None, 5)
            progress = explainer.progress_of(stack, 0, 5)
        place = f"{stack.name} ({stack.action} {stack.status})"
        if stack.status == Status.IN_PROGRESS:
            assert page.explanations or page.after or page.waiting, f"{place} does not say why it is not done"
        assert 0 <= progress.done <= progress.planned, f"{place}: {progress}"
        for each in page.explanations:
            found = each.explanation
            assert found.released_by, f"{place}: {found}"
            assert found.node != found.cause or not found.after, f"{place}: {found}"
        self.world.happened["explained"] += len(page.explanations)


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.shows("CV19")
def test_asking_is_answered_and_changes_nothing(seed: int) -> None:
    with closing(troubled(seed, Explanations())) as world, closing(troubled(seed)) as left_alone:
        world.run()
        left_alone.run()
    assert world.happened["explained"] > 0
    assert world.story.lines == left_alone.story.lines
