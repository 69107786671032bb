"""Routes for resource types, template versions and functions, for authors of templates."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext
from homeostat.api.http.inputs import Flag
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.templates import (
    ResourceSchema,
    ResourceTypes,
    TemplateFunctions,
    TemplateVersions,
)
from homeostat.api.orchestration.routes import answers, router
from homeostat.api.orchestration.type_templates import type_template
from homeostat.model.errors import Rejected
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import listed, resource_type
from homeostat.resources.support import SupportStatus
from homeostat.templates import functions_of, versions

ROUTER = router("types")
TypeName = Annotated[str, Path(description="Name of the resource type.")]


class TemplateType(StrEnum):
    CFN = "cfn"
    HOT = "hot"


@ROUTER.get(
    "/resource_types",
    dependencies=[may("stacks:list_resource_types")],
    summary="List resource types",
    responses=answers(ResourceTypes),
)
def list_types(
    context: Context,
    name: Annotated[str, Query(description="Regular expression for the beginning of the name.")] = "",
    support_status: SupportStatus | None = None,
    version: Annotated[str, Query(description="Release since which the support status applies.")] = "",
    with_description: Flag = False,
) -> Response:
    """List the types that the caller may use and whose service the project's cloud has."""
    existing = context.service.stack_service.prerequisites
    policy = context.service.policy
    names = [
        type_name
        for type_name in listed(name, support_status, version)
        if existing.has(context.project, type_name) and policy.may_use(type_name, context.caller, context.project)
    ]
    if not with_description:
        return Json({"resource_types": names})
    return Json(
        {"resource_types": [{"resource_type": name, "description": resource_type(name).description} for name in names]}
    )


@ROUTER.get(
    "/resource_types/{type_name}",
    dependencies=[may("stacks:resource_schema")],
    summary="Show a resource type",
    responses=answers(ResourceSchema),
)
def show_type(context: Context, type_name: TypeName) -> Response:
    return Json(_schema(_shown(context, type_name)))


def _shown(context: RequestContext, type_name: str) -> ResourceType:
    """Return a type that the caller may see.

    Raises:
        Rejected: EntityNotFound; Forbidden if the caller may not use the type; NotSupported for a hidden type, which
            only old templates use; ResourceTypeUnavailable if the project's cloud lacks its service.
    """
    kind = resource_type(type_name)
    context.check_types({kind.name: ()})
    if kind.support.hidden:
        instead = f": {kind.support.message}" if kind.support.message else ""
        raise Rejected("NotSupported", f"The hidden resource type {type_name} is not supported{instead}.")
    if not context.service.stack_service.prerequisites.has(context.project, type_name):
        raise context.service.stack_service.prerequisites.unavailable(context.project, type_name)
    return kind


def _schema(kind: ResourceType) -> dict[str, Any]:
    return {
        "resource_type": kind.name,
        "description": kind.description,
        "properties": {name: value.wire() for name, value in kind.properties.items() if not value.hidden},
        "attributes": {name: value.wire() for name, value in kind.attributes.items()},
        "support_status": kind.support.wire(),
    }


@ROUTER.get(
    "/resource_types/{type_name}/template",
    dependencies=[may("stacks:generate_template")],
    summary="Make a template that has one resource of a type",
    responses=answers(dict[str, Any]),
)
def make_type_template(
    context: Context, type_name: TypeName, template_type: TemplateType = TemplateType.CFN
) -> Response:
    return Json(type_template(_shown(context, type_name), hot=template_type is TemplateType.HOT))


@ROUTER.get(
    "/template_versions",
    dependencies=[may("stacks:list_template_versions")],
    summary="List template versions",
    responses=answers(TemplateVersions),
)
def list_versions(context: Context) -> Response:
    known = [{"version": name, "type": kind, "aliases": aliases} for name, kind, aliases in versions()]
    return Json({"template_versions": known})


@ROUTER.get(
    "/template_versions/{version}/functions",
    dependencies=[may("stacks:list_template_functions")],
    summary="List the functions of a template version",
    responses=answers(TemplateFunctions),
)
def list_functions(
    context: Context,
    version: Annotated[str, Path(description="With its key: heat_template_version.2021-04-16.")],
    with_condition_func: Annotated[Flag, Query(description="Include functions for conditions only.")] = False,
) -> Response:
    functions = [
        {"functions": name, "description": description}
        for name, description, only_conditions in functions_of(version)
        if with_condition_func or not only_conditions
    ]
    return Json({"template_functions": functions})
