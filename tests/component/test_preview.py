"""Previews: what they say is what the update then does, since the same code decides both."""

import random as random_of
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.planner.report.preview import Fate, ResourcePreview, as_changed
from homeostat.resources.nested import CONTENT
from homeostat.resources.schema import UNKNOWN
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import Preview, all_of
from homeostat.templates.tree import holds
from tests.component.previewed import Place, Resources, changes, done, preview, random, state_of, together, value
from tests.component.running import PROJECT, Service, double, group, server, template, volume
from tests.simulation.templates import TemplateMutator


@dataclass(frozen=True)
class Case:
    name: str
    before: Resources
    after: Resources
    expected: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    files_after: dict[str, str] = field(default_factory=dict)


INNER = """
heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  a: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
  b: {type: OS::Heat::Value, properties: {value: same}}
outputs: {said: {value: {get_attr: [a, value]}}}
"""


def nested(word: Any) -> Resources:
    return {"type": "inner.yaml", "properties": {"word": word}}


CASES = [
    Case("nothing", {"a": value(1)}, {"a": value(1)}, {}),
    Case("in place", {"a": value(1), "b": value(2)}, {"a": value(3), "b": value(2)}, {"a": "updated"}),
    Case("comes and goes", {"a": value(1)}, {"b": value(1)}, {"a": "deleted", "b": "added"}),
    Case("replaced", {"a": random(8)}, {"a": random(9)}, {"a": "replaced"}),
    Case("another type", {"a": value("x")}, {"a": random(8)}, {"a": "replaced"}),
    Case("a server changes its flavor in place", {"s": server()}, {"s": server(flavor="big")}, {"s": "updated"}),
    Case("a server moves", {"s": server()}, {"s": server(availability_zone="z")}, {"s": "replaced"}),
    Case(
        "its policy says so",
        {"s": server(flavor_update_policy="REPLACE")},
        {"s": server(flavor="big", flavor_update_policy="REPLACE")},
        {"s": "replaced"},
    ),
    Case(
        "what reads a replaced one changes with it",
        {"a": random(8), "b": value({"get_resource": "a"}), "c": value("x", depends_on="a")},
        {"a": random(9), "b": value({"get_resource": "a"}), "c": value("x", depends_on="a")},
        {"a": "replaced", "b": "updated"},
    ),
    Case(
        "what reads a value that changes, changes",
        {"a": value(1), "b": value({"get_attr": ["a", "value"]}), "c": value({"get_attr": ["b", "value"]})},
        {"a": value(2), "b": value({"get_attr": ["a", "value"]}), "c": value({"get_attr": ["b", "value"]})},
        {"a": "updated", "b": "updated", "c": "updated"},
    ),
    Case(
        "what reads another attribute of what changes, does not",
        {"s": server(metadata={"x": "1"}), "v": value({"get_attr": ["s", "first_address"]})},
        {"s": server(metadata={"x": "2"}), "v": value({"get_attr": ["s", "first_address"]})},
        {"s": "updated"},
    ),
    Case(
        "a replacement goes through what cannot change in place",
        {"net": {"type": "OS::Neutron::Net"}, "port": {"type": "OS::Neutron::Port", "properties": {"network": "x"}}},
        {
            "net": {"type": "OS::Neutron::Net"},
            "port": {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}},
        },
        {"port": "replaced"},
    ),
    Case("a group grows", {"g": group(2, value("x"))}, {"g": group(3, value("x"))}, {"g": "updated", "g/2": "added"}),
    Case(
        "a group shrinks", {"g": group(2, value("x"))}, {"g": group(1, value("x"))}, {"g": "updated", "g/1": "deleted"}
    ),
    Case(
        "its members change",
        {"g": group(2, value("x%index%"))},
        {"g": group(2, value("y%index%"))},
        {"g": "updated", "g/0": "updated", "g/1": "updated"},
    ),
    Case(
        "its members are replaced in batches",
        {"g": {**group(3, random(8)), "update_policy": {"rolling_update": {"max_batch_size": 1}}}},
        {"g": {**group(3, random(9)), "update_policy": {"rolling_update": {"max_batch_size": 1}}}},
        {"g": "updated", "g/0": "replaced", "g/1": "replaced", "g/2": "replaced"},
    ),
    Case(
        "members go by name",
        {"g": group(3, value("x"))},
        {"g": group(2, value("x"), removal_policies=[{"resource_list": ["0"]}])},
        {"g": "updated", "g/0": "deleted"},
    ),
    Case("a group goes", {"g": group(2, value("x"))}, {}, {"g": "deleted", "g/0": "deleted", "g/1": "deleted"}),
    Case(
        "a group comes",
        {},
        {"g": group(2, value("x"))},
        {"g": "added", "g/0": "added", "g/1": "added"},
    ),
    Case(
        "a nested stack gets another word",
        {"n": nested("one"), "v": value({"get_attr": ["n", "said"]})},
        {"n": nested("two"), "v": value({"get_attr": ["n", "said"]})},
        {"n": "updated", "n/a": "updated", "v": "updated"},
        {"inner.yaml": INNER},
        {"inner.yaml": INNER},
    ),
    Case(
        "a nested template is edited",
        {"n": nested("one")},
        {"n": nested("one")},
        {"n": "updated", "n/b": "updated"},
        {"inner.yaml": INNER},
        {"inner.yaml": INNER.replace("same", "other")},
    ),
    Case(
        "a chain gets longer",
        {"c": {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Neutron::Net"]}}},
        {"c": {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Neutron::Net"] * 2}}},
        {"c": "updated", "c/1": "added"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_preview_is_what_happens(case: Case) -> None:
    service = Service()
    stack_id = service.create(case.before, files=case.files)
    before = state_of(service)
    previewed = changes(preview(service, stack_id, case.after, files=case.files_after))
    assert {"/".join(place): fate for place, fate in previewed.items()} == case.expected
    assert state_of(service) == before, "a preview changes nothing"
    service.update(stack_id, case.after, files=case.files_after)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert done(before, state_of(service)) == previewed
    assert changes(preview(service, stack_id, case.after, files=case.files_after)) == {}


def only(shown: Preview) -> Any:
    """The one resource that would change."""
    (found,) = [note for _, note in all_of(shown) if note.fate != Fate.UNCHANGED]
    return found


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (random(8), random(9), "length cannot change in place"),
        (value("x"), random(8), "its type changes from OS::Heat::Value to OS::Heat::RandomString"),
        (
            server(flavor_update_policy="REPLACE"),
            server(flavor="big", flavor_update_policy="REPLACE"),
            "flavor changed",
        ),
        ({**volume(), "deletion_policy": "Retain"}, None, "kept, as its deletion policy says"),
        ({**volume(), "deletion_policy": "Snapshot"}, None, "a snapshot of it is made first"),
        (volume(), None, ""),
    ],
)
def test_the_cause_is_shown(before: Resources, after: Resources | None, why: str) -> None:
    service = Service()
    stack_id = service.create({"a": before})
    note = only(preview(service, stack_id, {"a": after} if after is not None else {}))
    assert note.why.startswith(why)
    assert note.fate is (Fate.REPLACED if after is not None else Fate.DELETED)


def test_each_difference_is_shown_and_what_is_not_known_yet_is_marked() -> None:
    service = Service()
    stack_id = service.create({"a": random(8), "b": value({"get_resource": "a"})})
    old = service.row(stack_id, "b").properties["value"]
    shown = preview(service, stack_id, {"a": random(9), "b": value({"get_resource": "a"})})
    notes = {note.name: note for _, note in all_of(shown)}
    assert as_changed(notes["a"].changed) == ["length"]
    assert (notes["a"].before["length"], notes["a"].after["length"]) == (8, 9)
    assert (notes["b"].before["value"], notes["b"].after["value"]) == (old, UNKNOWN)


def test_a_change_of_metadata_or_of_the_deletion_policy_is_shown() -> None:
    service = Service()
    stack_id = service.create({"a": {**value(1), "metadata": {"x": 1}}, "b": value(1)})
    after = {"a": {**value(1), "metadata": {"x": 2}}, "b": {**value(1), "deletion_policy": "Retain"}}
    notes = {note.name: note for _, note in all_of(preview(service, stack_id, after))}
    assert notes["a"].sections == (("metadata", {"x": 1}, {"x": 2}),)
    assert notes["b"].sections == (("deletion_policy", "Delete", "Retain"),)
    assert {note.fate for note in notes.values()} == {Fate.UPDATED}


def test_a_change_of_an_update_policy_is_shown() -> None:
    service = Service()
    before, after = ({"rolling_update": {"max_batch_size": size}} for size in (1, 2))
    stack_id = service.create({"g": {**group(2, value("x")), "update_policy": before}})
    note = only(preview(service, stack_id, {"g": {**group(2, value("x")), "update_policy": after}}))
    assert (note.fate, note.sections) == (Fate.UPDATED, (("update_policy", before, after),))


def test_new_metadata_of_a_group_is_shown_however_its_members_get_it() -> None:
    service = Service()
    before, after = ({**group(2, metadata_update_pattern="canary"), "metadata": {"v": v}} for v in (1, 2))
    stack_id = service.create({"g": before})
    service.rest()
    note = only(preview(service, stack_id, {"g": after}))
    assert (note.fate, note.sections) == (Fate.UPDATED, (("metadata", {"v": 1}, {"v": 2}),))


def test_what_has_failed_would_be_made_anew() -> None:
    service = Service()
    stack_id = service.create({"a": double(fail=True)})
    note = only(preview(service, stack_id, {"a": double(fail=False)}))
    assert note.fate is Fate.REPLACED
    assert "Test Resource failed a" in note.why


def test_a_preview_shows_values_that_would_not_fit() -> None:
    service = Service()
    stack_id = service.create(
        {"a": value("8"), "b": {**random(8), "properties": {"length": {"get_attr": ["a", "value"]}}}}
    )
    assert service.state(stack_id) == "CREATE_COMPLETE"
    after = {"a": value("lots"), "b": {**random(8), "properties": {"length": {"get_attr": ["a", "value"]}}}}
    notes = {note.name: note for _, note in all_of(preview(service, stack_id, after))}
    assert "it would fail" in notes["b"].why
    assert "'lots' is not an integer" in notes["b"].why


def test_what_is_known_to_be_gone_counts_before_anything_was_done_about_it() -> None:
    service = Service()
    stack_id = service.create({"s": server()})
    service.rest()
    service.cloud.vanish(*service.servers())
    service.clock.time += 100
    assert changes(preview(service, stack_id, {"s": server()})) == {}
    service.observer.round()
    note = only(preview(service, stack_id, {"s": server()}))
    assert (note.fate, note.why) == (Fate.REPLACED, "there is no such server")


def test_what_is_left_alone_is_corrected_by_the_update_as_in_the_preview() -> None:
    """Drift is known, and convergence is off: an update brings it back."""
    service = Service()
    resources = {"srv": server(), "vol": volume()}
    stack_id = service.create(resources)
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings({"converge": False}))
    service.clock.time += 1.0
    service.cloud.vanish(service.row(stack_id, "vol").handle)
    service.live(120.0)
    assert service.cloud.things("volume") == {}
    assert changes(preview(service, stack_id, resources)) == {("vol",): "replaced"}
    service.update(stack_id, resources)
    service.rest()
    assert len(service.cloud.things("volume")) == 1


def test_a_preview_of_a_deletion_that_goes_on_under_another_policy() -> None:
    service = Service(CloudBehaviour(delete_s=1e9))
    resources = {"net": volume(), "srv": {**server(), "depends_on": "net"}}
    stack_id = service.create(resources)
    service.delete(stack_id)
    retained = {name: {**each, "deletion_policy": "Retain"} for name, each in resources.items()}
    note = only(preview(service, stack_id, retained))  # the server is on its way already
    assert (note.name, note.fate, note.why) == ("net", Fate.DELETED, "kept, as its deletion policy says")
    assert changes(preview(service, stack_id, resources)) == {("srv",): "added"}


def test_a_large_group_is_counted_and_not_listed() -> None:
    service = Service()
    stack_id = service.create({"g": group(2, value("x"))})
    shown = preview(service, stack_id, {"g": group(5000, value("x"))})
    inside = shown.inside["g"]
    listed = sum(note.fate is Fate.ADDED for note in inside.resources)
    assert listed < 2001
    assert listed + inside.more[Fate.ADDED] == 4998


def test_a_preview_of_a_new_stack_has_all_that_is_nested_in_it() -> None:
    service = Service()
    body = {"n": nested({"get_resource": "a"}), "a": random(8), "g": group(2, value("m%index%"))}
    shown = service.stack_service.preview_new(PROJECT, "web", StackRequest(template(body), files={"inner.yaml": INNER}))
    assert sorted(changes(shown)) == [("a",), ("g",), ("g", "0"), ("g", "1"), ("n",), ("n", "a"), ("n", "b")]
    assert set(changes(shown).values()) == {"added"}
    notes = {(*each.path, note.name): note for each, note in all_of(shown)}
    assert notes["n", "a"].after == {"value": UNKNOWN}
    assert notes["g", "1"].after == {"value": "m1"}
    assert service.stacks() == []


def test_what_the_environment_forbids_would_fail() -> None:
    service = Service()
    stack_id = service.create({"a": value(1), "b": random(8)})
    registry = {"resources": {"*": {"restricted_actions": ["update", "replace"]}}}
    environment = {"resource_registry": registry}
    after = {"a": value(2), "b": random(9)}
    notes = {note.name: note.why for _, note in all_of(preview(service, stack_id, after, environment=environment))}
    assert notes["a"] == "it would fail: update is restricted for resource."
    assert notes["b"] == "it would fail: replace is restricted for resource."


def test_hooks_do_not_hide_what_comes_after_them() -> None:
    service = Service()
    stack_id = service.create({"a": value(1)})
    environment = {"resource_registry": {"resources": {"a": {"hooks": ["pre-update", "pre-create"]}}}}
    shown = preview(service, stack_id, {"a": value(2)}, environment=environment)
    assert changes(shown) == {("a",): "updated"}


def test_a_thing_of_others_is_taken_and_not_made() -> None:
    service = Service()
    service.create({"a": volume()}, name="other")
    (handle,) = service.cloud.things("volume")
    stack_id = service.create({})
    note = only(preview(service, stack_id, {"mine": {**volume(), "external_id": handle}}))
    assert (note.fate, note.why) == (Fate.ADDED, f"it stands for {handle}, which is not touched")


SEEDS = 25


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_templates_become_what_the_preview_showed(seed: int) -> None:
    """What is not known beforehand may turn out to be as before: then less happens than the preview showed."""
    gardener = TemplateMutator(random_of.Random(seed), nested=True)
    service = Service()
    desired = replace(gardener.grow(), held={})
    stack_id = service.stack_service.create(PROJECT, None, "web", desired.request(disable_rollback=True))
    service.live(400.0)
    for _ in range(4):
        if service.state(stack_id).endswith(("FAILED", "IN_PROGRESS")):
            return
        desired = replace(gardener.mutate(desired), held={})
        request = desired.request(disable_rollback=True)
        before = state_of(service)
        notes: dict[Place, list[ResourcePreview]] = {}
        for each, note in all_of(service.stack_service.preview_update(stack_id, request)):
            notes.setdefault((*each.path, note.name), []).append(note)
        service.stack_service.update(stack_id, request)
        service.live(400.0)
        happened = done(before, state_of(service))
        if not service.state(stack_id).endswith("COMPLETE"):
            return
        previewed = {place: fate for place, found in notes.items() if (fate := together(found)) != "unchanged"}
        for place in previewed.keys() | happened.keys():
            if previewed.get(place) != happened.get(place):
                unknown = any(holds(dict(note.after), UNKNOWN) for note in notes[place])
                inside = all(note.changed == (CONTENT,) for note in notes[place])
                assert unknown or inside, (place, previewed.get(place), happened.get(place))
