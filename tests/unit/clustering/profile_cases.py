"""Specs of profiles, and what they are compiled to, for the tests of profiles."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from homeostat.clustering.decisions.definitions import Definition
from homeostat.clustering.decisions.profiles import Terms, check_profile, node_metadata
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.resources.registry import type_of
from homeostat.templates import UNKNOWN, Compiled, compile_template, evaluate

NODE = node_metadata("n-1", "c-1", 7)
TERMS = Terms("node-abc", NODE)
IDENTITY = Identity("stack", "id", "project")


def server(**properties: Any) -> dict[str, Any]:
    return {
        "type": "os.nova.server",
        "version": "1.0",
        "properties": {"flavor": "small", "image": "linux", **properties},
    }


def stack(**properties: Any) -> dict[str, Any]:
    return {"type": "os.heat.stack", "version": "1.0", "properties": properties}


def device(**values: Any) -> dict[str, Any]:
    return {"source_type": "volume", "destination_type": "volume", "volume_size": 4, **values}


TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"size": {"type": "number", "default": 1}, "other": {"type": "number", "default": 1}},
    "resources": {"r": {"type": "OS::Heat::None"}},
}


def compiled(definition: Definition, name: str = "node") -> Compiled:
    """Compile the definition as a stack would, after its types have checked the properties."""
    template = {"heat_template_version": "2018-08-31", "resources": {name: definition.resource}}
    return compile_template(template, identity=IDENTITY, files=definition.files, environment=definition.environment)


class Unmade:
    """A scope in which no resource exists yet."""

    unknown = UNKNOWN

    def reference(self, resource: str) -> Any:
        return UNKNOWN

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        return UNKNOWN

    def attributes(self, resource: str) -> Any:
        return UNKNOWN


def properties_of(definition: Definition) -> Mapping[str, Any]:
    return compiled(definition).definitions["node"].properties


def inner(definition: Definition) -> Mapping[str, Any]:
    """Resources of the nested stack: name -> checked properties."""
    outer = properties_of(definition)
    nested = compile_template(
        definition.files[definition.resource["type"]], identity=IDENTITY, parameters=outer, files=definition.files
    )
    return {
        name: {"type": each.type, **type_of(each.type).check(evaluate(each.properties, Unmade()))}
        for name, each in nested.definitions.items()
    }


def refused(spec: Any) -> str:
    with pytest.raises(Rejected) as found:
        check_profile(spec)
    assert found.value.code == (404 if found.value.fault == "ResourceNotFound" else 400)
    return f"{found.value.fault}: {found.value}"
