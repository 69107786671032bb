"""Stacks: summaries, details, outputs, snapshots, revisions and exported documents."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class Link(TypedDict):
    href: str
    rel: str


class StackIdentity(TypedDict):
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
    project: NotRequired[Annotated[str, Field(description="Only in the list of all projects.")]]


class OutputName(TypedDict):
    output_key: str
    description: str


class Output(OutputName):
    output_value: Any
    output_error: NotRequired[str]


class Lock(TypedDict):
    """A lock: nothing in the stack changes until it is unlocked."""

    level: Annotated[str, Field(description="`all`: with its resources; `stacks`: without.")]
    owner: Annotated[str | None, Field(description="The user who locked it, if users have names.")]
    reason: str | None
    locked_at: str
    expires_at: Annotated[str | None, Field(description="When the lock ends; null: never.")]


class StackSettings(TypedDict):
    template_description: str
    parameters: dict[str, str]
    capabilities: list[str]
    notification_topics: list[str]
    disable_rollback: bool
    timeout_mins: int | None


class StackDetail(StackSummary, StackSettings):
    template_source: Annotated[
        str | None, Field(description="The file that the template was read from, if the client reported it.")
    ]
    lock: Lock | None


class Stack(StackDetail):
    outputs: NotRequired[list[Output]]


class Stacks(TypedDict):
    stacks: list[StackSummary]
    links: NotRequired[list[Link]]
    count: NotRequired[int]


class CreatedStack(TypedDict):
    stack: StackIdentity


class ShownStack(TypedDict):
    stack: Stack


class Exported(TypedDict):
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


class Snapshot(TypedDict):
    id: str
    name: str | None
    action: Annotated[str, Field(description="CREATE, or DELETE while its data in the cloud is being deleted.")]
    status: str
    status_reason: str
    creation_time: str
    data: Annotated[
        Exported | None,
        Field(
            description="The stack as it was; `resource_data` has ids of its data in the cloud. Null until complete."
        ),
    ]


class Snapshots(TypedDict):
    snapshots: list[Snapshot]


class ShownSnapshot(TypedDict):
    snapshot: Snapshot


class Revision(TypedDict):
    number: int
    action: Annotated[
        str, Field(description='The action that stored it: CREATE, UPDATE, LOCK, …; "" for very old ones.')
    ]
    creation_time: str
    requested_by: Annotated[
        str | None, Field(description="Who asked for it; null for the service itself, and very old ones.")
    ]
    request_id: Annotated[str | None, Field(description="Id of the request.")]
    empty: Annotated[
        bool, Field(description="Whether it has no resources: the stack was deleted, or rolled back to nothing.")
    ]
    newest: bool
    complete: Annotated[bool, Field(description="The last revision that was complete.")]


class Revisions(TypedDict):
    revisions: list[Revision]


class Environment(TypedDict):
    parameters: dict[str, Any]
    parameter_defaults: dict[str, Any]
    resource_registry: dict[str, Any]
    event_sinks: list[dict[str, Any]]
    encrypted_param_names: list[str]


class RevisionAsItWas(Revision):
    template: dict[str, Any]
    environment: Environment
    files: dict[str, str]


class ShownRevision(TypedDict):
    revision: RevisionAsItWas


class OutputNames(TypedDict):
    outputs: list[OutputName]


class ShownOutput(TypedDict):
    output: Output
