"""The schemas of all types are those of the tables in schemas*.md."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from homeostat.resources.registry import types
from homeostat.resources.schema import Attribute, Property, ValueType, one_of
from homeostat.resources.signals import Transport

KINDS = {ValueType.STRING: "str", ValueType.INTEGER: "int", ValueType.NUMBER: "num", ValueType.BOOLEAN: "bool"}
KINDS |= {ValueType.MAP: "map", ValueType.LIST: "list", ValueType.ANY: "any"}

Row = tuple[str, str, frozenset[str], Any, str]


def expected() -> dict[str, tuple[dict[str, Row], set[str]]]:
    """Type name -> (rows by property path, attributes as written)."""
    found: dict[str, tuple[dict[str, Row], set[str]]] = {}
    pages = sorted(Path(__file__).parent.glob("schemas*.md"))
    for section in "".join(page.read_text(encoding="utf-8") for page in pages).split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        rows = {}
        for line in body.splitlines():
            if line.startswith("| ") and not line.startswith("| property "):
                path, kind, flags, default, constraint = (cell.strip() for cell in line.strip("|").split("|", 4))
                value = json.loads(default.strip("`")) if default else None
                rows[path] = (path, kind, frozenset(flags), value, constraint)
        listed = re.search(r"^Attributes:(.*)$", body, re.MULTILINE)
        assert listed is not None, name
        found[name] = (rows, {part.strip() for part in listed[1].split(",") if part.strip()})
    return found


EXPECTED = expected()


def declared(schema: Mapping[str, Property], prefix: str = "") -> Iterator[Row]:
    for name, prop in schema.items():
        path = f"{prefix}{name}"
        kind = KINDS[prop.kind]
        if prop.kind is ValueType.LIST and prop.items is not None:
            kind = f"list<{KINDS[prop.items.kind]}>"
        flags = {"R": prop.required, "U": prop.update, "H": prop.hidden, "I": prop.immutable, "N": not prop.implemented}
        yield path, kind, frozenset(flag for flag, is_set in flags.items() if is_set), prop.default, _rule(prop)
        yield from declared(prop.fields or {}, f"{path}.")
        if prop.items is not None:
            yield from declared(prop.items.fields or {}, f"{path}[].")


def _rule(prop: Property) -> str:
    """Constraints in the words of the table."""
    if not prop.constraints and prop.items is not None and prop.items.constraints:
        return f"items {_rule(prop.items)}"
    written = []
    for constraint in prop.constraints:
        (name, value), *rest = constraint.wire.items()
        assert not rest
        if name in ("range", "length"):
            bounds = f"{value.get('min', '')}..{value.get('max', '')}"
            written.append(bounds if name == "range" else f"len {bounds}")
        elif name == "allowed_values":
            numbered = [item for item in value if str(item).isdigit() and isinstance(item, str)]
            numbered = numbered if len(numbered) > 2 else []
            words = [str(item) for item in value if item not in numbered]
            ends = [f'"{numbered[0]}".."{numbered[-1]}"'] if numbered else []
            written.append("one of " + ", ".join([*words, *ends]))
        else:
            written.append(f"{'re' if name == 'allowed_pattern' else 'custom'} {value}")
    return "; ".join(written)


def _pattern(name: str) -> dict[str, Row]:
    return {name: (name, "str", frozenset("U"), "immediate", "one of immediate, rolling, canary")}


OURS: Mapping[str, dict[str, Row]] = {
    "AWS::AutoScaling::AutoScalingGroup": _pattern("MetadataUpdatePattern"),
    "OS::Heat::AutoScalingGroup": _pattern("metadata_update_pattern"),
    "OS::Heat::InstanceGroup": _pattern("MetadataUpdatePattern"),
    "OS::Heat::ResourceChain": _pattern("metadata_update_pattern"),
    "OS::Heat::ResourceGroup": _pattern("metadata_update_pattern"),
    "OS::Neutron::Port": {"mac_address": ("mac_address", "str", frozenset("U"), None, "custom mac_addr")},
    "OS::Nova::Server": {"server_group": ("server_group", "str", frozenset({"H", "U"}), None, "")},
    "OS::Senlin::Cluster": {"config": ("config", "map", frozenset("U"), None, "")},
    "OS::Senlin::Receiver": {"actor": ("actor", "map", frozenset(), None, "")},
}
"""Properties that Heat does not have, or that can change in place in its later versions alone."""


def _attribute(name: str, attribute: Attribute) -> str:
    mark = "*" if attribute.live else ""
    return f"{name}:{KINDS[attribute.kind]}{mark}{'(D)' if attribute.deprecated else ''}"


def test_every_type_is_in_the_table() -> None:
    assert set(EXPECTED) == set(types())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_properties(name: str) -> None:
    wanted = dict(EXPECTED[name][0]) | OURS.get(name, {})
    found = {row[0]: row for row in declared(types()[name].properties)}
    # Deprecated and unsupported properties are shown like others; this is not part of a property's schema here.
    assert found == {path: (*row[:2], row[2] - {"D", "X"}, *row[3:]) for path, row in wanted.items()}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_attributes(name: str) -> None:
    attributes = types()[name].attributes
    found = {_attribute(key, each) for key, each in attributes.items() if key != "show"}
    assert found == EXPECTED[name][1]
    assert attributes["show"].kind is ValueType.MAP


def test_update_policy_of_a_group() -> None:
    rows = {row[0]: (row[1], row[3]) for row in declared(types()["OS::Heat::ResourceGroup"].update_policy)}
    apart = ("rollout", "max_unavailable", "drain_time")
    assert {path: row for path, row in rows.items() if not path.startswith(apart)} == {
        "rolling_update": ("map", None),
        "rolling_update.min_in_service": ("int", 0),
        "rolling_update.max_batch_size": ("int", 1),
        "rolling_update.pause_time": ("num", 0),
        "batch_create": ("map", None),
        "batch_create.max_batch_size": ("int", 1),
        "batch_create.pause_time": ("num", 0),
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_wire_form_is_json_and_described(name: str) -> None:
    for prop in types()[name].properties.values():
        shown = prop.wire()
        assert json.loads(json.dumps(shown)) == shown
        assert shown["description"].endswith(".")
    for attribute in types()[name].attributes.values():
        assert attribute.wire()["description"].endswith(".")


def test_a_refusal_lists_values_as_templates_have_them() -> None:
    refused = one_of(*Transport).check("POST")
    assert refused is not None
    assert "['CFN_SIGNAL', 'TEMP_URL_SIGNAL', " in refused
