"""Listing types by an expression that anybody may send."""

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources import registry
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import listed
from homeostat.resources.support import SupportStatus, deprecated, hidden


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("OS::Cinder::Volume$", ["OS::Cinder::Volume"]),
        (".*::Key.air", ["OS::Nova::KeyPair"]),
        ("OS::(Nova::KeyPair|Cinder::Volume)$", ["OS::Cinder::Volume", "OS::Nova::KeyPair"]),
        (r"OS::Nova::[KS*+]\w+", ["OS::Nova::KeyPair", "OS::Nova::Server", "OS::Nova::ServerGroup"]),
        ("OS::.*::Volume(Att|$).*", ["OS::Cinder::Volume", "OS::Cinder::VolumeAttachment"]),
        ("(.+)+OS::Cinder::Volume$", []),
        ("(", []),
        ("nothing", []),
    ],
)
def test_types_are_found_by_expressions(regex: str, expected: list[str]) -> None:
    assert listed(regex) == expected


@pytest.mark.parametrize(
    "regex",
    ["(.|.)" * 20 + "x", r"(.|.)+\d\d", r"(\w|:|\w\w)+[0-9]$", "(a{999}){999}", "x" * 5000],
)
def test_what_could_take_for_ever_is_refused(regex: str) -> None:
    with pytest.raises(Rejected, match="too complicated"):
        listed(regex)


class Current(ResourceType):
    name = "OS::Test::Current"


class Old(ResourceType):
    name = "OS::Test::Old"
    support = deprecated("10.0.0", "Use OS::Test::Current.")


class Retired(ResourceType):
    name = "OS::Test::Retired"
    support = hidden("12.0.0", previous=deprecated("10.0.0"))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, ["OS::Test::Current", "OS::Test::Old"]),
        (SupportStatus.SUPPORTED, ["OS::Test::Current"]),
        (SupportStatus.DEPRECATED, ["OS::Test::Old"]),
        (SupportStatus.HIDDEN, []),
    ],
)
def test_types_are_listed_by_how_far_they_are_supported(
    status: SupportStatus | None, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "types", lambda: {each.name: each() for each in (Current, Old, Retired)})
    assert listed(status=status) == expected
    assert listed(version="10.0.0") == ["OS::Test::Old"]


def test_support_status_includes_what_held_before() -> None:
    before = {"status": "DEPRECATED", "message": None, "version": "10.0.0", "previous_status": None}
    assert Retired.support.wire() == {
        "status": "HIDDEN",
        "message": None,
        "version": "12.0.0",
        "previous_status": before,
    }
