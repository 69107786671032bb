"""Generates a template with one resource of a type: its properties become parameters, its attributes outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.resources.base import ResourceType
from homeostat.resources.schema import Property, ValueType
from homeostat.templates.dialects import HEAT_CFN, HOT, Dialect

Wire = dict[str, Any]


EMPTY: Mapping[ValueType, Any] = {
    ValueType.STRING: "",
    ValueType.INTEGER: 0,
    ValueType.NUMBER: 0,
    ValueType.BOOLEAN: False,
    ValueType.MAP: {},
    ValueType.LIST: [],
    ValueType.ANY: "",
}
"""Kind of a property -> default of a parameter that is not required."""

TYPES: Mapping[ValueType, str] = {
    ValueType.STRING: "string",
    ValueType.INTEGER: "number",
    ValueType.NUMBER: "number",
    ValueType.BOOLEAN: "boolean",
    ValueType.MAP: "json",
    ValueType.LIST: "comma_delimited_list",
    ValueType.ANY: "string",
}
"""Kind of a property -> type of the parameter that sets it."""


@dataclass(frozen=True, slots=True)
class Language:
    """A template language.

    Attributes:
        header: The version section.
        get_param: Function to read a parameter.
        get_resource: Function to reference a resource.
        get_attr: Function to read an attribute.
    """

    header: Wire
    dialect: Dialect
    get_param: str
    get_resource: str
    get_attr: str

    def parameter(self, prop: Property) -> Wire:
        kind = TYPES[ValueType.MAP if _is_deep(prop) else prop.kind]
        entry: Wire = {"type": self.dialect.type_word(kind)}
        if prop.description:
            entry["description"] = prop.description
        if prop.default is not None:
            entry["default"] = prop.default
        elif not prop.required:
            entry["default"] = EMPTY[prop.kind]
        return self.entry("parameters", entry)

    def entry(self, section: str, content: Wire) -> Wire:
        """Return an entry of a section, with its keys in the words of the language."""
        return {self.dialect.word(section, key): value for key, value in content.items()}


HOT_2016 = Language({"heat_template_version": "2016-10-14"}, HOT, "get_param", "get_resource", "get_attr")
CFN_2012 = Language({"HeatTemplateFormatVersion": "2012-12-12"}, HEAT_CFN, "Ref", "Ref", "Fn::GetAtt")


def _is_deep(prop: Property) -> bool:
    """Return whether the property is a list of maps or lists, which a comma-delimited parameter cannot hold."""
    return (
        prop.kind is ValueType.LIST
        and prop.items is not None
        and prop.items.kind in (ValueType.MAP, ValueType.LIST, ValueType.ANY)
    )


def type_template(kind: ResourceType, *, hot: bool) -> Wire:
    """Return the template. The resource has the name of the type's class."""
    language = HOT_2016 if hot else CFN_2012
    resource = type(kind).__name__
    visible = {name: prop for name, prop in kind.properties.items() if not prop.hidden}
    properties = {name: {language.get_param: name} for name in visible}
    attributes = {
        name: {"description": attribute.description, "value": {language.get_attr: [resource, name]}}
        for name, attribute in kind.attributes.items()
    }
    reference = {"description": f"Reference to the {resource}.", "value": {language.get_resource: resource}}
    outputs = attributes | {"OS::stack_id": reference}
    word = language.dialect.word
    return {
        **language.header,
        word("description"): f"Initial template of {resource}",
        word("parameters"): {name: language.parameter(prop) for name, prop in visible.items()},
        word("resources"): {resource: language.entry("resources", {"type": kind.name, "properties": properties})},
        word("outputs"): {name: language.entry("outputs", output) for name, output in outputs.items()},
    }
