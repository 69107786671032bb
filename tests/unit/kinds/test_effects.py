"""What things change of others."""

from typing import Any

import pytest

from homeostat.kinds.effects import EFFECTS, Named, changed_by, held_things
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.resources.kind_fields import fields_of


def test_the_table_speaks_of_kinds_and_fields_that_there_are() -> None:
    for kind, effects in EFFECTS.items():
        for effect in effects:
            assert {effect.kind, effect.through or effect.kind} <= CLOUD_KINDS.keys()
            assert any(path[0] in fields_of(kind).all for path in effect.paths), (kind, effect)
            assert effect.changes


@pytest.mark.parametrize(
    ("kind", "objects", "fields", "expected"),
    [
        ("volume_attachment", [{"volume_id": "v", "instance_uuid": "s"}], None, ["volume v", "server s"]),
        ("volume_attachment", [{"volume_id": "v"}, {"volume_id": "w"}], ["volume_id"], ["volume v", "volume w"]),
        ("volume_attachment", [{"volume_id": "v"}], ["mountpoint"], []),
        ("server", [{"networks": [{"port": "p"}, {"network": "n"}]}], None, ["port p"]),
        ("server", [{"addresses": {"n": [{"port": "p"}]}, "networks": [{"port": "p"}]}], None, ["port p"]),
        ("server", [{"networks": [{"port": "p"}]}], ["name"], []),
        ("floating_ip", [{"port_id": "p"}], None, ["server p port"]),
        ("floating_ip", [{"port_id": None, "server": ""}], None, []),
        ("keypair", [{"name": "k"}], None, []),
    ],
)
def test_what_a_thing_changes(kind: str, objects: Any, fields: list[str] | None, expected: list[str]) -> None:
    found = [" ".join(filter(None, (each.kind, each.name, each.through))) for each in changed_by(kind, objects, fields)]
    assert found == expected


def test_a_server_is_found_through_its_ports() -> None:
    server = {"networks": [{"port": "p"}], "addresses": {"n": [{"port": "q"}]}}
    assert held_things("server", "port", [server]) == {"p", "q"}
    assert Named("server", "p", "port") in changed_by("floating_ip", [{"port_id": "p"}])
