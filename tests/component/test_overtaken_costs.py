"""What a group was asked before costs the same however many revisions its stack has had (ADR 0095)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from homeostat.services.pipeline.request import StackRequest
from tests.component.running import Service, double, group

GROUPS = 6
PARAMETERS = {"n": {"type": "number"}}
GIVEN = {"n": {"get_param": "n"}}


def text(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "parameters": PARAMETERS, "resources": resources}


class Grown(Service):
    """A stack with a nested stack with groups; `update` gives all of them another definition."""

    def __init__(self) -> None:
        super().__init__()
        groups = {f"g{number}": group(1, double(value={"get_param": "n"})) for number in range(GROUPS)}
        files = {"inner.yaml": json.dumps(text(groups))}
        whole = text({"inner": {"type": "inner.yaml", "properties": GIVEN}})
        request = StackRequest(whole, parameters={"n": "0"}, files=files, disable_rollback=True)
        self.id = self.stack_service.create("p", None, "web", request)
        self.rest()

    def accept(self, number: int) -> None:
        self.stack_service.update(self.id, StackRequest(None, parameters={"n": str(number)}), patch=True)

    def cost(self, number: int, overtaken: int = 0) -> list[str]:
        """Statements on the table of revisions that an update takes, after so many others that it overtakes."""
        for each in range(overtaken):
            self.accept(number * 1000 + each)
        with statements(self) as found:
            self.accept(number)
            self.rest()
        assert self.state(self.id) == "UPDATE_COMPLETE"
        return [each for each in found if "FROM revision" in each]


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(service.db.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(service.db.engine, "before_cursor_execute", note)


def pages(found: list[str]) -> int:
    """How many of the statements list the revisions before another one."""
    return sum("revision.number <" in each for each in found)


def test_the_cost_of_an_update_does_not_grow_with_the_number_of_revisions() -> None:
    there = Grown()
    first = there.cost(1)
    for number in range(2, 22):
        there.accept(number)
        there.rest()
    later = there.cost(22)
    assert (len(later), pages(later)) == (len(first), 1), "nothing was overtaken: no group lists anything"


def test_what_was_overtaken_is_listed_once_for_all_groups() -> None:
    there = Grown()
    few, many = there.cost(1, overtaken=2), there.cost(2, overtaken=30)
    assert 0 < pages(few) < GROUPS
    assert pages(many) == pages(few)
