"""A deletion goes on under other deletion policies, wherever in the tree of a stack they stand (CV14, ADR 0048)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.desired import members
from homeostat.planner.report.preview import Fate
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import all_of
from homeostat.store.stacks.locks import Lock
from tests.component.running import Service, double, group, template, volume

DISK = """
heat_template_version: rocky
parameters:
  colour: {type: string, default: red}
resources:
  note: {type: OS::Heat::TestResource, properties: {value: {get_param: colour}}}
  disk: {type: OS::Cinder::Volume, properties: {size: 1}}
"""
KEPT = DISK.replace("{type: OS::Cinder::Volume", "{type: OS::Cinder::Volume, deletion_policy: Retain")
OUTER = "heat_template_version: rocky\nresources: {inside: {type: disk.yaml}}"
STACKS: Lock = {"level": "stacks", "owner": "ann", "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}

ROOTS: dict[str, dict[str, Any]] = {
    "a provider template": {"t": double(value="1"), "d": {"type": "disk.yaml"}},
    "two levels": {"t": double(value="1"), "d": {"type": "outer.yaml"}},
    "members of a group": {"g": group(3, {"type": "disk.yaml"})},
    "by the registry": {"d": {"type": "My::Disk"}},
}
VOLUMES = {"members of a group": 3}


def hanging(kind: str, *, timed_out: bool = False) -> tuple[Service, str, dict[str, Any]]:
    """A stack whose deletion hangs on volumes inside; and what its updates say again."""
    service = Service(CloudBehaviour(delete_s=1e9))
    options: dict[str, Any] = {"files": {"disk.yaml": DISK, "outer.yaml": OUTER}}
    if kind == "by the registry":
        options["environment"] = {"resource_registry": {"My::Disk": "disk.yaml"}}
    stack_id = service.create(ROOTS[kind], timeout_mins=1, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    service.delete(stack_id)
    service.live(150.0 if timed_out else 5.0)
    assert service.state(stack_id) == ("DELETE_FAILED" if timed_out else "DELETE_IN_PROGRESS")
    return service, stack_id, options


@pytest.mark.heavy
@pytest.mark.parametrize("patch", [False, True], ids=["PUT", "PATCH"])
@pytest.mark.parametrize("timed_out", [False, True], ids=["hanging", "timed out"])
@pytest.mark.parametrize("kind", ROOTS)
def test_a_hanging_delete_ends_when_a_file_retains_what_hangs(kind: str, timed_out: bool, patch: bool) -> None:
    service, stack_id, said = hanging(kind, timed_out=timed_out)
    files = {"disk.yaml": KEPT} if patch else {**said["files"], "disk.yaml": KEPT}
    service.stack_service.update(stack_id, StackRequest(template(ROOTS[kind]), **{**said, "files": files}), patch=patch)
    service.rest(20.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == VOLUMES.get(kind, 1)
    assert all(each.deleted_at is not None for each in service.stacks())


@pytest.mark.parametrize(
    "files",
    [
        {"disk.yaml": KEPT.replace("default: red", "default: blue")},
        {"disk.yaml": KEPT, "other.txt": "new"},
        {"disk.yaml": DISK},
        {"disk.yaml": DISK + "\n# a remark"},
    ],
    ids=["a default, too", "another file, too", "nothing", "a remark"],
)
def test_any_other_change_of_a_file_has_the_stack_back(files: dict[str, str]) -> None:
    service, stack_id, said = hanging("a provider template")
    hung = list(service.cloud.things("volume"))
    service.update(stack_id, ROOTS["a provider template"], files={**said["files"], **files})
    assert service.stack(stack_id).action == "UPDATE"
    service.cloud.behaviour.delete_s = 0.0
    for handle in hung:
        service.cloud.vanish(handle)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_a_template_that_is_read_as_a_text_too_is_no_mere_policy() -> None:
    service = Service(CloudBehaviour(delete_s=1e9))
    resources = {"t": double(value={"get_file": "disk.yaml"}), "d": {"type": "disk.yaml"}}
    stack_id = service.create(resources, files={"disk.yaml": DISK})
    service.rest()
    service.delete(stack_id)
    service.live(5.0)
    service.update(stack_id, resources, files={"disk.yaml": KEPT})
    assert service.stack(stack_id).action == "UPDATE"


def waiting() -> tuple[Service, str, dict[str, Any], str]:
    """The deletion of a nested stack has not begun: it waits for what reads it, whose deletion hangs. Gives the new
    resources and the new text of the file, which retain all volumes, too."""
    service = Service(CloudBehaviour(delete_s=1e9))
    outputs = "outputs: {colour: {value: {get_attr: [note, output]}}}"
    reader = {"type": "OS::Cinder::Volume", "properties": {"size": 1, "description": {"get_attr": ["d", "colour"]}}}
    resources = {"reader": reader, "d": {"type": "disk.yaml"}}
    stack_id = service.create(resources, files={"disk.yaml": DISK + outputs})
    service.rest()
    service.delete(stack_id)
    service.live(5.0)
    assert service.child().action == "CREATE"
    return service, stack_id, {**resources, "reader": {**reader, "deletion_policy": "Retain"}}, KEPT + outputs


def test_what_is_not_yet_being_deleted_has_the_new_policy_as_well() -> None:
    service, stack_id, resources, kept = waiting()
    service.update(stack_id, resources, files={"disk.yaml": kept})
    service.rest(20.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == 2


def test_policies_of_a_file_may_be_changed_again() -> None:
    service, stack_id, said = hanging("a provider template")
    root = ROOTS["a provider template"]
    snapshot = KEPT.replace("Retain", "Snapshot")
    service.cloud.behaviour.snapshot_s = 1e9
    service.update(stack_id, root, files={**said["files"], "disk.yaml": snapshot})
    service.live(2.0)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.update(stack_id, root, files={**said["files"], "disk.yaml": KEPT})
    service.rest(20.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_a_preview_shows_what_the_policies_of_a_file_would_keep() -> None:
    service, stack_id, resources, kept = waiting()
    preview = service.stack_service.preview_update(
        stack_id, StackRequest(template(resources), files={"disk.yaml": kept})
    )
    found = {note.name: (note.fate, note.row.deletion_policy) for _, note in all_of(preview) if note.row is not None}
    assert found == {"d": (Fate.DELETED, "Delete"), "note": (Fate.DELETED, "Delete"), "disk": (Fate.DELETED, "Retain")}


def test_what_could_not_be_deleted_in_its_time_and_goes_later_is_not_waited_for() -> None:
    service = Service(CloudBehaviour(delete_s=90.0))
    stack_id = service.create({"t": double(value="1"), "d": volume()}, timeout_mins=1)
    service.rest()
    service.update(stack_id, {"t": double(value="1")}, timeout_mins=1)
    service.live(70.0)
    assert (service.state(stack_id), service.states(stack_id)["d"]) == ("UPDATE_FAILED", "DELETE_FAILED")
    service.live(120.0)
    assert service.states(stack_id) == {"t": "CREATE_COMPLETE"}
    assert service.story(stack_id, "d")[-1] == "d DELETE_COMPLETE"


HINDERED: dict[str, dict[str, Any]] = {
    "what it requires goes after it": {"t": double(value="1"), "d": {**volume(), "depends_on": "t"}},
    "nested": {"t": double(value="1"), "g": group(1, volume())},
    "in a shard of several": {"g": group(5, volume())},
}


@pytest.mark.parametrize("locked", [False, True], ids=["", "locked meanwhile"])
@pytest.mark.parametrize("kind", HINDERED)
def test_what_could_not_be_deleted_is_once_nothing_is_left(
    kind: str, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    service = Service()
    stack_id = service.create(HINDERED[kind])
    service.rest()
    hindering = list(service.cloud.things("volume"))[::3]
    for each in hindering:
        service.cloud.change(each, locked=True)
    service.delete(stack_id)
    service.live(30.0)
    assert (service.state(stack_id), list(service.cloud.things("volume"))) == ("DELETE_FAILED", hindering)
    if locked:
        service.actions.lock(stack_id, STACKS, lambda _: True)
        service.live(5.0)
    for each in hindering:
        service.cloud.vanish(each)
        service.live(400.0)
        gone = each == hindering[-1] and not locked
        assert service.state(stack_id) == (
            "DELETE_COMPLETE" if gone else "LOCK_COMPLETE" if locked else "DELETE_FAILED"
        )
    if locked:
        service.actions.unlock(stack_id, lambda _: True)
        service.live(400.0)
    assert service.story(stack_id)[-1] == "web DELETE_COMPLETE"
    assert all(each.deleted_at is not None for each in service.stacks())


def test_an_update_that_could_not_delete_something_has_failed_also_when_that_has_gone() -> None:
    service = Service()
    stack_id = service.create({"t": double(value="1"), "d": volume()})
    service.rest()
    (hindering,) = service.cloud.things("volume")
    service.cloud.change(hindering, locked=True)
    service.update(stack_id, {"t": double(value="1")})
    service.live(30.0)
    service.cloud.vanish(hindering)
    service.live(400.0)
    assert (service.state(stack_id), service.states(stack_id)) == ("UPDATE_FAILED", {"t": "CREATE_COMPLETE"})
    service.update(stack_id, {"t": double(value="1")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
