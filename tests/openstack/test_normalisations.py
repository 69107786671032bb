"""What real services make of the values that templates set: no drift, no repeated request, and the way back.

Each value is set with a creation, taken out, and set by an update. What is seen goes into the table of the reference
documentation: with HOMEOSTAT_RECORD=1 it is written, else it has to be as recorded.
"""

import contextlib
import dataclasses
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation
from homeostat.resources.base import EMPTY, Thing, settling
from homeostat.resources.comparison import fingerprint, reduced
from homeostat.resources.registry import type_of
from tests.openstack import test_networking as networking
from tests.openstack.normal_values import NETWORKING, TABLE, Values
from tests.openstack.running import OpenStack as RunningCloud
from tests.openstack.running import eventually

clouds, there = networking.clouds, networking.there
RECORDED = Path(__file__).parents[2] / "docs" / "normalisations.json"
RECORDING = os.environ.get("HOMEOSTAT_RECORD") == "1"
PLACES = [
    (name, key)
    for name, values in TABLE.items()
    for key in values.tried
    if RECORDING or f"{name} {key}" in json.loads(RECORDED.read_text())
]
"""What is recorded, or is to be."""
ABSENT = "nothing"
SETTLES_S = 300.0


@dataclass
class One:
    """A thing with the properties of a template, as a row has it."""

    cloud: OpenStackCloud
    type_name: str
    given: Mapping[str, Any]
    name: str
    handle: str = ""
    accepted: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.type = type_of(self.type_name)

    @property
    def values(self) -> dict[str, Any]:
        return self.type.complete(self.type.check(self.given))

    def spec(self) -> dict[str, Any]:
        return self.type.spec(self.values, self.name)

    def thing(self, seen: Observation) -> Thing:
        return Thing("k", "it", self.name, self.values, seen, self.handle, accepted=self.accepted)

    def create(self) -> Observation:
        made = asked(
            lambda: self.cloud.create(self.type.kind, [Creation(f"test-{uuid.uuid4().hex[:12]}", self.spec())])
        )
        self.handle = made.handle
        self._accept(made, [*self.type.properties])
        return self.look()

    def update(self, given: Mapping[str, Any]) -> Observation:
        before = self.spec()
        self.given = given
        after = self.spec()
        changed = tuple(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))
        answer = asked(lambda: self.cloud.update(self.type.kind, [Change(self.handle, after, changed)]))
        self.handle = answer.handle
        self._accept(answer, [name for name in self.type.properties if self.type.renamed.get(name, name) in changed])
        return self.look()

    def repair(self, names: Sequence[str]) -> Observation:
        """Send again what differs."""
        fields = tuple(self.type.renamed.get(name, name) for name in names)
        asked(lambda: self.cloud.update(self.type.kind, [Change(self.handle, self.spec(), fields)]))
        return self.look()

    def _accept(self, answer: Observation, names: list[str]) -> None:
        """Note what the answer shows, as `planner.policies.unkept.accept` does."""
        found = {name: value for name, value in self.accepted.items() if name not in names}
        thing = self.thing(answer)
        names = names if settling(thing, self.type.statuses) is None else []
        found |= {
            name: fingerprint(*self.type.sent_and_seen(thing, name)) for name in self.type.drift(thing) if name in names
        }
        self.accepted = found

    def look(self) -> Observation:
        words = KINDS[self.type.kind].statuses

        def ready() -> Observation | None:
            (seen,) = self.cloud.observe(self.type.kind, [self.handle])
            status = seen.properties.get("status")
            assert seen.present, seen.reason
            assert status not in words.broken, seen.properties
            return seen if status is None or status in words.ready else None

        return eventually(ready, f"{self.type_name} {self.handle}", SETTLES_S)

    def remove(self) -> None:
        asked(lambda: self.cloud.delete(self.type.kind, [self.handle]))
        eventually(
            lambda: not self.cloud.observe(self.type.kind, [self.handle])[0].present or None, f"{self.handle} to go"
        )

    def shown(self, key: str, seen: Observation) -> Any:
        field = self.type.renamed.get(key, key)
        return seen.properties.get(field, ABSENT)


class Refused(Exception):
    """The service does not take a value."""


_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|req-\S+")


def asked(act: Any) -> Observation:
    """The answer of a batch of one, once the service takes it."""

    def ask() -> Answer | None:
        (answer,) = act()
        return None if isinstance(answer, Transient) else answer

    found = eventually(ask, "the service to take a request", SETTLES_S)
    if isinstance(found, Terminal):
        raise Refused(_ID.sub("…", str(found)))
    assert isinstance(found, Observation), repr(found)
    return found


@pytest.fixture(scope="module")
def named(
    there: dict[str, str], clouds: tuple[OpenStackCloud, ...], openstack_cloud: RunningCloud
) -> Iterator[dict[str, str]]:
    """What is there, with an image, a flavor, a type of volumes, and the project's default security group."""
    found = {**there, "default_security_group": clouds[0].resolve("security_group", ["default"])[0] or ""}
    with contextlib.closing(openstack_cloud.admin()) as admin:
        image = admin.image.find_image("mini", ignore_missing=False)
        flavor = next(each for each in admin.compute.flavors() if each.name == "m1.tiny")
        made = admin.block_storage.create_type(name=f"type-{uuid.uuid4().hex[:6]}")
        for called, thing in (("image", image), ("flavor", flavor), ("volume_type", made)):
            found[called], found[f"{called}_name"] = thing.id, thing.name
        yield found
        admin.block_storage.delete_type(made.id)


TOKEN = re.compile(r"\[homeostat:[^\]]*\]")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """Type and property -> rows."""
    return _stored()


def _stored() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text())) if RECORDED.exists() else {}


def _write(place: str, rows: list[dict[str, Any]]) -> None:
    record = {**_stored(), place: rows}
    text = json.dumps(dict(sorted(record.items())), indent=1, sort_keys=True, ensure_ascii=False)
    RECORDED.write_text(text + "\n")


@pytest.mark.parametrize(("type_name", "key"), PLACES, ids=[f"{name} {key}" for name, key in PLACES])
def test_what_a_service_makes_of_a_value_is_no_drift(
    type_name: str,
    key: str,
    clouds: tuple[OpenStackCloud, ...],
    named: dict[str, str],
    record: dict[str, Any],
) -> None:
    values = TABLE[type_name]
    rows = [_tried(clouds[values.by_admin], type_name, values, key, value, named) for value in values.tried[key]]
    place = f"{type_name} {key}"
    if RECORDING:
        record[place] = rows
        _write(place, rows)
    assert record.get(place) == rows
    wrong = [row for row in rows if row["drift"] or row["default"] is False]
    assert not wrong, wrong


def _tried(
    cloud: OpenStackCloud, type_name: str, values: Values, key: str, value: Any, named: Mapping[str, str]
) -> dict[str, Any]:
    unique = f"n-{uuid.uuid4().hex[:8]}"
    known = {**named, "unique": unique}
    more = (values.together or {}).get(key, {})
    base = networking.filled({**values.base, **more}, known)
    given = {**base, key: networking.filled(value, known)}
    one = One(cloud, type_name, given, f"p-{unique}")
    try:
        seen = one.create()
    except Refused as error:
        shown = TOKEN.sub("[token]", str(error).replace(unique, "$unique"))
        return {"sent": value, "shown": shown, "how": "refused", "drift": [], "default": None}
    try:
        late = one.type.changed_outside(one.thing(seen))
        if late in LATER:
            seen = one.repair(late)
        drift = one.type.drift(one.thing(seen))
        shown, left = one.shown(key, seen), one.type.changed_outside(one.thing(seen))
        default = None
        if one.type.properties[key].update and key not in values.base:
            default, more_left = _taken_out(one, key, base, given)
            left = (*left, *more_left)
    finally:
        one.remove()
    same = "same" if not drift else "accepted"
    if key not in drift and shown != ABSENT and shown != one.spec().get(one.type.renamed.get(key, key)):
        same = "known"
    if _is_unordered(shown):  # it may have the order of ours by chance
        same = "known" if same == "same" else same
    return {
        "sent": value,
        "shown": _readable(reduced(given[key], shown), known, one),
        "how": same,
        "drift": sorted(set(left)),
        "default": default,
    }


def _taken_out(one: One, key: str, base: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[bool | None, list[str]]:
    """Take a property out, and set it again; return whether it went to the default, and what differs then."""
    seen = one.update(base)
    left = [*one.type.changed_outside(one.thing(seen))]
    default = None
    if one.type_name in NETWORKING and one.type_name not in ONE_EACH and key not in CHOSEN and key != "name":
        default = _alike(_default(one, base).get(one.type.renamed.get(key, key)), one.shown(key, seen))
    seen = one.update(given)
    left += one.type.changed_outside(one.thing(seen))
    return default, left


_DEFAULTS: dict[str, Mapping[str, Any]] = {}


def _default(one: One, base: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is seen of a thing of the type with nothing but its base."""
    place = f"{one.type_name} {base}"
    if place not in _DEFAULTS:
        plain = One(one.cloud, one.type_name, base, one.name)
        _DEFAULTS[place] = plain.create().properties
        plain.remove()
    return _DEFAULTS[place]


ONE_EACH = {"OS::Neutron::Subnet", "OS::Neutron::Trunk", "OS::Neutron::ProviderNet", "OS::Neutron::SubnetPool"}
"""Types of which two with the same base cannot be there; the default is that of the first."""
LATER = (("read_only",),)
"""What can be set only once the thing is there, and is by the first look that finds it missing."""
CHOSEN = {"mac_address", "fixed_ips", "floating_ip_address", "rules", "value_specs", "no_fixed_ips"}
"""Properties whose default the service chooses anew each time."""


def _alike(one: Any, other: Any) -> bool:
    def plain(value: Any) -> Any:
        return sorted(map(str, value)) if isinstance(value, list) else value or None

    return bool(plain(one) == plain(other))


def _readable(shown: Any, known: Mapping[str, str], one: One) -> Any:
    """Return what is shown with names in place of the ids of this run.

    Services give lists of maps in any order, and those of ids in the order of the ids.
    """
    names = {id: f"${name}" for name, id in known.items() if id} | {one.handle: "$itself"}

    def named(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: named(each) for name, each in value.items()}
        if isinstance(value, list):
            items = [named(each) for each in value]
            return sorted(items) if all(isinstance(each, str) and each in names for each in value) else items
        return names.get(value, value) if isinstance(value, str) else value

    found = named(None if shown in EMPTY else shown)
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True)) if _is_unordered(found) else found


def _is_unordered(shown: Any) -> bool:
    return isinstance(shown, list) and len(shown) > 1 and all(isinstance(each, Mapping) for each in shown)
