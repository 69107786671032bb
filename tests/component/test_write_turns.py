"""On SQLite every writer waits for the holder of the write turn: nothing large is written out meanwhile, and no
template is compiled."""

from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.builtin import sessions
from homeostat.convergence.snapshots import completion
from homeostat.model.status import Action
from homeostat.resources.families.access import DEPLOYED
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.stacks import snapshots
from tests import turns
from tests.component.running import Service, double, group, server, template, volume

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
    begun: list[str] = []
    with turns.watched(begun.append):
        yield begun


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
    service.stack_service.update(stack_id, StackRequest(template({"disk": volume(size=3)})), patch=True)
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
    service.actions.converge(stack_id)
    service.rest()
    for action in (Action.CHECK, Action.SUSPEND, Action.RESUME):
        service.actions.begin(stack_id, action)
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


def test_nothing_large_is_written_out_when_a_snapshot_is_taken(found: list[str]) -> None:
    service = Service()
    resources = {name: {**double(), "metadata": {"large": LARGE}} for name in ("a", "b", "c")}
    stack_id = service.create(
        {**resources, "nested": {"type": "child.yaml", "properties": {"given": "x"}}}, **options()
    )
    service.rest()
    snapshot_id = service.snapshots.take(stack_id, None).id
    service.rest()
    assert found == []
    with service.db.read() as tx:
        kept = snapshots.get(tx, stack_id, snapshot_id)
    assert kept is not None
    assert kept.data is not None
    assert kept.status == "COMPLETE"
    begun = kept.data["resources"]
    assert begun["a"]["metadata"] == {"large": LARGE}
    assert begun["nested"]["resources"]["inner"]["status"] == "COMPLETE"


def test_a_snapshot_of_a_large_stack_names_only_so_many_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "RESOURCES_MAX", 4)
    service = Service()
    stack_id = service.create({"a": group(3, volume()), "b": group(2, volume())})
    service.rest()
    snapshot_id = service.snapshots.take(stack_id, None).id
    service.rest()
    with service.db.read() as tx:
        kept = snapshots.get(tx, stack_id, snapshot_id)
        parts = snapshots.parts(tx, snapshot_id)
    assert kept is not None
    assert kept.data is not None
    assert [sorted(each.get("resources", ())) for each in kept.data["resources"].values()] == [[], ["0", "1"]]
    assert len(parts) == 5


def test_what_the_service_keeps_itself_is_written_out_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write turn holds what weighs no more than a bound, or a single record."""
    monkeypatch.setattr(sessions, "LOAD_MAX", len(LARGE))
    service = Service()
    found: list[str] = []
    with turns.watched(found.append, written_max=3 * len(LARGE)):
        stack_id = service.create({f"s{number}": deployed(LARGE) for number in range(10)})
        service.rest()
        service.update(stack_id, {f"s{number}": deployed(LARGE[1:]) for number in range(10)})
        service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert found == []
    assert [each.object["name"] for each in service.records_of(DEPLOYED)] == [LARGE[1:]] * 10


def deployed(name: str) -> dict[str, Any]:
    return {"type": "OS::Heat::DeployedServer", "properties": {"name": name}}
