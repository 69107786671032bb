"""What lines of the log are about: as fields in JSON, at the end of lines for people."""

import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homeostat.cli.logs import JsonLines, Lines
from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Outage
from homeostat.model.observed import Observation
from homeostat.observability.log_context import about, fields, named
from homeostat.observability.outage_lines import OutageLines
from tests.component.running import Service

VOLUME = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}
KEY = {"type": "OS::Nova::KeyPair", "properties": {"name": "key"}}


class Breaking(SimulatedCloud):
    """An adapter with bugs in what it does with volumes."""

    broken = ""

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if self.broken == "create" and kind == "volume":
            raise RuntimeError("a bug")
        return super().create(kind, intents)

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        if self.broken == "observe" and kind == "volume":
            raise RuntimeError("a bug")
        return super().observe(kind, handles)


def breaking(what: str) -> Callable[[Any], Breaking]:
    def make(clock: Any) -> Breaking:
        cloud = Breaking(clock.now)
        cloud.broken = what
        return cloud

    return make


@pytest.fixture
def written() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Gives what has been logged since."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("homeostat")
    log.addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    log.removeHandler(handler)


@pytest.mark.parametrize("threads", [0, 2], ids=["in the thread of the pass", "side by side"])
def test_an_adapter_that_fails_in_a_pass(written: Callable[[], list[dict[str, Any]]], threads: int) -> None:
    executor = ThreadPoolExecutor(threads) if threads else None
    service = Service(cloud=breaking("create"), pool=executor)
    stack_id = service.begin({"one": VOLUME, "two": VOLUME, "key": KEY})
    service.work()
    line = written()[0]
    assert "create of 2 volume: the adapter failed" in line["message"]
    assert (line["stack"], line["shard"], line["resource"]) == (stack_id, 0, "one, two")
    assert "RuntimeError: a bug" in line["traceback"]
    if executor is not None:
        executor.shutdown()


def test_an_adapter_that_fails_when_things_are_looked_at(written: Callable[[], list[dict[str, Any]]]) -> None:
    service = Service(cloud=breaking("observe"))
    stack_id = service.create({"disk": VOLUME})
    service.live(90.0)
    line = written()[0]
    assert "cannot look at 1 volume" in line["message"]
    assert (line["stack"], line["resource"]) == (stack_id, "disk")


def test_a_pass_that_fails(written: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    stack_id = service.begin({"disk": VOLUME})
    monkeypatch.setattr(service.reconciler.definitions, "get", lambda *_: 1 / 0)
    service.work()
    [line] = written()
    assert (line["stack"], line["shard"], line["level"]) == (stack_id, 0, "error")
    assert "ZeroDivisionError" in line["traceback"]


def record() -> logging.LogRecord:
    return logging.LogRecord("homeostat.x", logging.INFO, __file__, 1, "said %s", ("so",), None)


def test_fields_hold_inside_and_end_with_it() -> None:
    with about(stack="s", shard=3):
        with about(resource="a"):
            assert dict(fields()) == {"stack": "s", "shard": 3, "resource": "a"}
            assert Lines().format(record()).endswith("homeostat.x: said so (stack=s shard=3 resource=a)")
        assert dict(fields()) == {"stack": "s", "shard": 3}
    assert Lines().format(record()).endswith("homeostat.x: said so")
    assert "stack" not in json.loads(JsonLines().format(record()))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a", "b", "a"], "a, b", id="each once"),
        pytest.param(list("abcdefg"), "a, b, c, d, e and 2 more", id="many"),
    ],
)
def test_many_names_in_one_field(names: list[str], expected: str) -> None:
    assert named(names) == expected


def test_texts_of_users_neither_end_a_line_nor_control_a_terminal() -> None:
    hostile = logging.LogRecord("homeostat.x", logging.INFO, __file__, 1, "said %s", ("\x1b[2J\nERROR forged",), None)
    line = Lines().format(hostile)
    assert line.endswith(r"said \x1b[2J\nERROR forged")
    try:
        raise ValueError("\x1b]52;c;eA==\x07")
    except ValueError as error:
        hostile.exc_info = (type(error), error, error.__traceback__)
    assert r"ValueError: \x1b]52;c;eA==\x07" in Lines().format(hostile)


def test_an_outage_is_one_line_a_minute() -> None:
    """Whichever part notices it, in whatever way, with a count of what was left out."""
    lines = OutageLines()

    def kept(at: float, record: logging.LogRecord) -> str:
        record.created = at
        return record.getMessage() if lines.filter(record) else ""

    def record(*arguments: object, error: BaseException | None = None) -> logging.LogRecord:
        raised = None if error is None else (type(error), error, None)
        return logging.LogRecord(
            "homeostat.x", logging.ERROR, __file__, 1, "said %s" * len(arguments), arguments, raised
        )

    away = Outage("the database does not answer", "no route to db.example")
    wrapped = RuntimeError("the job board failed")
    wrapped.__cause__ = away
    first = record(error=wrapped)
    assert kept(100.0, first) == "the database does not answer: no route to db.example"
    assert (first.levelname, first.exc_info) == ("WARNING", None)
    assert [kept(100.0 + second, record(away)) for second in range(50)] == [""] * 50
    assert kept(150.0, record(Outage("Redis does not answer", "refused"))) == "Redis does not answer: refused"
    assert kept(160.0, record(away)).endswith("no route to db.example (50 lines about it were left out)")
    assert kept(161.0, record(ValueError("a bug"))) == "said a bug"
    assert kept(161.0, record("nothing unusual")) == "said nothing unusual"
    assert kept(90.0, record(away)), "a clock that was set back silences nothing"
