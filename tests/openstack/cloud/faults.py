"""Faults on demand, of services and of what they manage. All take effect at once."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.files import locked, read_json, replace
from tests.openstack.cloud.site import Site

KINDS = ("http", "virt", "volume", "lb", "dns")
JSON_KEYS = ("status", "times", "share", "delay", "after", "headers")
"""Those of a rule that are no regular expression or text."""
GUESTS: dict[str, tuple[int, str] | None] = {
    "off": (4, "stopped"),
    "on": (1, "started"),
    "pause": (3, "paused"),
    "resume": (1, "resumed"),
    "crash": (6, "stopped"),
    "gone": None,
}
"""What may befall a guest: its power state then, and the event that Nova hears of."""
MEMBERS = {"up": None, "down": "DOWN", "drain": "DRAIN", "maint": "MAINT"}
"""What an amphora may say of a member, in HAProxy's words."""


def read(site: Site) -> list[dict[str, object]]:
    rules: list[dict[str, object]] = read_json(site.faults, [])
    return rules


def parsed(words: list[str]) -> dict[str, object]:
    """A rule from `key=value` as the command line has them. Fails: Failure."""
    rule: dict[str, object] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise Failure(f"{word!r} is not key=value")
        try:
            rule[key] = json.loads(value) if key in JSON_KEYS else value
        except ValueError:
            raise Failure(f"the value of {key} is JSON: {value!r} is not") from None
    return rule


def add(site: Site, rule: Mapping[str, object]) -> str:
    """Gives the id by which the rule can be removed. Fails: Failure."""
    if rule.get("kind") not in KINDS:
        raise Failure(f"a fault has a kind, one of {', '.join(KINDS)}")
    rule_id = str(uuid.uuid4())
    with locked(_lock(site)):
        replace(site.faults, [*read(site), {**rule, "id": rule_id}])
    return rule_id


def remove(site: Site, rule_id: str) -> None:
    with locked(_lock(site)):
        replace(site.faults, [rule for rule in read(site) if rule.get("id") != rule_id])


def hits(site: Site, rule_id: str) -> list[dict[str, str]]:
    """What a rule for HTTP has hit: service, method, path, agent, and the status that was `lost` where it was done."""
    try:
        lines = site.log("faults").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [found for line in lines if (found := json.loads(line))["id"] == rule_id]


def clear(site: Site) -> None:
    with locked(_lock(site)):
        replace(site.faults, [])


def change_guest(site: Site, what: str, guest_id: str) -> None:
    """Behind Nova's back. what — one of GUESTS. Fails: Failure where no hypervisor has the guest."""
    found = next(site.run("hypervisor").glob(f"*/{guest_id}.json"), None)
    if found is None:
        raise Failure(f"no hypervisor has a guest {guest_id}")
    becomes = GUESTS[what]
    if becomes is None:
        found.unlink()
        return
    state, event = becomes
    replace(found, {**json.loads(found.read_text()), "state": state})
    new = found.with_suffix(".event.tmp")
    new.write_text(event)
    new.replace(found.with_suffix(".event"))


def change_member(site: Site, member: str, what: str) -> None:
    """What amphorae find when they check a member. member — its id or address; what — one of MEMBERS."""
    with locked(_lock(site)):
        states = {name: state for name, state in read_json(site.members, {}).items() if name != member}
        state = MEMBERS[what]
        replace(site.members, states if state is None else {**states, member: state})


def send_event(site: Site, event_type: str, traits: list[str]) -> None:
    """To Aodh's alarms. traits — `name=value`; an alarm hears those of its own project only."""
    if "aodh" not in site.settings.services:
        raise Failure("the cloud has no Aodh: bring it up --with aodh")
    file = str(site.run("etc", "aodh", "aodh.conf"))
    site.call_inside("event", site.program("python"), "-m", "minios.event", file, event_type, *traits)


def _lock(site: Site) -> Path:
    return site.path("faults.lock")
