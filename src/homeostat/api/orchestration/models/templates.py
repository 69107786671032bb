"""Validated templates, and building blocks of templates: types, versions and functions."""

from typing import Any

from pydantic import BaseModel


class Validation(BaseModel):
    Description: str
    Parameters: dict[str, dict[str, Any]]
    ParameterGroups: list[dict[str, Any]] | None = None
    NestedParameters: dict[str, Any] | None = None
    Environment: dict[str, Any]


class ResourceTypes(BaseModel):
    resource_types: list[Any]


class ResourceSchema(BaseModel):
    resource_type: str
    properties: dict[str, Any]
    attributes: dict[str, Any]
    support_status: dict[str, Any]


class TemplateVersion(BaseModel):
    version: str
    type: str
    aliases: list[str]


class TemplateVersions(BaseModel):
    template_versions: list[TemplateVersion]


class TemplateFunction(BaseModel):
    functions: str
    description: str


class TemplateFunctions(BaseModel):
    template_functions: list[TemplateFunction]
