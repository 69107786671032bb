"""Previews: the changes of an update or a creation."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from homeostat.api.orchestration.models.stacks import Link, StackIdentity, StackSettings


class PropertyChange(TypedDict):
    """A changed property.

    Secrets are redacted; a value that depends on a resource yet to be created is `(not known yet)`.
    """

    name: str
    before: Any
    after: Any


class ResourceAsPlanned(TypedDict):
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str
    resource_type: str
    resource_action: str
    resource_status: str
    resource_status_reason: str
    creation_time: str | None
    updated_time: str | None
    required_by: list[str]
    parent_resource: NotRequired[str]
    links: list[Link]
    description: str
    attributes: dict[str, Any]
    stack_name: str
    resource_identity: dict[str, str]
    stack_identity: dict[str, str]


class PreviewedResource(ResourceAsPlanned):
    """A resource in a preview.

    `path` has the names of the resources above, from the root; `change_reason` is why the resource is replaced or
    changed. The reason begins with "it would fail: " if the update would fail at this resource, and with "it would
    wait: " for an unchanged resource that is not at rest.
    """

    path: list[str]
    change_reason: str
    property_changes: list[PropertyChange]


class ResourceChanges(TypedDict):
    unchanged: list[PreviewedResource]
    updated: list[PreviewedResource]
    replaced: list[PreviewedResource]
    added: list[PreviewedResource]
    deleted: list[PreviewedResource]


class MoreMembers(TypedDict):
    """Members of a large group that are not listed singly."""

    path: list[str]
    stack_name: str
    change: str
    count: int


class UpdatePreview(TypedDict):
    """Effects of an update on the stack at this revision."""

    revision: int
    resource_changes: ResourceChanges
    more_members: list[MoreMembers]


class Obstacle(TypedDict):
    """A resource that would not be adopted, and why."""

    path: list[str]
    resource_name: str
    resource_type: str
    physical_resource_id: str
    reason: str


class AdoptionTag(TypedDict):
    """A tag that an adoption would write: on the thing `id` of this kind, with the id of the adopted thing `of`."""

    path: list[str]
    resource_name: str
    kind: str
    id: str
    of: str


class Adoption(TypedDict):
    """Resources that would not be adopted, and tags that an adoption would write.

    Attributes:
        refused: The whole adoption would be refused.
        missing: Not in the cloud: the adoption would fail.
        failing: The adoption would fail for another reason.
        unseen: Unknown: the cloud does not answer, or the resource depends on missing things.
    """

    refused: list[Obstacle]
    missing: list[Obstacle]
    failing: list[Obstacle]
    unseen: list[Obstacle]
    tags: list[AdoptionTag]


class PreviewedStack(StackIdentity, StackSettings):
    stack_name: str
    description: str
    creation_time: None
    updated_time: None
    deletion_time: None
    stack_owner: str | None
    parent: None
    stack_user_project_id: str
    tags: list[str]
    resources: list[Any]
    adoption: NotRequired[Adoption]


class StackPreview(UpdatePreview):
    """A stack as it would be shown. In its `resources`, nested stacks are represented by lists.

    With `adopt_stack_data` it has `adoption`, and each resource `change`, `change_reason` and `property_changes`, whose
    `before` is the value in the cloud.
    """

    stack: PreviewedStack
