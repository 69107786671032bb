"""Somebody who asks why things do not move gets an answer in any trouble, and changes nothing by asking."""

import pytest

from homeostat.convergence.explainer import Explainer
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.status import Status
from homeostat.store.stacks import stacks
from tests.simulation.trouble import TroubledWorld

EVERY = 40
"""Steps between two questions."""


class AskedWorld(TroubledWorld):
    """A world in which every stack is asked again and again why it does not move."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.steps = 0
        self.told = 0
        self._definitions = DesiredGraphs()

    def check(self) -> None:
        super().check()
        self.steps += 1
        if self.steps % EVERY == 0:
            for stack in self.all_stacks():
                if stack.deleted_at is None:
                    self._ask_about(stack.id)

    def _ask_about(self, stack_id: str) -> None:
        with self.db.read() as tx:
            stack = stacks.get(tx, stack_id)
            assert stack is not None
            asking = Explainer(tx, self._definitions, self.clock.time)
            page = asking.page(stack, 1000, None, 5)
            outlook = asking.outlook(stack, 0, 5)
        place = f"{stack.name} ({stack.action} {stack.status})"
        if stack.status == Status.IN_PROGRESS:
            assert page.told or page.after or page.waiting, f"{place} does not say why it is not done"
        assert 0 <= outlook.done <= outlook.planned, f"{place}: {outlook}"
        for each in page.told:
            found = each.explanation
            assert found.released_by, f"{place}: {found}"
            assert found.node != found.cause or not found.after, f"{place}: {found}"
        self.told += len(page.told)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.shows("CV19")
def test_asking_is_answered_and_changes_nothing(seed: int) -> None:
    asked, left_alone = AskedWorld(seed), TroubledWorld(seed)
    asked.run()
    left_alone.run()
    assert asked.told > 0
    assert asked.story.lines == left_alone.story.lines
