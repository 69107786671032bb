"""Routes that preview the effects of a creation or an update, without carrying it out."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import HEAVY, Context, RequestContext, StackId, StackName
from homeostat.api.http.bodies import Read
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import Flag, quoted
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.bodies import (
    CreateRequest,
    UpdateRequest,
    read_request,
    refuse_revision,
)
from homeostat.api.orchestration.models import previews as models
from homeostat.api.orchestration.revision_match import tag_of
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import Wire, at, link
from homeostat.desired.redaction import NOT_YET
from homeostat.json_pieces import Items
from homeostat.model.status import Action, Status
from homeostat.planner.report.preview import Fate, ResourcePreview, as_changed
from homeostat.resources.nested import public_properties
from homeostat.resources.registry import is_known, shown_id, type_of
from homeostat.services.adoption_looks import Obstacle
from homeostat.services.adoption_preview import AdoptionPreview
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import NOT_STORED, Preview, all_of
from homeostat.templates import HIDDEN

ROUTER = router("stacks")
TYPES_MAX = 1024
"""Types whose defaults and attributes are cached. Limited since template names are types as well, in any number."""
SMALLER = "preview an update without show_nested, or a smaller part of the template"
"""Remedy for a preview that is too large."""
ORDER = (Fate.UNCHANGED, Fate.UPDATED, Fate.REPLACED, Fate.ADDED, Fate.DELETED)
Nested = Annotated[Flag, Query(description="Include the resources of nested stacks.")]


@ROUTER.post(
    "/stacks/preview",
    dependencies=[may("stacks:preview"), HEAVY],
    summary="Preview a stack",
    responses=answers(models.StackPreview) | documented(409),
)
def preview_stack(context: Context, body: Read[CreateRequest]) -> Response:
    """Preview a new stack; nothing is created.

    The response has the stack as `GET` would show it, with its resources, and the same fields as the preview of an
    update. With `adopt_stack_data`, the things in the document are looked at, but not changed. The response has the
    changes after the adoption; `adoption` lists the resources that would not be adopted.
    """
    name, document = body.stack_name, body.adopt_stack_data or None
    request = read_request(body, context)
    if document is None:
        preview = context.service.stack_service.preview_new(context.project, name, request)
        return Json(_new_stack(context, preview, request, _tree(context, preview)), remedy=SMALLER)
    adopted = context.service.transfer.preview(context.project, name, request, document)
    view = _new_stack(context, adopted.preview, request, _adopted_tree(context, adopted.preview))
    view["stack"]["adoption"] = _adoption(adopted)
    return Json(view, remedy=SMALLER)


def _new_stack(context: RequestContext, preview: Preview, request: StackRequest, resources: Items) -> Wire:
    stack = {
        **_identity(context, preview),
        "stack_name": preview.name,
        **_described(preview),
        "parameters": _parameters(preview),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": request.disable_rollback is not False,
        "timeout_mins": request.timeout_mins,
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "stack_owner": context.caller.user,
        "parent": None,
        "stack_user_project_id": context.project,
        "tags": request.tags or [],
        "resources": resources,
    }
    return {"stack": stack, **_changes(context, preview, show_nested=True)}


def _adopted_tree(context: RequestContext, preview: Preview) -> Items:
    """Return the resources of a stack that would be adopted, each with its change after the adoption."""
    return Items(
        _adopted_tree(context, preview.inside[note.name])
        if note.name in preview.inside
        else {**_new(context, preview, note), **_previewed(context, preview, note), "change": note.fate.value}
        for note in preview.resources
    )


def _adoption(adopted: AdoptionPreview) -> Wire:
    """Return the resources that would not be adopted, by reason, and the tags that would be written."""
    obstacles: dict[str, list[Wire]] = {obstacle.value: [] for obstacle in Obstacle}
    redactions = {stack.path: stack.redaction for stack in adopted.preview.all()}
    for finding in adopted.findings:
        obstacles[finding.obstacle].append(
            {
                "path": list(finding.path),
                "resource_name": finding.name,
                "resource_type": finding.type,
                "physical_resource_id": shown_id(finding.type, finding.handle),
                "reason": redactions[finding.path].text(finding.reason),
            }
        )
    tags = [
        {"path": list(path), "resource_name": name, "kind": tag.kind, "id": tag.handle, "of": tag.of}
        for path, name, tag in adopted.tags
    ]
    return {**obstacles, "tags": tags}


@ROUTER.put(
    f"{STACK}/preview",
    dependencies=[may("stacks:preview_update"), HEAVY],
    summary="Preview an update",
    responses=answers(models.UpdatePreview),
)
def preview_update(
    context: Context, stack_name: StackName, stack_id: StackId, body: Read[UpdateRequest], show_nested: Nested = False
) -> Response:
    """Preview an update: the resources that would change, how and why, as the planner decides. Changes nothing.

    The preview is valid for one revision of the stack, the `ETag` of the response. Send this tag in `If-Match` of the
    update: if the stack has changed since, the update is refused with 412.
    """
    return _preview(context, stack_name, stack_id, body, patch=bool(body.existing), show_nested=show_nested)


@ROUTER.patch(
    f"{STACK}/preview",
    dependencies=[may("stacks:preview_update_patch"), HEAVY],
    summary="Preview an update of parts",
    responses=answers(models.UpdatePreview),
)
def preview_patch(
    context: Context, stack_name: StackName, stack_id: StackId, body: Read[UpdateRequest], show_nested: Nested = False
) -> Response:
    """Preview an update of only the parts in the body."""
    return _preview(context, stack_name, stack_id, body, patch=True, show_nested=show_nested)


def _preview(
    context: RequestContext, stack_name: str, stack_id: str, body: UpdateRequest, *, patch: bool, show_nested: bool
) -> Response:
    request = read_request(body, context)
    refuse_revision(request, patch=patch)
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    preview = context.service.stack_service.preview_update(stack_id, request, patch=patch)
    view = {"revision": preview.revision, **_changes(context, preview, show_nested=show_nested)}
    return Json(view, headers=tag_of(preview.revision), remedy=SMALLER)


def _changes(context: RequestContext, preview: Preview, *, show_nested: bool) -> Wire:
    """Group resources by their fate; resources of nested stacks are distinguished by their paths."""
    changes = {fate.value: Items(_changed(context, preview, fate, show_nested=show_nested)) for fate in ORDER}
    return {"resource_changes": changes, "more_members": _more(preview) if show_nested else []}


def _changed(
    context: RequestContext, preview: Preview, fate: Fate, *, show_nested: bool
) -> Iterator[models.PreviewedResource]:
    """Yield the resources with this fate, each built on demand: members share their common parts in memory."""
    for stack, note in all_of(preview, (fate,)):
        if show_nested or not stack.path:
            yield _previewed(context, stack, note)


def _previewed(context: RequestContext, preview: Preview, note: ResourcePreview) -> models.PreviewedResource:
    """Build the resource of an update's preview: existing resources as they are, new resources as they will be."""
    return {
        **_resource(context, preview, note),
        "path": list(preview.path),
        "change_reason": preview.redaction.text(note.why),
        "property_changes": _differences(preview, note) if note.fate in (Fate.UPDATED, Fate.REPLACED) else [],
    }


def _resource(context: RequestContext, preview: Preview, note: ResourcePreview) -> models.ResourceAsPlanned:
    row = note.row
    address = context.url(preview.project, "stacks", preview.name, preview.id)
    identity = {"stack_name": preview.name, "stack_id": preview.id, "tenant": preview.project, "path": ""}
    view: models.ResourceAsPlanned = {
        "resource_name": note.name,
        "logical_resource_id": note.name,
        "physical_resource_id": shown_id(row.type, row.handle) if row is not None else "",
        "resource_type": note.type,
        "resource_action": row.action if row is not None else Action.INIT,
        # The status without the action, as in Heat; all other routes join them.
        "resource_status": row.status if row is not None else Status.COMPLETE,
        "resource_status_reason": preview.redaction.text(row.reason) if row is not None else "",
        "creation_time": at(row.created_at) if row is not None else None,
        "updated_time": at(row.updated_at) if row is not None else None,
        "required_by": sorted(set(preview.required_by.get(note.name, ()))),
        "links": [link("self", f"{address}/resources/{quoted(note.name)}"), link("stack", address)],
        "description": note.definition.description if note.definition is not None else "",
        "attributes": _unknown_attributes(note.type),
        "stack_name": preview.name,
        "resource_identity": {**identity, "path": f"/resources/{note.name}"},
        "stack_identity": identity,
    }
    if preview.path:
        view["parent_resource"] = preview.path[-1]
    return view


@lru_cache(TYPES_MAX)
def _defaults(type_name: str) -> Mapping[str, Any]:
    """Return the defaults of a type's properties; {} for a template."""
    values = type_of(type_name).complete({}) if is_known(type_name) else {}
    return {name: value for name, value in values.items() if value is not None}


@lru_cache(TYPES_MAX)
def _unknown_attributes(type_name: str) -> Wire:
    """Return the attributes of a type with null values, since a preview has none; {} for a template."""
    kind = type_of(type_name) if is_known(type_name) else None
    return dict.fromkeys(sorted(set(kind.attributes) - {"show"})) if kind is not None else {}


def _differences(preview: Preview, note: ResourcePreview) -> list[models.PropertyChange]:
    """Return the changed properties as the template has them, then other changed sections of the definition."""
    redaction = preview.redaction
    values = [
        (name, *(redaction.shown(note.name, name, version.get(name)) for version in (note.before, note.after)))
        for name in as_changed(note.changed)
    ]
    of_properties: list[models.PropertyChange] = [
        {"name": name, "before": before, "after": after}
        for name, before, after in values
        if before != after or before == HIDDEN or after == NOT_YET
    ]
    return of_properties + [
        {"name": name, "before": redaction.shown(note.name, "", before), "after": redaction.shown(note.name, "", after)}
        for name, before, after in note.sections
    ]


def _tree(context: RequestContext, preview: Preview) -> Items:
    """Return the resources of a stack that would be created; a nested stack is shown as the list of its resources."""
    return Items(
        _tree(context, preview.inside[note.name]) if note.name in preview.inside else _new(context, preview, note)
        for note in preview.resources
    )


def _new(context: RequestContext, preview: Preview, note: ResourcePreview) -> Wire:
    values = {**_defaults(note.type), **note.after}
    properties = {
        name: preview.redaction.shown(note.name, name, value) for name, value in public_properties(values).items()
    }
    return {**_resource(context, preview, note), "properties": properties, "metadata": {}}


def _more(preview: Preview) -> list[models.MoreMembers]:
    """Return the counts of members of large groups that are not listed singly."""
    return [
        {"path": list(stack.path), "stack_name": stack.name, "change": fate.value, "count": count}
        for stack in preview.all()
        for fate, count in stack.more.items()
    ]


def _identity(context: RequestContext, preview: Preview) -> Wire:
    return {
        "id": NOT_STORED,
        "links": [link("self", context.url(preview.project, "stacks", preview.name, NOT_STORED))],
    }


def _described(preview: Preview) -> Wire:
    text = preview.compiled.description if preview.compiled is not None else ""
    return {"description": text, "template_description": text}


def _parameters(preview: Preview) -> dict[str, str]:
    if preview.compiled is None:
        return {}
    return {name: parameter.shown for name, parameter in preview.compiled.parameters.items()}
