"""A pass is a list of stages: the reconciler calls them in the order that the documentation shows."""

import re
from pathlib import Path
from typing import Any

import pytest

from homeostat.convergence import reconciler
from homeostat.convergence.jobs.conductor import run_pass
from tests.component.running import Service, double, server

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "convergence-loop.md"
STAGES = re.findall(r"^\| \d \w+ \| `(?:\w+)\.(\w+)` \|", PAGE.read_text(), re.MULTILINE)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the stages that had something to do, in the order of the calls."""
    names: list[str] = []

    def noted(name: str, stage: Any) -> Any:
        def call(*arguments: Any) -> Any:
            idle = name in ("act", "record") and not (getattr(arguments[-1], "answers", arguments[-1]))
            names.extend([] if idle else [name])
            return stage(*arguments)

        return call

    for name in STAGES:
        monkeypatch.setattr(reconciler, name, noted(name, getattr(reconciler, name)))
    return names


def test_the_page_names_all_stages() -> None:
    assert STAGES == ["load_world", "decide", "store", "act", "record", "release"]


def test_a_step_for_a_cloud_passes_all_stages_in_their_order(called: list[str]) -> None:
    service = Service()
    service.begin({"server": server()})
    run_pass(service.reconciler, service.claim())
    # A second decision finds nothing to do but to wait for the cloud.
    assert called == [*STAGES[:5], "decide", "release"]


def test_a_step_inside_the_service_is_stored_with_its_outcome(called: list[str]) -> None:
    service = Service()
    service.begin({"value": double()})
    run_pass(service.reconciler, service.claim())
    assert called == ["load_world", "decide", "act", "record", "decide", "release"]
