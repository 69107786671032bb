"""A template that has one resource of a type: properties become parameters, attributes outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.resources.base import ResourceType
from homeostat.resources.schema import Kind, Property

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Words of one template language."""

    header: Wire
    sections: tuple[str, str, str, str, str]
    types: Mapping[Kind, str]
    keys: Mapping[str, str]

    def parameter(self, prop: Property) -> Wire:
        entry: Wire = {self.keys["type"]: self.types[Kind.MAP if _is_deep(prop) else prop.kind]}
        if prop.description:
            entry[self.keys["description"]] = prop.description
        if prop.default is not None:
            entry[self.keys["default"]] = prop.default
        elif not prop.required:
            entry[self.keys["default"]] = EMPTY[prop.kind]
        return entry

    def get_param(self, name: str) -> Wire:
        return {self.keys["get_param"]: name}

    def get_resource(self, name: str) -> Wire:
        return {self.keys["get_resource"]: name}

    def get_attr(self, resource: str, name: str) -> Wire:
        return {self.keys["get_attr"]: [resource, name]}


EMPTY: Mapping[Kind, Any] = {
    Kind.STRING: "",
    Kind.INTEGER: 0,
    Kind.NUMBER: 0,
    Kind.BOOLEAN: False,
    Kind.MAP: {},
    Kind.LIST: [],
    Kind.ANY: "",
}

HOT = Dialect(
    {"heat_template_version": "2016-10-14"},
    ("description", "parameters", "resources", "outputs", "value"),
    {
        Kind.STRING: "string",
        Kind.INTEGER: "number",
        Kind.NUMBER: "number",
        Kind.BOOLEAN: "boolean",
        Kind.MAP: "json",
        Kind.LIST: "comma_delimited_list",
        Kind.ANY: "string",
    },
    {
        "type": "type",
        "description": "description",
        "default": "default",
        "properties": "properties",
        "get_param": "get_param",
        "get_resource": "get_resource",
        "get_attr": "get_attr",
    },
)
CFN = Dialect(
    {"HeatTemplateFormatVersion": "2012-12-12"},
    ("Description", "Parameters", "Resources", "Outputs", "Value"),
    {
        Kind.STRING: "String",
        Kind.INTEGER: "Number",
        Kind.NUMBER: "Number",
        Kind.BOOLEAN: "Boolean",
        Kind.MAP: "Json",
        Kind.LIST: "CommaDelimitedList",
        Kind.ANY: "String",
    },
    {
        "type": "Type",
        "description": "Description",
        "default": "Default",
        "properties": "Properties",
        "get_param": "Ref",
        "get_resource": "Ref",
        "get_attr": "Fn::GetAtt",
    },
)


def _is_deep(prop: Property) -> bool:
    """A list whose items are no texts does not fit in a comma separated parameter."""
    return prop.kind is Kind.LIST and prop.items is not None and prop.items.kind in (Kind.MAP, Kind.LIST, Kind.ANY)


def type_template(kind: ResourceType, *, hot: bool) -> Wire:
    """The resource is called as the type's class."""
    dialect = HOT if hot else CFN
    description, parameters, resources, outputs, value = dialect.sections
    resource = type(kind).__name__
    shown = {name: prop for name, prop in kind.properties.items() if not prop.hidden}
    attributes = {
        name: {dialect.keys["description"]: each.description, value: dialect.get_attr(resource, name)}
        for name, each in kind.attributes.items()
    }
    reference = {
        dialect.keys["description"]: f"Reference to the {resource}.",
        value: dialect.get_resource(resource),
    }
    return {
        **dialect.header,
        description: f"Initial template of {resource}",
        parameters: {name: dialect.parameter(prop) for name, prop in shown.items()},
        resources: {
            resource: {
                dialect.keys["type"]: kind.name,
                dialect.keys["properties"]: {name: dialect.get_param(name) for name in shown},
            }
        },
        outputs: attributes | {"OS::stack_id": reference},
    }
