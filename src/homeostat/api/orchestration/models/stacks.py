"""Stacks: summaries, details, outputs, snapshots, revisions and exported documents."""

from typing import Any

from pydantic import BaseModel, Field


class Link(BaseModel):
    href: str
    rel: str


class StackIdentity(BaseModel):
    id: str
    links: list[Link]


class StackSummary(StackIdentity):
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str | None
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None


class OutputName(BaseModel):
    output_key: str
    description: str


class Output(OutputName):
    output_value: Any
    output_error: str | None = None


class Lock(BaseModel):
    """A lock: nothing in the stack changes until it is unlocked."""

    level: str = Field(description="`all`: with its resources; `stacks`: without.")
    owner: str | None = Field(description="The user who locked it, if users have names.")
    reason: str | None
    locked_at: str
    expires_at: str | None = Field(description="When the lock ends; null: never.")


class Stack(StackSummary):
    template_description: str
    parameters: dict[str, str]
    capabilities: list[str]
    notification_topics: list[str]
    disable_rollback: bool
    timeout_mins: int | None
    template_source: str | None = Field(
        description="The file that the template was read from, if the client reported it."
    )
    lock: Lock | None = None
    outputs: list[Output] | None = None


class Stacks(BaseModel):
    stacks: list[StackSummary]
    links: list[Link] | None = None
    count: int | None = None


class CreatedStack(BaseModel):
    stack: StackIdentity


class ShownStack(BaseModel):
    stack: Stack


class Exported(BaseModel):
    """A stack as a document. A nested stack's document takes the place of its resource."""

    name: str
    id: str
    action: str
    status: str
    project_id: str
    stack_user_project_id: str
    tags: list[str] | None
    environment: dict[str, Any]
    files: dict[str, str]
    template: dict[str, Any]
    resources: dict[str, Any]


class Snapshot(BaseModel):
    id: str
    name: str | None
    action: str = Field(description="CREATE, or DELETE while its data in the cloud is being deleted.")
    status: str
    status_reason: str
    creation_time: str
    data: Exported | None = Field(
        description="The stack as it was; `resource_data` has the ids of its data in the cloud. Null until complete."
    )


class Snapshots(BaseModel):
    snapshots: list[Snapshot]


class ShownSnapshot(BaseModel):
    snapshot: Snapshot


class Revision(BaseModel):
    number: int
    action: str = Field(description='The action that stored it: CREATE, UPDATE, LOCK, …; "" for very old ones.')
    creation_time: str
    requested_by: str | None = Field(description="Who asked for it; null for the service itself, and very old ones.")
    request_id: str | None = Field(description="Id of the request.")
    empty: bool = Field(description="Whether it has no resources: the stack was deleted, or rolled back to nothing.")
    newest: bool
    complete: bool = Field(description="The last revision that was complete.")


class Revisions(BaseModel):
    revisions: list[Revision]


class Environment(BaseModel):
    parameters: dict[str, Any]
    parameter_defaults: dict[str, Any]
    resource_registry: dict[str, Any]
    event_sinks: list[dict[str, Any]]
    encrypted_param_names: list[str]


class RevisionAsItWas(Revision):
    template: dict[str, Any]
    environment: Environment
    files: dict[str, str]


class ShownRevision(BaseModel):
    revision: RevisionAsItWas


class OutputNames(BaseModel):
    outputs: list[OutputName]


class ShownOutput(BaseModel):
    output: Output
