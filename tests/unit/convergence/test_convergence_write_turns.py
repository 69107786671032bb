"""On SQLite everybody who writes waits for whoever holds the write turn: nothing large is written out meanwhile, and no
template is compiled."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests import turns
from tests.unit.convergence.running import Service, double, group, server, template, volume

from homeostat.api.asks import Asks
from homeostat.api.intake import Intent

LARGE = "x" * 50_000
CHILD = f"""
heat_template_version: 2018-08-31
parameters: {{given: {{type: string}}}}
resources: {{inner: {{type: OS::Heat::TestResource, properties: {{value: {{get_param: given}}}}}}}}
outputs: {{text: {{value: "{LARGE}"}}}}
"""


@pytest.fixture
def found() -> Iterator[list[str]]:
    """What is done in write turns and should not be."""
    told: list[str] = []
    with turns.watched(told.append):
        yield told


def heavy(size: int = 1) -> dict[str, Any]:
    return {
        "web": {**server(name="web"), "metadata": {"large": LARGE}},
        "disk": volume(size=size, description=LARGE),
        "nested": {"type": "child.yaml", "properties": {"given": LARGE}},
        "grp": {
            **group(3, double(value=LARGE)),
            "update_policy": {"rolling_update": {"max_batch_size": 1}, "batch_create": {"max_batch_size": 2}},
        },
    }


def options() -> dict[str, Any]:
    return {"files": {"child.yaml": CHILD}, "environment": {"parameter_defaults": {"large": LARGE}}}


def made(service: Service) -> str:
    stack_id = service.create(heavy(), **options())
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return stack_id


def test_nothing_large_is_written_out_while_a_stack_is_made_and_changed(found: list[str]) -> None:
    service = Service()
    stack_id = made(service)
    service.update(stack_id, heavy(size=2), **options())
    service.rest()
    service.intake.update(stack_id, Intent(template({"disk": volume(size=3)})), patch=True)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert found == []


def test_nothing_large_is_written_out_when_a_change_goes_wrong(found: list[str]) -> None:
    service = Service()
    stack_id = made(service)
    broken = {**heavy(), "bad": double(fail=True)}
    service.update(stack_id, broken, disable_rollback=False, **options())
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.states(service.row(stack_id, "nested").handle) == {"inner": "CREATE_COMPLETE"}
    assert found == []


def test_nothing_large_is_written_out_when_a_stack_is_asked_again(found: list[str]) -> None:
    service = Service()
    stack_id = made(service)
    asks = Asks(service.db, 600.0)
    for ask in (asks.check, asks.converge, asks.suspend, asks.resume):
        ask(stack_id)
        service.rest()
    assert service.state(stack_id) == "RESUME_COMPLETE"
    assert found == []


def test_nothing_large_is_written_out_when_a_change_is_seen(found: list[str]) -> None:
    service = Service()
    stack_id = made(service)
    service.cloud.change(service.row(stack_id, "disk").handle, description=LARGE[1:], status="available")
    service.live(200.0)
    service.cloud.vanish(service.row(stack_id, "disk").handle)
    service.live(200.0)
    assert service.story(stack_id, "disk").count("disk UPDATE_COMPLETE") >= 1
    assert found == []


def test_nothing_large_is_written_out_when_a_stack_moves(found: list[str]) -> None:
    service = Service()
    resources = {**heavy(), "grp": group(3, double(value=LARGE))}
    stack_id = service.create(resources, **options())
    service.rest()
    document = service.moving.abandon(stack_id)
    service.rest()
    stack_id = service.adopt(document, **options())
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    service.delete(stack_id)
    service.rest()
    assert found == []
