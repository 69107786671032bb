"""Operations of the cloud port that are decided: they are stored with their arguments, and repeated with the same."""

from tests.unit.planner.worlds import NOW, SERVER, keys, row, seen, wanted, world

from homeostat.model.intent import OperationIntent
from homeostat.model.plan import Operate
from homeostat.planner import Frontier


def test_an_operation_whose_answer_was_lost_is_repeated_with_its_arguments() -> None:
    hard = OperationIntent("reboot", arguments={"type": "HARD"})
    mine = row("a", SERVER, "UPDATE_IN_PROGRESS", intent=hard)
    mine.acted_at = None
    of = world([wanted("a", SERVER)], [mine], {"a1": seen("active")})
    (step,) = Frontier(of, keys()).steps(NOW, 10)
    assert step.act == Operate("reboot", {"type": "HARD"})
