"""How urgent the next pass over a shard is (CV17)."""

from typing import Any

import pytest

from homeostat.model.intent import ChangeIntent, OperationIntent
from homeostat.model.plan import Priority
from homeostat.model.world import Resource, StackFacts, World
from homeostat.planner.priority import urgency

AT_REST: dict[str, Any] = {"action": "CREATE", "status": "COMPLETE"}
AT_WORK: dict[str, Any] = {"action": "UPDATE", "status": "IN_PROGRESS"}
CASES = {
    "what a user waits for": (AT_WORK, [("CREATE", None)], Priority.USER),
    "a pause between batches": ({**AT_WORK, "step_at": 5.0}, [], Priority.ROLLOUT),
    "made anew": (AT_REST, [("CREATE", None)], Priority.HEAL),
    "started again": (AT_REST, [("UPDATE", OperationIntent("start"))], Priority.HEAL),
    "a leftover of healing": (AT_REST, [("DELETE", None)], Priority.HEAL),
    "a property differs": (AT_REST, [("UPDATE", ChangeIntent(("name",)))], Priority.DRIFT),
    "the most urgent counts": (AT_REST, [("UPDATE", ChangeIntent(("name",))), ("CREATE", None)], Priority.HEAL),
    "all at rest": (AT_REST, [], Priority.GARBAGE),
}


@pytest.mark.parametrize(("stack", "busy", "expected"), CASES.values(), ids=CASES.keys())
def test_urgency(stack: dict[str, Any], busy: list[tuple[str, Any]], expected: Priority) -> None:
    rows = {
        str(n): Resource(str(n), "s", 0, f"r{n}", "T", action=action, status="IN_PROGRESS", intent=intent)
        for n, (action, intent) in enumerate(busy)
    }
    rows["still"] = Resource("still", "s", 0, "still", "T", action="CREATE", status="COMPLETE")
    assert urgency(World(StackFacts("s", "s", "p", 1, **stack), 0, {}, rows)) == expected
