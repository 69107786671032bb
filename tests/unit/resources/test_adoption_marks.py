"""What a cloud has to mark when it takes over a thing of Heat."""

from typing import Any

import pytest

from homeostat.model.errors import Terminal
from homeostat.resources.registry import resource_type

PORTS = '[{"id": "p-1"}, {"id": "p-2"}]'
CASES: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = [
    ("OS::Nova::Server", {"internal_ports": PORTS, "external_ports": '[{"id": "p-3"}]'}, {"ports": ["p-1", "p-2"]}),
    ("OS::Nova::Server", {"internal_ports": "[]"}, None),
    ("OS::Nova::Server", {}, None),
    ("OS::Neutron::SecurityGroupRule", {}, {}),
    ("OS::Neutron::Port", {}, None),
]


@pytest.mark.parametrize(("name", "data", "arguments"), CASES)
def test_adoption(name: str, data: dict[str, Any], arguments: dict[str, Any] | None) -> None:
    assert resource_type(name).adoption(data) == arguments


@pytest.mark.parametrize("note", ["{", "7", '["p-1"]', "[{}]"])
def test_a_note_that_heat_cannot_have_made_is_refused(note: str) -> None:
    with pytest.raises(Terminal, match="internal_ports"):
        resource_type("OS::Nova::Server").adoption({"internal_ports": note})
