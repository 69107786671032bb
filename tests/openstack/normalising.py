"""What a real service makes of a value: set with a creation, read back, taken out, and set by an update."""

import dataclasses
import json
import os
import re
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Rejected, Terminal, Transient, Uncertain
from homeostat.model.observed import Observation
from homeostat.planner.states.unkept import shows_what_is_kept
from homeostat.resources.base import EMPTY, Thing
from homeostat.resources.comparison import fingerprint, reduced
from homeostat.resources.registry import type_of
from tests.openstack.cloud.files import locked
from tests.openstack.normal_values import NETWORKING, Values
from tests.openstack.running import eventually
from tests.openstack.service_values import SERVICES
from tests.openstack.test_networking import filled

RECORDED = Path(__file__).parents[2] / "docs" / "normalisations.json"
RECORDING = os.environ.get("HOMEOSTAT_RECORD") == "1"
ABSENT = "nothing"
SETTLES_S = 300.0
TOKEN = re.compile(r"\[homeostat:[^\]]*\]")


def places(table: Mapping[str, Values]) -> list[tuple[str, str]]:
    """Return types and properties: what is recorded, or is to be."""
    known = stored()
    return [
        (name, key) for name, values in table.items() for key in values.tried if RECORDING or f"{name} {key}" in known
    ]


def stored() -> dict[str, Any]:
    """Type and property -> rows."""
    return dict(json.loads(RECORDED.read_text())) if RECORDED.exists() else {}


def check(place: str, rows: list[dict[str, Any]]) -> None:
    """Assert that rows are as recorded, or record them; none may drift, or keep a value that was taken out."""
    if RECORDING:
        with locked(Path(tempfile.gettempdir()) / "normalisations.lock"):
            found = dict(sorted({**stored(), place: rows}.items()))
            RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    assert stored().get(place) == rows
    wrong = [row for row in rows if row["drift"] or row["default"] is False]
    assert not wrong, wrong


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
        if not answer.present:  # it was taken apart, to be made as it is wanted now
            return self.create()
        self.handle = answer.handle
        self._accept(answer, [name for name in self.type.properties if self.type.renamed.get(name, name) in changed])
        return self.look()

    def repair(self, names: Sequence[str]) -> Observation:
        """Send again what differs."""
        fields = tuple(self.type.renamed.get(name, name) for name in names)
        asked(lambda: self.cloud.update(self.type.kind, [Change(self.handle, self.spec(), fields)]))
        return self.look()

    def _accept(self, answer: Observation, names: list[str]) -> None:
        """Note what the answer shows, as `planner.states.unkept.accept` does."""
        found = {name: value for name, value in self.accepted.items() if name not in names}
        thing = self.thing(answer)
        names = names if shows_what_is_kept(thing, self.type.statuses) else []
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
        asked(lambda: self.cloud.delete(self.type.kind, [self.handle]), again=True)
        if self.type_name.endswith("Quota"):  # there are limits always
            return
        eventually(
            lambda: not self.cloud.observe(self.type.kind, [self.handle])[0].present or None, f"{self.handle} to go"
        )

    def shown(self, key: str, seen: Observation) -> Any:
        field = self.type.renamed.get(key, key)
        return seen.properties.get(field, ABSENT)


class Refused(Exception):
    """The service does not take a value."""


_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|req-\S+|(?<=aggregate )\d+")

_UNNAMED = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}")
"""The id of a thing that each cloud has, or makes for itself."""


def asked(act: Any, *, again: bool = False) -> Observation:
    """The answer of a batch of one, once the service takes it. again — whether it may be asked for twice."""

    def ask() -> Answer | None:
        (answer,) = act()
        return None if isinstance(answer, Transient) or (again and isinstance(answer, Uncertain)) else answer

    found = eventually(ask, "the service to take a request", SETTLES_S)
    if isinstance(found, Terminal):
        raise Refused(_ID.sub("…", str(found)))
    assert isinstance(found, Observation), repr(found)
    return found


def tried(
    cloud: OpenStackCloud, type_name: str, values: Values, key: str, value: Any, named: Mapping[str, str]
) -> dict[str, Any]:
    unique = f"n-{uuid.uuid4().hex[:8]}"
    known = {**named, **_of_its_own(unique)}
    more = (values.together or {}).get(key, {})
    base = filled({**values.base, **more}, known)
    given = {**base, key: filled(value, known)}
    one = One(cloud, type_name, given, f"p-{unique}")
    needed = not _may_be_without(one, base)
    plain = None if needed or not _is_compared(one, key, base) else _default(one, base, {**values.base, **more})
    try:
        seen = one.create()
    except (Refused, Rejected) as error:
        return {"sent": value, "shown": _said(error, known), "how": "refused", "drift": [], "default": None}
    try:
        late = one.type.changed_outside(one.thing(seen))
        if late in LATER:
            seen = one.repair(late)
        drift = one.type.drift(one.thing(seen))
        shown, left = one.shown(key, seen), one.type.changed_outside(one.thing(seen))
        default, refused = None, {}
        is_free = key not in values.base or type_name in SERVICES
        if one.type.properties[key].update and key not in BY_ADMIN and not needed and is_free:
            try:
                shown_then, more_left = _taken_out(one, key, base, given)
            except Refused as error:
                refused, shown_then, more_left, plain = {"kept": _said(error, known)}, None, [], None
            default = None if plain is None else _alike(plain.get(one.type.renamed.get(key, key), ABSENT), shown_then)
            left = (*left, *more_left)
    finally:
        one.remove()
    same = "same" if not drift else "accepted"
    if key not in drift and shown != ABSENT and shown != one.spec().get(one.type.renamed.get(key, key)):
        same = "known"
    if _are_maps(shown) or _are_ids_in_any_order(one, key, seen):  # they may have the order of ours by chance
        same = "known" if same == "same" else same
    return {
        "sent": value,
        "shown": _readable(reduced(given[key], shown), known, one),
        "how": same,
        "drift": sorted(set(left)),
        "default": default,
        **refused,
    }


def _said(error: Exception, known: Mapping[str, str]) -> str:
    """Return what is said of a value that is refused, without the names of this run."""
    said = str(error)
    for name in known:
        if name == "unique" or name.endswith("_name"):
            said = re.sub(rf"\b{re.escape(known[name])}\b", f"${name}", said)
    return TOKEN.sub("[token]", said)


def _of_its_own(unique: str) -> dict[str, str]:
    """Return names that are taken once."""
    end = unique.removeprefix("n-")
    address = "52:54:" + ":".join(end[each : each + 2] for each in range(0, 8, 2))
    return {
        "unique": unique,
        "unique_mixed": f"Mixed Case {unique}",
        "unique_zone": f"{unique}.example.",
        "unique_upper_zone": f"{unique.upper()}.Example.",
        "unique_address": address,
        "unique_upper_address": address.upper(),
        "unique_url": f"http://{unique}.example/",
        "unique_upper_url": f"http://{unique.upper()}.Example",
        "unique_mail": f"mailto:{unique}@Example.org",
    }


def _taken_out(one: One, key: str, base: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Take a property out, and set it again; return what is shown without it, and what differs at last."""
    seen = one.update(base)
    left = [*one.type.changed_outside(one.thing(seen))]
    shown = one.shown(key, seen)
    seen = one.update(given)
    return shown, [*left, *one.type.changed_outside(one.thing(seen))]


def _may_be_without(one: One, base: Mapping[str, Any]) -> bool:
    """Whether the type takes a thing with nothing but its base."""
    try:
        one.type.check(base)
    except Rejected:
        return False
    return True


def _is_compared(one: One, key: str, base: Mapping[str, Any]) -> bool:
    """Whether what is shown without a property is compared with a thing that never had it."""
    types = {*NETWORKING, *SERVICES} - ONE_EACH
    return one.type_name in types and one.type.properties[key].update and key not in {*base, *CHOSEN, "name"}


_DEFAULTS: dict[str, Mapping[str, Any]] = {}


def _default(one: One, base: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is seen of a thing of the type with nothing but its base, which has the names `named`."""
    place = f"{one.type_name} {named}"
    if place not in _DEFAULTS:
        plain = One(one.cloud, one.type_name, base, one.name)
        _DEFAULTS[place] = plain.create().properties
        plain.remove()
    return _DEFAULTS[place]


ONE_EACH = {"OS::Neutron::Subnet", "OS::Neutron::Trunk", "OS::Neutron::ProviderNet", "OS::Neutron::SubnetPool"}
"""Types of which two with the same base cannot be there; the default is that of the first."""
BY_ADMIN = {"mac_address"}
"""What only administrators may change later."""
LATER = (("read_only",), ("active",), ("access_rules",))
"""What can be set only once the thing is there, and is by the first look that finds it missing."""
CHOSEN = {"mac_address", "fixed_ips", "floating_ip_address", "rules", "value_specs", "no_fixed_ips", "position"}
"""Properties whose default the service chooses anew each time, or by what else is there."""


def _alike(one: Any, other: Any) -> bool:
    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return sorted(map(str, value))
        return None if value == ABSENT else value or None

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
        if isinstance(value, str) and value not in names and _UNNAMED.fullmatch(value):
            return "$id"
        return names.get(value, value) if isinstance(value, str) else value

    found = named(None if shown in EMPTY else shown)
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True)) if _are_maps(found) else found


def _are_maps(shown: Any) -> bool:
    return isinstance(shown, list) and len(shown) > 1 and all(isinstance(each, Mapping) for each in shown)


def _are_ids_in_any_order(one: One, key: str, seen: Observation) -> bool:
    """Whether several ids are shown, and the type takes those of the template in any order for the same."""
    shown = one.shown(key, seen)
    if not isinstance(shown, list) or len(shown) < 2 or not all(_UNNAMED.fullmatch(str(each)) for each in shown):
        return False
    turned = dataclasses.replace(one.thing(seen), properties={**one.values, key: one.values[key][::-1]})
    return key not in one.type.drift(turned)
