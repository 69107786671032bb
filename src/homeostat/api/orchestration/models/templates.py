"""Validated templates, and building blocks of templates: types, versions and functions."""

from typing import Any, NotRequired

from typing_extensions import TypedDict


class Validation(TypedDict):
    Description: str
    Parameters: dict[str, dict[str, Any]]
    ParameterGroups: NotRequired[list[dict[str, Any]]]
    NestedParameters: NotRequired[dict[str, Any]]
    Environment: dict[str, Any]


class ResourceTypes(TypedDict):
    resource_types: list[Any]


class ResourceSchema(TypedDict):
    resource_type: str
    description: str
    properties: dict[str, Any]
    attributes: dict[str, Any]
    support_status: dict[str, Any]


class TemplateVersion(TypedDict):
    version: str
    type: str
    aliases: list[str]


class TemplateVersions(TypedDict):
    template_versions: list[TemplateVersion]


class TemplateFunction(TypedDict):
    functions: str
    description: str


class TemplateFunctions(TypedDict):
    template_functions: list[TemplateFunction]
