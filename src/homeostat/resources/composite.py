"""Types that stand for several cloud objects: a nested stack whose template is generated from the properties.

Each of these objects is thus recovered after a crash, replaced and healed like any other.
"""

from typing import Any, ClassVar

from homeostat.model.errors import Rejected
from homeostat.resources.base import Props, Thing
from homeostat.resources.nested import NestedStack, output_of, outputs_of

VERSION = "2018-08-31"
ID = "id"
"""Output with the reference of the whole resource."""


class Composed(NestedStack):
    """Base of such types: attributes are the outputs of the generated template, the reference is the output `id`.

    Attributes:
        needs_files: Whether an environment may have a file implement a part.
    """

    contents = "composed"
    needs_files: ClassVar[bool] = False

    def parts(self, values: Props) -> dict[str, Any]:
        """Return the resources of the template by name; `values` are the properties, with defaults."""
        raise NotImplementedError

    def outputs(self, values: Props) -> dict[str, Any]:
        """Return the values of the outputs of the template by name."""
        return {}

    def template(self, values: Props) -> dict[str, Any]:
        outputs = {name: {"value": value} for name, value in self.outputs(values).items()}
        return {"heat_template_version": VERSION, "resources": self.parts(values), "outputs": outputs}

    def reference(self, thing: Thing) -> Any:
        """Its main part's id."""
        return outputs_of(thing).get(ID) or thing.handle or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        return output_of(thing, name)

    def readable_attributes(self, thing: Thing) -> tuple[dict[str, Any], dict[str, str]]:
        values: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name in self.attributes:
            if name != "show":
                try:
                    values[name] = self.attribute(thing, name)
                except Rejected as error:
                    faults[name] = str(error)
        return values, faults


def part(type_name: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of a template, without properties that are null."""
    return {"type": type_name, "properties": {name: value for name, value in properties.items() if value is not None}}


def ref(name: str) -> dict[str, str]:
    return {"get_resource": name}
