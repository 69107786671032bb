"""Previews of stacks that are not as they should be: what is shown is what the update then does."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.model.plan import Verb
from homeostat.model.status import Action
from homeostat.planner.report.preview import FAILS, WAITS, Fate, ResourcePreview, as_changed
from homeostat.services.actions import ConvergenceSettings
from tests.component.marked import mark
from tests.component.previewed import Resources, acting, changes, done, notes_of, preview, random, state_of, value
from tests.component.running import Service, double, group, server, volume

UNHEALED = ConvergenceSettings({"converge": False})
ASKING = ConvergenceSettings({"healing": {"policy": "ask"}})


def grown(resources: Resources, switches: ConvergenceSettings | None = None) -> tuple[Service, str]:
    """Return a service with a stack that has come to rest, and then was switched."""
    service = Service()
    stack_id = service.create(resources)
    service.rest()
    if switches is not None:
        service.actions.switch(stack_id, switches)
        service.live(1.0)
    return service, stack_id


def lose(service: Service, name: str, kind: str = "server") -> None:
    """Take away the things whose names have this in them, and let that be seen."""
    for handle, each in service.cloud.things(kind).items():
        if name in each["name"]:
            service.cloud.vanish(handle)
    service.live(130.0)


def updated(service: Service, stack_id: str, resources: Resources, **options: Any) -> dict[str, str]:
    """Update a stack; return what became of what, by path."""
    before = state_of(service)
    service.update(stack_id, resources, **options)
    service.rest()
    return {"/".join(place): fate for place, fate in done(before, state_of(service)).items()}


def shown(service: Service, stack_id: str, resources: Resources, **options: Any) -> dict[str, str]:
    found = changes(preview(service, stack_id, resources, **options))
    return {"/".join(place): fate for place, fate in found.items()}


def test_a_change_that_replaces_what_has_drifted_is_shown_as_a_replacement() -> None:
    before, after = (server(metadata={"role": "web"}, user_data=data) for data in ("one", "two"))
    service, stack_id = grown({"s": before}, UNHEALED)
    (handle,) = service.servers()
    service.cloud.change(handle, metadata={"role": "hacked"})
    service.live(130.0)
    (note,) = notes_of(preview(service, stack_id, {"s": after}))
    assert (note.fate, as_changed(note.changed)) == (Fate.REPLACED, ["metadata", "user_data"])
    assert (note.before["metadata"], note.after["metadata"]) == ({"role": "hacked"}, {"role": "web"})
    assert "user_data" in note.why
    assert "metadata" in note.why
    assert updated(service, stack_id, {"s": after}) == {"s": "replaced"}


def test_a_change_in_place_of_what_has_drifted_is_shown_beside_the_drift() -> None:
    service, stack_id = grown({"s": server(metadata={"role": "web"}, name="a")}, UNHEALED)
    service.cloud.change(service.servers()[0], metadata={"role": "hacked"})
    service.live(130.0)
    after = {"s": server(metadata={"role": "web"}, name="b")}
    (note,) = notes_of(preview(service, stack_id, after))
    assert (note.fate, as_changed(note.changed)) == (Fate.UPDATED, ["metadata", "name"])
    service.update(stack_id, after)
    service.rest()
    (thing,) = service.cloud.things("server").values()
    assert (thing["name"], thing["metadata"]) == ("b", {"role": "web"})


def test_what_failed_a_check_and_came_back_is_compared_with_its_definition() -> None:
    service, stack_id = grown({"s": server(user_data="one")}, UNHEALED)
    (handle,) = service.servers()
    service.cloud.change(handle, status="error")
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.states(stack_id) == {"s": "CHECK_FAILED"}
    service.cloud.change(handle, status="active")
    service.live(130.0)
    after = {"s": server(user_data="two")}
    assert shown(service, stack_id, after) == {"s": "replaced"} == updated(service, stack_id, after)


def test_what_is_marked_unhealthy_is_shown_as_replaced() -> None:
    service, stack_id = grown({"s": server(), "v": volume()}, UNHEALED)
    mark(service, stack_id, "s")
    after = {"s": server(), "v": volume()}
    assert shown(service, stack_id, after) == {"s": "replaced"} == updated(service, stack_id, after)


def test_what_needs_a_lost_thing_is_shown_as_it_is_done_once_that_is_back() -> None:
    before = {"v": volume(), "s": {**server(user_data="one"), "depends_on": "v"}}
    after = {"v": volume(), "s": {**server(user_data="two"), "depends_on": "v"}}
    service, stack_id = grown(before, UNHEALED)
    lose(service, "", "volume")
    assert shown(service, stack_id, after) == {"v": "replaced", "s": "replaced"} == updated(service, stack_id, after)


def test_a_lost_member_of_a_group_is_brought_back_by_an_update_where_convergence_is_off() -> None:
    resources = {"g": group(3), "v": volume()}
    service, stack_id = grown(resources, UNHEALED)
    lose(service, "m1")
    assert len(service.servers()) == 2
    expected = {"g/1": "replaced"}
    assert shown(service, stack_id, resources) == expected
    with acting(service) as acts:
        assert updated(service, stack_id, resources) == expected
    assert {place for place, verbs in acts.items() if Verb.CREATE in verbs} == {("g", "1")}
    assert len(service.servers()) == 3
    assert shown(service, stack_id, resources) == {}


def test_so_is_what_is_lost_two_levels_down() -> None:
    resources = {"g": group(2, group(2, server(name="m")))}
    service, stack_id = grown(resources, UNHEALED)
    service.cloud.vanish(service.servers()[0])
    service.live(130.0)
    found = shown(service, stack_id, resources)
    assert len(found) == 1
    assert found == updated(service, stack_id, resources)
    assert len(service.servers()) == 4


def test_drift_of_a_member_is_brought_back_and_shown_too() -> None:
    resources = {"g": group(2, server(name="m%index%", metadata={"a": "1"}))}
    service, stack_id = grown(resources, UNHEALED)
    service.cloud.change(service.servers()[0], metadata={"a": "2"})
    service.live(130.0)
    assert list(shown(service, stack_id, resources).values()) == ["updated"]
    service.update(stack_id, resources)
    service.rest()
    assert [each["metadata"] for each in service.cloud.things("server").values()] == [{"a": "1"}] * 2


def test_an_update_leaves_members_of_groups_alone_where_nothing_is_wrong() -> None:
    service, stack_id = grown({"g": group(2), "v": volume()}, UNHEALED)
    nested = service.child().revision
    service.update(stack_id, {"g": group(2), "v": volume(description="b")})
    service.rest()
    assert service.child().revision == nested


@pytest.mark.parametrize("place", ["top", "group"])
def test_what_needs_consent_would_fail(place: str) -> None:
    resources = {"g": group(2) if place == "group" else server(name="m1"), "v": volume()}
    service, stack_id = grown(resources, ASKING)
    lose(service, "m1")
    failing = [note for note in notes_of(preview(service, stack_id, resources)) if note.why.startswith(FAILS)]
    assert ["homeostat converge" in note.why for note in failing] == [True]
    assert all(note.fate is Fate.UPDATED for note in failing)
    service.update(stack_id, resources)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "homeostat converge" in service.stack(stack_id).reason


def test_an_update_that_converges_too_needs_no_more_consent() -> None:
    resources = {"g": group(2), "s": server(name="m1"), "v": volume()}
    service, stack_id = grown(resources, ASKING)
    lose(service, "m1")
    expected = {"g/1": "replaced", "s": "replaced"}
    assert shown(service, stack_id, resources, look_first=True) == {"g": "updated", **expected}, "it failed before"
    assert updated(service, stack_id, resources, look_first=True) == expected


def test_a_locked_stack_refuses_a_preview_as_it_refuses_the_update() -> None:
    service, stack_id = grown({"srv": server()})
    lock = {"level": "stacks", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
    service.actions.lock(stack_id, lock, lambda _: True)
    service.rest()
    after = {"srv": server(flavor="large")}
    said = []
    for act in (preview, Service.update):
        with pytest.raises(Rejected, match="is locked") as refused:
            act(service, stack_id, after)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_an_update_policy_that_cannot_be_kept_would_fail() -> None:
    def slow(length: int) -> Resources:
        policy = {"rolling_update": {"max_batch_size": 1, "pause_time": 400}}
        return {"g": {**group(4, random(length)), "update_policy": policy}}

    service, stack_id = grown(slow(8))
    (note,) = notes_of(preview(service, stack_id, slow(9), timeout_mins=10))
    assert (note.name, note.why) == ("g", f"{FAILS}The current update policy will result in stack update timeout.")
    service.update(stack_id, slow(9), timeout_mins=10)
    service.rest()
    assert "will result in stack update timeout" in service.stack(stack_id).reason


def test_a_size_that_only_the_update_will_know_is_said_to_be_unknown() -> None:
    def drawn(salt: str) -> Resources:
        digit = {"length": 1, "character_classes": [{"class": "digits"}], "salt": salt}
        number = {"type": "OS::Heat::RandomString", "properties": digit}
        return {"n": number, "g": group({"get_attr": ["n", "value"]}, value("x"))}

    service, stack_id = grown(drawn("one"))
    notes = {note.name: note for note in notes_of(preview(service, stack_id, drawn("two")))}
    assert notes["n"].fate is Fate.REPLACED
    assert notes["g"].why == "what is in it is not known before"


def test_what_waits_is_shown_with_its_reason() -> None:
    """Everything of its kind seems to be gone: that is doubted, also by an update."""
    resources = {f"v{number}": volume() for number in range(5)}
    service, stack_id = grown(resources, UNHEALED)
    lose(service, "", "volume")
    found: list[ResourcePreview] = notes_of(preview(service, stack_id, resources), all_of_them=True)
    assert [note.fate for note in found] == [Fate.UNCHANGED] * 5
    assert all(note.why.startswith(f"{WAITS}everything of its kind seems to be gone") for note in found)
    service.update(stack_id, resources)
    service.live(60.0)
    assert service.cloud.things("volume") == {}


def test_what_an_earlier_update_left_behind_is_shown_as_deleted() -> None:
    """What a failed update has replaced is deleted by the next one that succeeds."""
    service, stack_id = grown({"s": server(user_data="one"), "d": {**double(value="1"), "depends_on": "s"}})
    failing = {"s": server(user_data="two"), "d": {**double(value="2", fail=True), "depends_on": "s"}}
    service.update(stack_id, failing)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert len(service.servers()) == 2
    mended = {"s": server(user_data="two"), "d": {**double(value="3"), "depends_on": "s"}}
    found = {(note.name, note.fate) for note in notes_of(preview(service, stack_id, mended))}
    assert ("s", Fate.DELETED) in found
    service.update(stack_id, mended)
    service.rest()
    assert len(service.servers()) == 1


def test_members_of_a_group_that_an_earlier_update_left_behind_are_shown_as_deleted() -> None:
    """Found by the simulation: its name has something else by now, and that is replaced."""
    service, stack_id = grown({"a": group(2)})
    service.update(stack_id, {"a": double(value="1"), "b": double(fail=True)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    wanted = {"a": random(5)}
    assert shown(service, stack_id, wanted)["a/0"] == "deleted"
    assert updated(service, stack_id, wanted)["a/0"] == "deleted"


def test_a_preview_after_a_snapshot_was_restored_restores_nothing() -> None:
    service, stack_id = grown({"v": volume(), "g": group(1, volume())})
    snapshot = service.snapshots.take(stack_id, "then")
    service.rest()
    service.snapshots.restore(stack_id, snapshot.id)
    service.rest()
    assert service.state(stack_id) == "RESTORE_COMPLETE"
    assert shown(service, stack_id, {"v": volume(), "g": group(1, volume())}) == {}
