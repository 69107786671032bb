"""Types that are several things of the cloud at once: a nested stack from a template that is made of the properties.

So each thing is found again after a crash, replaced or healed like any other.
"""

from typing import Any

from homeostat.resources.base import Props, Thing
from homeostat.resources.nested import NestedStack

VERSION = "2018-08-31"
ID = "id"
"""Output with the reference of the whole."""


class Composed(NestedStack):
    """Its attributes are the outputs of its template, its reference the one named `id`."""

    contents = "composed"

    def parts(self, values: Props) -> dict[str, Any]:
        """Resources of its template by name; values — with defaults."""
        raise NotImplementedError

    def outputs(self, values: Props) -> dict[str, Any]:
        """Values of the outputs of its template by name."""
        return {}

    def template(self, values: Props) -> dict[str, Any]:
        outputs = {name: {"value": value} for name, value in self.outputs(values).items()}
        return {"heat_template_version": VERSION, "resources": self.parts(values), "outputs": outputs}

    def reference(self, thing: Thing) -> Any:
        """The id of its main part."""
        return (thing.seen.properties.get("outputs") or {}).get(ID) or thing.handle or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        return (thing.seen.properties.get("outputs") or {}).get(name)


def part(type_name: str, **properties: Any) -> dict[str, Any]:
    """A resource of a template; what is null is left out."""
    return {"type": type_name, "properties": {name: value for name, value in properties.items() if value is not None}}


def ref(name: str) -> dict[str, str]:
    return {"get_resource": name}
