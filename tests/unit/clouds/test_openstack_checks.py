"""What `doctor` says of the clocks of services, and of answers that only a broken one gives."""

import time
from dataclasses import dataclass, field
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from homeostat.cli.openstack_checks import _clocks, _extensions, _service
from homeostat.clouds.openstack.registry import COLLECTIONS
from homeostat.doctor.checks import CLOCKS_S, Level

FAR_S = CLOCKS_S + 60.0


@dataclass
class Answering:
    """A service whose every answer has a date and a status."""

    date: str
    status: int = 200
    endpoint_override: str = "http://there.example:9696"
    session: Any = field(init=False)

    def __post_init__(self) -> None:
        answer = SimpleNamespace(headers={"Date": self.date} if self.date else {}, status_code=self.status)
        self.session = SimpleNamespace(get=lambda *_, **__: answer)


@pytest.mark.parametrize(
    ("ahead_s", "level"), [(FAR_S, Level.WARN), (-FAR_S, Level.WARN), (0.0, Level.OK)], ids=["ahead", "behind", "right"]
)
def test_the_clock_of_a_service_that_is_wrong_is_named(ahead_s: float, level: Level) -> None:
    differences: list[float] = []
    for shift in (0.0, ahead_s):
        service = Answering(formatdate(time.time() + shift, usegmt=True))
        assert _service(lambda service=service: service, "network", ["port"], differences).level is Level.OK  # type: ignore[misc]
    found = _clocks(differences)
    assert found.level is level
    assert ("differs by 6" in found.found) == (level is Level.WARN)


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_service_that_shows_no_time_has_no_wrong_clock(date: str) -> None:
    differences: list[float] = []
    assert _service(lambda: Answering(date), "network", ["port"], differences).level is Level.OK
    assert differences == []


def test_a_service_that_is_broken_is_named_with_its_address() -> None:
    found = _service(lambda: Answering("", 503), "network", ["port"], [])
    assert (found.level, found.found) == (Level.FAIL, "http://there.example:9696 answers 503")


HAD = {name for each in COLLECTIONS if (name := getattr(each, "extension", ""))}


def networking(there: set[str]) -> Any:
    """A client of one that has these extensions."""
    body = {"extensions": [{"alias": each} for each in sorted(there)]}
    return SimpleNamespace(get=lambda *_, **__: SimpleNamespace(json=lambda: body))


def test_the_extensions_that_networking_lacks_are_named_with_what_they_have() -> None:
    (found,) = _extensions(lambda: networking(HAD | {"router"}))
    assert (found.level, "router" in found.found) == (Level.OK, False)
    (found,) = _extensions(lambda: networking(HAD - {"sfc", "taas"}))
    assert (found.level, found.found) == (Level.WARN, "it lacks sfc, taas")
    assert found.remedy.endswith("port pair, port pair group, port chain, tap service, tap flow")


def test_networking_that_does_not_say_what_it_has_is_left_to_the_check_of_the_service() -> None:
    broken = SimpleNamespace(get=lambda *_, **__: SimpleNamespace(json=lambda: {}))
    assert list(_extensions(lambda: broken)) == []
