"""Previews: what an update or a creation would change."""

from typing import Any

from pydantic import BaseModel

from homeostat.api.orchestration.models.resources import Resource


class PropertyChange(BaseModel):
    """A changed property.

    Secrets are redacted; a value that depends on a resource yet to be created is `(not known yet)`.
    """

    name: str
    before: Any
    after: Any


class PreviewedResource(Resource):
    """A resource in a preview.

    `path` has the names of the resources above it, from the root; `change_reason` is why it is replaced or changed.
    """

    path: list[str]
    resource_action: str
    resource_identity: dict[str, str]
    stack_identity: dict[str, str]
    change_reason: str
    property_changes: list[PropertyChange]


class ResourceChanges(BaseModel):
    unchanged: list[PreviewedResource]
    updated: list[PreviewedResource]
    replaced: list[PreviewedResource]
    added: list[PreviewedResource]
    deleted: list[PreviewedResource]


class MoreMembers(BaseModel):
    """Members of a large group that are not listed one by one."""

    path: list[str]
    stack_name: str
    change: str
    count: int


class UpdatePreview(BaseModel):
    resource_changes: ResourceChanges
    more_members: list[MoreMembers]


class StackPreview(UpdatePreview):
    """A stack as it would be shown. In its `resources`, nested stacks are represented by lists."""

    stack: dict[str, Any]
