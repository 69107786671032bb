"""Rules by which the OpenStack of the tests fails, without one."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.openstack.cloud import faults
from tests.openstack.cloud.errors import Failure
from tests.openstack.cloud.settings import Settings
from tests.openstack.cloud.site import INSIDE, Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Of a cloud whose services are this process."""
    found = Site(tmp_path, Settings())
    monkeypatch.setenv("MINIOS_FAULTS", str(found.faults))
    return found


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What services ask about faults."""
    monkeypatch.syspath_prepend(INSIDE)
    from minios import faults as found

    return found


def test_a_rule_hits_what_fits_all_its_patterns(site: Site, inside: ModuleType) -> None:
    faults.add(site, {"kind": "virt", "op": "^spawn$", "name": "^bad", "error": "no luck"})
    with pytest.raises(RuntimeError, match="no luck"):
        inside.check("virt", op="spawn", name="bad-1", uuid="u", host="h")
    inside.check("virt", op="spawn", name="good", uuid="u", host="h")
    inside.check("virt", op="respawn", name="bad-1", uuid="u", host="h")
    inside.check("volume", op="spawn", name="bad-1", uuid="u")


def test_what_has_fired_stays_so_when_others_come_and_go(site: Site, inside: ModuleType) -> None:
    rule = {"kind": "http", "path": "/servers$", "times": 1}
    faults.add(site, rule)
    assert inside.find("http", path="/servers")
    other = faults.add(site, {"kind": "http", "path": "/ports$"})
    assert not inside.find("http", path="/servers")
    assert inside.find("http", path="/ports")
    faults.remove(site, other)
    assert not inside.find("http", path="/ports")
    faults.add(site, rule)
    assert inside.find("http", path="/servers")
    faults.clear(site)
    assert not inside.find("http", path="/servers")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["kind=http", "status=503", "after=true"], {"kind": "http", "status": 503, "after": True}),
        (["path=/a=b$", 'headers={"Retry-After": "1"}'], {"path": "/a=b$", "headers": {"Retry-After": "1"}}),
        (["name=7"], {"name": "7"}),
    ],
)
def test_rules_of_the_command_line(words: list[str], rule: dict[str, object]) -> None:
    assert faults.parsed(words) == rule


@pytest.mark.parametrize(
    ("words", "message"),
    [(["oops"], "'oops' is not key=value"), (["status=oops"], "the value of status is JSON: 'oops' is not")],
)
def test_what_is_no_rule(words: list[str], message: str) -> None:
    with pytest.raises(Failure, match=message):
        faults.parsed(words)


def test_a_rule_has_a_kind(site: Site) -> None:
    with pytest.raises(Failure, match="one of http, virt"):
        faults.add(site, {"kind": "weather"})


def test_a_guest_changes_behind_nova(site: Site) -> None:
    host = site.run("hypervisor", "compute1")
    host.mkdir(parents=True)
    (host / "u.json").write_text(json.dumps({"name": "n", "uuid": "u", "state": 1}))
    faults.change_guest(site, "crash", "u")
    assert json.loads((host / "u.json").read_text()) == {"name": "n", "uuid": "u", "state": 6}
    assert (host / "u.event").read_text() == "stopped"
    faults.change_guest(site, "gone", "u")
    with pytest.raises(Failure, match="no hypervisor has a guest u"):
        faults.change_guest(site, "off", "u")


def test_members_are_as_was_said_last(site: Site) -> None:
    site.run().mkdir()
    for what in ("down", "up", "drain"):
        faults.change_member(site, "10.0.0.1", what)
    faults.change_member(site, "10.0.0.2", "up")
    assert json.loads(site.members.read_text()) == {"10.0.0.1": "DRAIN"}
