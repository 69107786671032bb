"""Listing types by an expression that anybody may send."""

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources.registry import listed


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("OS::Cinder::Volume$", ["OS::Cinder::Volume"]),
        (".*::Key.air", ["OS::Nova::KeyPair"]),
        ("OS::(Nova::KeyPair|Cinder::Volume)$", ["OS::Cinder::Volume", "OS::Nova::KeyPair"]),
        (r"OS::Nova::[KS*+]\w+", ["OS::Nova::KeyPair", "OS::Nova::Server"]),
        (".*Volume.*", ["OS::Cinder::Volume", "OS::Cinder::VolumeAttachment"]),
        ("(", []),
        ("nothing", []),
    ],
)
def test_types_are_found_by_expressions(regex: str, expected: list[str]) -> None:
    assert listed(regex) == expected


@pytest.mark.parametrize(
    "regex",
    ["(.+)+x", "(.|.)*x", ".*.*.*x", "(?:.?){40}x", "(.|.)" * 20 + "x", "(?=(.+))+x", "x" * 201, "([)]+)+x"],
)
def test_what_could_take_for_ever_is_refused(regex: str) -> None:
    with pytest.raises(Rejected, match="too complicated"):
        listed(regex)
