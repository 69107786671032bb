"""Updates that overtake each other: whom any of them asked to remove goes, and no other (ADR 0095)."""

import json
from typing import Any

import pytest

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.nested_stacks import overtaken_revisions
from homeostat.desired.compiling import Definitions
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Identity
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import all_of
from homeostat.store.stacks.contents import Content
from tests.component.running import Service, double, group, server

SLOW = CloudBehaviour(build_s=10.0, delete_s=10.0)
PARAMETERS = {"n": {"type": "number"}, "rm": {"type": "comma_delimited_list", "default": ""}}
GIVEN = {name: {"get_param": name} for name in PARAMETERS}


def sized(mode: str = "append") -> dict[str, Any]:
    listed = {"removal_policies": [{"resource_list": GIVEN["rm"]}], "removal_policies_mode": mode}
    return {"grp": group(GIVEN["n"], server(), **listed)}


def text(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "parameters": PARAMETERS, "resources": resources}


class Autoscaled(Service):
    """A group of five whose user asks for fewer, again and again; depth — stacks around that of the group."""

    def __init__(self, depth: int = 1, resources: dict[str, Any] | None = None) -> None:
        super().__init__(SLOW)
        files = {"0.yaml": json.dumps(text(resources or sized()))}
        for level in range(1, depth):
            files[f"{level}.yaml"] = json.dumps(text({"inner": {"type": f"{level - 1}.yaml", "properties": GIVEN}}))
        whole = json.loads(files[f"{depth - 1}.yaml"])
        request = StackRequest(whole, parameters={"n": "5"}, files=files, disable_rollback=True)
        self.id = self.stack_service.create("p", None, "web", request)
        self.rest()
        self.first = self.members()

    def members(self) -> dict[str, str]:
        (found,) = [each.id for each in self.stacks() if each.parent_name == "grp" and each.deleted_at is None]
        return {each.name: each.handle for each in self.rows(found)}

    def ask(self, passes: int = 0, **parameters: Any) -> None:
        """So many passes are run after it."""
        given = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in parameters.items()}
        self.stack_service.update(self.id, StackRequest(None, parameters=given), patch=True)
        for _ in range(passes):
            try:
                run_pass(self.reconciler, self.claim())
            except StopIteration:
                return

    def settle(self) -> None:
        self.rest()
        self.live(60.0)
        assert self.state(self.id) == "UPDATE_COMPLETE"

    def ids(self, *names: str) -> list[str]:
        return [self.first[name] for name in names]

    def left(self) -> list[str]:
        """Names of those that were there first and are still."""
        return sorted(set(self.first) & {name for name, each in self.members().items() if each in self.first.values()})


@pytest.mark.parametrize("passes", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_updates_ask_for_adds_up_also_those_that_were_never_begun(depth: int, passes: int) -> None:
    there = Autoscaled(depth)
    for count, name in ((4, "1"), (3, "2"), (2, "4")):
        there.ask(passes, n=count, rm=there.ids(name))
    there.settle()
    assert there.members() == {name: there.first[name] for name in ("0", "3")}


def test_a_preview_knows_what_was_asked_for_before() -> None:
    there = Autoscaled()
    there.ask(n=4, rm=there.ids("1"))
    there.ask(n=3, rm=there.ids("2"))
    request = StackRequest(None, parameters={"n": "2", "rm": there.first["4"]})
    shown = all_of(there.stack_service.preview_update(there.id, request, patch=True))
    gone = {note.name for each, note in shown if note.fate == "deleted"}
    assert gone == {"1", "2", "4"}


def test_a_name_stands_for_whom_it_stood_for_when_it_was_accepted() -> None:
    """The named one is lost, and made again, before the request is acted on."""
    there = Autoscaled()
    there.cloud.vanish(there.first["1"])
    there.live(12.0)
    assert there.members()["1"] != there.first["1"]
    there.ask(n=4, rm=there.ids("1"))
    there.settle()
    assert there.left() == ["0", "2", "3"], "its id was nobody's any more"


@pytest.mark.parametrize("later_s", [0.0, 5.0, 15.0, 30.0])
def test_who_is_made_again_before_the_request_is_acted_on_is_still_meant(later_s: float) -> None:
    """The named one is lost, and made again, while the service is busy elsewhere."""
    slow = {"before": double(value=GIVEN["n"], wait_secs=later_s), **sized()}
    slow["grp"]["depends_on"] = "before"
    there = Autoscaled(resources=slow)
    there.ask(1, n=4, rm=there.ids("1"))
    there.cloud.vanish(there.first["1"])
    there.clock.time += 1
    there.observer.notice([ChangeNotice("server", there.first["1"])])
    there.settle()
    assert there.left() == ["0", "2", "3", "4"]


def test_a_list_that_starts_afresh_drops_what_was_asked_for_before() -> None:
    there = Autoscaled(resources=sized("update"))
    there.ask(n=4, rm=there.ids("1"))
    there.ask(n=3, rm=there.ids("2"))
    there.settle()
    assert there.left() == ["0", "1", "3"]


def test_what_was_taken_back_by_a_rollback_is_not_asked_for_any_more() -> None:
    resources = {"before": double(value=GIVEN["n"], wait_secs=20), **sized()}
    resources["grp"]["depends_on"] = "before"
    there = Autoscaled(resources=resources)
    there.ask(1, n=4, rm=there.ids("1"))
    there.stack_service.cancel(there.id, roll_back=True)
    there.rest()
    assert there.state(there.id) == "ROLLBACK_COMPLETE"
    there.ask(n=3, rm=there.ids("2"))
    there.settle()
    assert there.left() == ["0", "1", "3"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("count", [1, 12])
def test_each_overtaken_revision_is_compiled_once_however_many_groups_read_it(
    count: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand groups, each of which compiled a hundred revisions, took a worker for minutes."""
    compiled = list[str]()

    def counted(desired: Content, identity: Identity, shard: int) -> Definitions:
        compiled.append(identity.stack_id)
        return compile_graph(desired, identity, shard)

    monkeypatch.setattr(overtaken_revisions, "compile_graph", counted)
    several = {f"other{number}": sized()["grp"] for number in range(count - 1)}
    there = Autoscaled(depth, {**sized(), **several})
    updates = 6
    for number in range(updates):
        there.ask(n=4, rm=[str(number % 5)])
    there.settle()
    assert set(there.members()) == {"5", "6", "7", "8"}, "all five were named"
    # The newest is not overtaken. For a nested stack: those of its parent, and what each of them would have made of it.
    assert len(compiled) == (updates - 1) * depth
