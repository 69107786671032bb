"""Abandoning stacks: everything is let go of as it is, and a document tells what there was."""

from typing import Any

import pytest
from sqlalchemy import update

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence import reconciler
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.json_pieces import plain
from homeostat.model.errors import Rejected
from homeostat.model.plan import Step
from homeostat.planner import Frontier
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.wait_conditions import CONDITION, HANDLE
from homeostat.services.quotas import Quotas
from homeostat.store import schema
from homeostat.store.shards import retained
from homeostat.store.stacks.locks import Lock
from tests.component.running import PROJECT, Service, condition, group, handle, server, template, volume

CONFIGURED = {"type": "OS::Heat::SoftwareConfig", "properties": {"group": "script", "config": "true"}}
CHILD = {
    "child.yaml": "{heat_template_version: 2018-08-31, resources: {inner: {type: OS::Cinder::Volume, "
    "properties: {size: 1}}}}"
}


def test_the_document_lists_what_there_is() -> None:
    """rest-api.md section 2.3."""
    service = Service()
    resources = {
        "disk": volume(),
        "word": {"type": "OS::Heat::RandomString"},
        "web": server(key_name="k"),
        "k": {"type": "OS::Nova::KeyPair", "properties": {"name": "k", "save_private_key": True}},
    }
    stack_id = service.create(resources, parameters={}, tags=["a"])
    service.rest()

    exported = plain(service.moving.export(stack_id))

    assert (exported["name"], exported["id"], exported["action"], exported["status"]) == (
        "web",
        stack_id,
        "CREATE",
        "COMPLETE",
    )
    assert (exported["project_id"], exported["tags"], exported["files"]) == (PROJECT, ["a"], {})
    assert exported["template"] == template(resources)
    disk = service.row(stack_id, "disk")
    state = {"action": "CREATE", "status": "COMPLETE", "metadata": {}}
    assert exported["resources"]["disk"] == {
        "name": "disk",
        "resource_id": disk.handle,
        "type": "OS::Cinder::Volume",
        "resource_data": {},
        **state,
    }
    word = service.attribute(stack_id, "word", "value")
    assert exported["resources"]["word"]["resource_data"] == {"value": word}
    assert exported["resources"]["k"]["resource_data"] == {"private_key": service.seen(stack_id, "k")["private_key"]}
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_what_is_nested_is_a_document_in_its_place() -> None:
    service = Service()
    stack_id = service.create({"group": group(2), "child": {"type": "child.yaml"}}, files=CHILD)
    service.rest()

    exported = plain(service.moving.export(stack_id))["resources"]

    assert sorted(each["resource_id"] for each in exported["group"]["resources"].values()) == service.servers()
    assert sorted(exported["group"]["resources"]) == ["0", "1"]
    assert exported["group"]["template"]["resources"]["1"]["properties"]["name"] == "m1"
    assert exported["child"]["resources"]["inner"]["resource_id"] in service.cloud.things("volume")
    assert exported["child"]["template"]["resources"]["inner"]["type"] == "OS::Cinder::Volume"


def test_a_handle_brings_its_signals_along() -> None:
    service = Service()
    stack_id = service.create({"handle": handle(), "wait": condition()})
    service.signal(stack_id, "handle", id="1", data="d", reason="r")
    service.rest()

    exported = plain(service.moving.export(stack_id))["resources"]["handle"]

    assert exported["metadata"] == {"1": {"status": "SUCCESS", "reason": "r", "data": "d"}}
    assert [each["id"] for each in exported["resource_data"]["signals"]] == ["1"]


def test_abandoning_touches_nothing() -> None:
    service = Service()
    stack_id = service.create({"group": group(2), "disk": volume(), "child": {"type": "child.yaml"}}, files=CHILD)
    service.rest()
    before = {handle: dict(thing) for handle, thing in service.cloud.things().items()}
    exported = plain(service.moving.export(stack_id))

    assert service.moving.abandon(stack_id) == exported
    service.rest()
    service.live(1000.0)

    assert service.cloud.things() == before
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert all(each.deleted_at is not None for each in service.stacks())
    assert not service.rows(stack_id)


def test_only_what_has_no_address_of_its_own_goes_with_the_stack() -> None:
    """Nobody could signal a handle of no stack, or delete it; configs are listed by the API."""
    service = Service()
    stack_id = service.create({"handle": handle(), "wait": condition(count=2), "config": CONFIGURED})

    service.moving.abandon(stack_id)
    service.rest()

    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert not service.records_of(HANDLE)
    assert not service.records_of(CONDITION)
    assert len(service.records_of(CONFIG)) == 1


def test_what_is_being_built_is_let_go_of() -> None:
    service = Service(CloudBehaviour(build_s=50.0))
    stack_id = service.create({"group": group(2), "disk": volume()})
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"

    service.moving.abandon(stack_id)
    service.rest()
    service.live(1000.0)

    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things()) == 3


def test_what_turns_up_late_stays() -> None:
    """A creation without an answer is not swept away once its stack is abandoned."""
    service = Service(CloudBehaviour(faults=Faults(lost=1.0), listing_lag_s=30.0))
    stack_id = service.create({"disk": volume()})
    assert service.row(stack_id, "disk").handle == ""

    service.moving.abandon(stack_id)
    service.rest()
    service.live(1000.0)

    assert len(service.cloud.things("volume")) == 1


def test_what_was_given_up_before_is_still_swept_away() -> None:
    """Only what stands for a resource at that moment stays: a second volume would be nobody's."""
    service = Service(CloudBehaviour(faults=Faults(lost=1.0), listing_lag_s=5.0, idempotent=False))
    stack_id = service.create({"disk": volume()}, timeout_mins=1)
    service.cloud.behaviour.faults = Faults()
    service.live(61.0)
    handles = set(service.cloud.things("volume"))

    service.moving.abandon(stack_id)
    service.rest()
    service.live(1000.0)

    assert len(handles) == 1
    assert len(service.cloud.things("volume")) <= 1


def test_pre_delete_hooks_do_not_hold_it() -> None:
    service = Service()
    hooks = {"resource_registry": {"resources": {"disk": {"hooks": ["pre-delete", "post-delete"]}}}}
    stack_id = service.create({"disk": volume()}, environment=hooks)

    service.moving.abandon(stack_id)
    service.rest()

    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_what_has_gone_and_waits_at_a_hook_goes() -> None:
    service = Service()
    hooks = {"resource_registry": {"resources": {"disk": {"hooks": ["post-delete"]}}}}
    stack_id = service.create({"disk": volume()}, environment=hooks)
    service.rest()
    service.delete(stack_id)
    assert service.states(stack_id) == {"disk": "DELETE_COMPLETE"}

    service.moving.abandon(stack_id)
    service.rest()

    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.story(stack_id, "disk")[-1:] == ["disk DELETE_COMPLETE"]
    assert service.story(stack_id, "disk").count("disk DELETE_COMPLETE") == 2  # the second tells of the hook


def test_what_is_decided_but_not_begun_is_not_done_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack is abandoned between the decision of a pass and its act: what the document names is not touched."""
    service = Service()
    stack_id = service.create({"web": server()})
    service.rest()
    id = service.row(stack_id, "web").handle
    service.live(5.0)
    service.cloud.change(id, status="stopped")
    service.observer.notice([ChangeNotice("server", id)])
    job = service.claim()
    exported: list[Any] = []

    class Overtaken(Frontier):
        def steps(self, now: float, limit: int) -> list[Step]:
            if not exported:
                exported.append(service.moving.abandon(stack_id))
            return super().steps(now, limit)

    monkeypatch.setattr(reconciler, "Frontier", Overtaken)
    run_pass(service.reconciler, job)
    service.rest()
    service.live(100.0)

    assert exported[0]["resources"]["web"]["resource_id"] == id
    assert service.cloud.things("server")[id]["status"] == "stopped"


def test_what_was_nested_once_and_was_retained_is_not_abandoned() -> None:
    """Found by the simulation (seed 41105181): it was never ended, since nothing deleted it."""
    service = Service(CloudBehaviour(build_s=100.0))
    stack_id = service.create({"part": {"type": "child.yaml", "deletion_policy": "Retain"}}, files=CHILD)
    (child,) = [each.id for each in service.stacks() if each.parent_id == stack_id]
    service.update(stack_id, {"word": {"type": "OS::Heat::RandomString"}})
    service.live(5.0)
    service.moving.abandon(stack_id)
    service.rest()
    assert service.stack(stack_id).deleted_at is not None
    assert (service.state(child), service.stack(child).spares) == ("CREATE_COMPLETE", None)


def test_what_is_nested_and_was_about_to_be_retained_is_abandoned_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on by itself, and never end."""
    service = Service()
    nested = {"type": "child.yaml", "deletion_policy": "Retain"}
    stack_id = service.create({"part": nested}, files=CHILD)
    service.rest()
    (child,) = [each.id for each in service.stacks() if each.parent_id == stack_id]
    service.stack_service.delete(stack_id)

    class Overtaken(Frontier):
        def steps(self, now: float, limit: int) -> list[Step]:
            found = super().steps(now, limit)
            if any(step.removed for step in found):
                monkeypatch.undo()
                service.moving.abandon(stack_id)
            return found

    monkeypatch.setattr(reconciler, "Frontier", Overtaken)
    service.rest()
    assert all(each.deleted_at is not None for each in service.stacks() if each.id in (stack_id, child))
    assert len(service.cloud.things()) == 1


def test_abandoning_in_the_middle_of_a_deletion_keeps_what_is_left() -> None:
    service = Service(CloudBehaviour(delete_s=100.0))
    stack_id = service.create({"first": server(), "second": {**server(), "depends_on": "first"}})
    service.rest()
    service.delete(stack_id)
    (left,) = [row.handle for row in service.rows(stack_id) if row.action != "DELETE"]
    going = service.row(stack_id, "second").handle

    exported = service.moving.abandon(stack_id)
    service.rest()
    service.live(300.0)

    assert exported["resources"]["first"]["resource_id"] == left
    second = exported["resources"]["second"]
    assert (second["resource_id"], second["action"], second["status"]) == (going, "DELETE", "IN_PROGRESS")
    assert service.servers() == [left]


def test_an_update_after_it_is_refused_and_a_deletion_deletes_nothing() -> None:
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.moving.abandon(stack_id)

    with pytest.raises(Rejected, match="is being abandoned"):
        service.update(stack_id, {"disk": volume(size=2)})
    service.delete(stack_id)
    service.rest()

    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_a_part_of_another_stack_is_not_abandoned() -> None:
    service = Service()
    service.create({"group": group(1)})

    with pytest.raises(Rejected, match="abandon the whole"):
        service.moving.abandon(service.child().id)


def test_who_is_behind_cannot_give_up_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that a newer owner has ended leaves what it made to that owner."""
    service = Service()
    stack_id = service.begin({"disk": volume()})
    job = service.claim()
    create = service.cloud.create

    def overtaken(kind, intents):  # type: ignore[no-untyped-def]
        made = create(kind, intents)
        service.moving.abandon(stack_id)
        with service.db.write() as tx:
            tx.exec_driver_sql("UPDATE shard SET epoch = epoch + 1, owner = NULL, lease_until = 0")
        return made

    monkeypatch.setattr(service.cloud, "create", overtaken)
    run_pass(service.reconciler, job)
    service.rest()
    service.live(1000.0)

    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_the_operator_may_switch_it_off() -> None:
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.stack_service.quotas = Quotas(abandon=False)

    for refused in (service.moving.abandon, service.moving.export):
        with pytest.raises(Rejected, match="switched it off") as exported:
            refused(stack_id)
        assert exported.value.fault == "NotSupported"
    assert service.stack(stack_id).deleted_at is None


def test_a_locked_stack_is_not_abandoned() -> None:
    """LK2: the lock says who, and the way out."""
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    lock = {"level": "all", "owner": "ops", "reason": "audit", "expires_at": None}
    with service.db.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(lock=lock))

    with pytest.raises(Rejected, match="unlock it first"):
        service.moving.abandon(stack_id)

    assert plain(service.moving.export(stack_id))["id"] == stack_id
    assert service.stack(stack_id).spares is None


def test_a_stack_that_could_not_be_locked_is_abandoned_with_all_that_is_nested_in_it() -> None:
    """Found by the simulation (seed 30202348): its lock held it in DELETE_IN_PROGRESS, and a worker busy, for ever."""
    service = Service()
    stack_id = service.create({"srv": server(), "grp": group(1), "gone": server()})
    service.rest()
    service.cloud.vanish(service.row(stack_id, "gone").handle)
    lock: Lock = {"level": "all", "owner": "ops", "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
    service.actions.lock(stack_id, lock, lambda _: True)
    service.rest()
    assert service.state(stack_id) == "LOCK_FAILED"
    assert [thing["locked"] for thing in service.cloud.things("server").values()] == [True, True]
    service.moving.abandon(stack_id)
    service.rest()
    assert [each.deleted_at is not None for each in service.stacks()] == [True, True]
    assert [thing["locked"] for thing in service.cloud.things("server").values()] == [True, True], "touched"


def test_what_was_kept_or_abandoned_is_remembered() -> None:
    service = Service()
    kept = {**volume(), "deletion_policy": "Retain"}
    stack_id = service.create({"kept": kept, "gone": volume(), "grp": group(1, volume())})
    service.rest()
    handle = service.row(stack_id, "kept").handle
    service.update(stack_id, {"gone": volume(), "grp": group(1, volume())})
    service.rest()
    assert remembered(service) == {handle: ("web", "kept", "kept, as its deletion policy says")}
    gone = service.row(stack_id, "gone").handle
    member = service.row(service.child().id, "0")
    service.moving.abandon(stack_id)
    service.live(30.0)
    found = remembered(service)
    assert {each: name for each, (_, name, _) in found.items()} == {handle: "kept", gone: "gone", member.handle: "0"}
    assert found[gone] == ("web", "gone", "kept: its stack lets go of it as it is")
    assert set(found) == set(service.cloud.things("volume"))


def remembered(service: Service) -> dict[str, tuple[str, str, str]]:
    with service.db.read() as tx:
        found = retained.among(tx, "volume", list(service.cloud.things("volume")))
    return {each.handle: (each.stack, each.name, each.reason) for each in found}


def test_what_is_nested_and_could_not_be_deleted_is_let_go_of_while_the_deletion_goes_on() -> None:
    """The failure reached the stack when it was being abandoned, and it stayed DELETE_FAILED."""
    service = Service()
    stack_id = service.create({"c": {"type": "child.yaml"}}, files=CHILD)
    service.rest()
    (disk,) = service.cloud.things("volume")
    service.cloud.change(disk, locked=True)
    child = service.child().id
    service.stack_service.delete(stack_id)
    while service.state(child) != "DELETE_FAILED":
        run_pass(service.reconciler, service.claim())
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.moving.abandon(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert disk in service.cloud.things("volume")
