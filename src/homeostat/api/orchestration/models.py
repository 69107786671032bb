"""Response schemas, for the OpenAPI document. Responses are built as plain data, not from these classes."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from homeostat.model.plan import Why


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
    """A lock: nothing of the stack is changed until it is unlocked."""

    level: str = Field(description="`all`: with its resources; `stacks`: without.")
    owner: str | None = Field(description="Who has locked it, where users have names.")
    reason: str | None
    locked_at: str
    expires_at: str | None = Field(description="When the service unlocks it; null: it does not.")


class Stack(StackSummary):
    template_description: str
    parameters: dict[str, str]
    capabilities: list[str]
    notification_topics: list[str]
    disable_rollback: bool
    timeout_mins: int | None
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
    action: str = Field(description="CREATE, or DELETE while what the cloud keeps for it is deleted.")
    status: str
    status_reason: str
    creation_time: str
    data: Exported | None = Field(
        description="The stack as it was, with the ids of what the cloud keeps in `resource_data`; none until complete."
    )


class Snapshots(BaseModel):
    snapshots: list[Snapshot]


class ShownSnapshot(BaseModel):
    snapshot: Snapshot


class Revision(BaseModel):
    number: int
    action: str = Field(description='What was asked of the stack: CREATE, UPDATE, LOCK, …; "" for very old ones.')
    creation_time: str
    empty: bool = Field(description="Nothing is to exist by it: the stack was deleted, or rolled back to nothing.")
    newest: bool
    complete: bool = Field(description="It is the last that was complete.")


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


class Observed(BaseModel):
    """The last observation of a resource."""

    presence: str
    seen_at: str = Field(description="When it was last seen to change.")
    looked_at: str = Field(description="When it was last looked at.")
    reason: str
    blind: str | None = Field(None, description="Why it cannot be looked at now.")
    properties: dict[str, Any]
    drift: list["Drift"]
    left_alone: str | None = Field(None, description="What is wrong with it and stays, convergence being switched off.")


class Drift(BaseModel):
    """A property that differs from its desired value."""

    property: str
    desired: Any
    observed: Any
    since: str


class Leftover(BaseModel):
    """A thing of the same name that is being removed."""

    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    updated_time: str


class Unhealthy(BaseModel):
    """The mark of an unhealthy resource."""

    reason: str
    reported_by: str | None = Field(description="The user.")
    reporter: str | None = Field(description="What that user calls itself, a health checker for one.")
    since: str
    expires_at: str | None = Field(description="When the mark ends, unless it was acted on before.")


class Mark(BaseModel):
    """Marks a resource unhealthy, or healthy again."""

    mark_unhealthy: bool
    resource_status_reason: str | None = None


class Marking(Mark):
    """Marks several resources."""

    resources: list[str] = Field(min_length=1, description="Names, physical ids, or paths like group/0/server.")
    reporter: str | None = Field(None, description="What the caller calls itself, a health checker for one.")
    expires_in: float | None = Field(None, gt=0, description="Seconds until the mark ends, unless it was acted on.")


class MarkedResource(BaseModel):
    resource: str = Field(description="As it was asked for.")
    path: list[str] = Field(description="Names from the stack that was asked about down to it.")
    resource_status: str
    changed: bool = Field(description="Its state did; false for what is being deleted, or was well already.")


class Marked(BaseModel):
    resources: list[MarkedResource]


class Resource(BaseModel):
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    creation_time: str
    updated_time: str
    required_by: list[str]
    parent_resource: str | None = None
    links: list[Link]
    observed: Observed | None = None
    asked_at: str | None = Field(None, description="Somebody asked to converge it, which is still to be done.")
    unhealthy: Unhealthy | None = Field(None, description="The mark that it carries; absent where it carries none.")
    waiting: str | None = None
    leftovers: list[Leftover] | None = None
    description: str | None = None
    attributes: dict[str, Any] | None = None


class Resources(BaseModel):
    resources: list[Resource]


class ShownResource(BaseModel):
    resource: Resource


class Cause(BaseModel):
    """The origin of the waiting: another resource, possibly of a nested stack."""

    path: list[str] = Field(description="Names from the stack that was asked about down to it.")
    why: str
    reason: str
    released_by: str


class Reason(BaseModel):
    """The reason why one resource or leftover is not at rest, and what would move it."""

    resource_name: str
    path: list[str] = Field(description="Names from the stack that was asked about down to it.")
    resource_type: str
    physical_resource_id: str
    resource_status: str
    leftover: bool = Field(description="It should not exist any more; the name may have another resource.")
    why: str = Field(description=f"One of {', '.join(Why)}.")
    reason: str
    waits_for: list[str] = Field(description="Names of resources of the same stack.")
    since: str | None = Field(description="Since when it waits, where that is known.")
    released_by: str
    due_at: str | None = Field(description="When time alone releases it.")
    next: str = Field(description="create, adopt, find, observe, update, operate, delete, record, look or compare.")
    next_at: str | None
    fails_at: str | None = Field(description="When its time is over, where it is in progress.")
    blocks: list[str] = Field(description="Names of resources that wait for it, the first few.")
    blocks_count: int
    cause: Cause | None
    links: list[Link]


class Progress(BaseModel):
    """Number of resources to bring to rest, and how many are.

    `stacks` is the number of stacks counted; null where there are too many nested ones to count.
    """

    planned: int
    done: int
    stacks: int | None


class PathLink(BaseModel):
    """One resource of the critical path.

    `seconds` is the time it still needs; null where no resource of its type was timed yet.
    """

    resource_name: str
    resource_type: str
    action: str
    seconds: float | None


class Kind(BaseModel):
    resource_type: str
    action: str


class CriticalPath(BaseModel):
    """The chain of unfinished resources that takes longest, by the times that such resources took before.

    `unknown` lists the types and actions without such times.
    """

    seconds: float | None
    unknown: list[Kind]
    resources: list[PathLink]


class Estimate(BaseModel):
    """Time until everything is at rest. `by` is the method: `critical_path`, or `rate` (resources a second)."""

    seconds: float
    by: str
    rate: float | None


class StackWaiting(BaseModel):
    """What a stack in progress waits for besides its resources: a pause, or a worker to finish it."""

    why: str
    reason: str
    due_at: str | None
    released_by: str


class Unseen(BaseModel):
    """The cloud does not answer. `since` is when all things of the stack were last observed; null for never."""

    reason: str
    since: str | None


class Explanation(BaseModel):
    id: str
    stack_name: str
    stack_status: str
    stack_status_reason: str
    begun_at: str
    deadline: str | None
    waiting: StackWaiting | None
    unseen: Unseen | None
    progress: Progress
    critical_path: CriticalPath | None
    estimate: Estimate | None
    resources: list[Reason]
    links: list[Link]


class ExplainedStack(BaseModel):
    explanation: Explanation


class ExplainedResource(BaseModel):
    """Reasons of the resource and its leftovers, then those of nested resources; none when it is at rest."""

    explanation: "ResourceExplanation"


class ResourceExplanation(BaseModel):
    at_rest: bool
    resource: Resource
    reasons: list[Reason]


class Metadata(BaseModel):
    metadata: dict[str, Any]


class Switches(BaseModel):
    enabled: bool | None = Field(None, description="Bring back what drifts or dies?")
    observe_interval: float | None = Field(
        None, description="Seconds between looks at what is at rest; 0: never; null: the service's own."
    )
    healing: Literal["replace", "ask"] | None = Field(
        None, description="What is gone or broken for good: made anew, or only when somebody agrees; null: made anew."
    )


class Convergence(Switches):
    healing_share: float | None = Field(
        None,
        description="Of the things of the stack, that are healed at a time: over 0, up to 1; null: the service's own.",
    )
    resources: dict[str, Switches] = Field({}, description="Resources that differ from the stack.")
    looked_at: str | None = Field(
        None, description="In answers: since when all of it was looked at; null: some of it never was."
    )
    blind: str | None = Field(None, description="In answers: why some of it cannot be looked at now.")


class ShownConvergence(BaseModel):
    convergence: Convergence


class EventItem(BaseModel):
    id: str
    event_time: str
    resource_name: str
    logical_resource_id: str
    physical_resource_id: str | None
    resource_status: str
    resource_status_reason: str
    links: list[Link]


class Event(EventItem):
    resource_type: str
    resource_properties: dict[str, Any]


class Events(BaseModel):
    events: list[EventItem]


class ShownEvent(BaseModel):
    event: Event


class PropertyChange(BaseModel):
    """A changed property.

    Secrets are redacted; a value that depends on a resource yet to be created is `(not known yet)`.
    """

    name: str
    before: Any
    after: Any


class PreviewedResource(Resource):
    """A resource in a preview.

    `path` has the names of the resources above it, from the root; `change_reason` tells why it is replaced or changed.
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


class BuildInfo(BaseModel):
    api: dict[str, str]
    engine: dict[str, str]


class WorkerService(BaseModel):
    id: str
    binary: str
    engine_id: str
    host: str
    hostname: str
    topic: str
    report_interval: int
    created_at: str | None
    updated_at: str
    deleted_at: str | None
    status: str


class Services(BaseModel):
    services: list[WorkerService]


class SoftwareConfigItem(BaseModel):
    id: str
    name: str
    group: str
    creation_time: str


class NewSoftwareConfig(BaseModel):
    name: str = ""
    group: str = "Heat::Ungrouped"
    config: Any = Field("", description="A text or a map.")
    inputs: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = []
    options: dict[str, Any] = {}


class SoftwareConfig(SoftwareConfigItem):
    config: Any
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    options: dict[str, Any]


class SoftwareConfigs(BaseModel):
    software_configs: list[SoftwareConfigItem]


class ShownSoftwareConfig(BaseModel):
    software_config: SoftwareConfig


class SoftwareDeploymentChanges(BaseModel):
    config_id: str | None = None
    input_values: dict[str, Any] | None = None
    output_values: dict[str, Any] | None = None
    action: str | None = None
    status: str | None = Field(None, description="IN_PROGRESS, COMPLETE or FAILED.")
    status_reason: str | None = None


class NewSoftwareDeployment(SoftwareDeploymentChanges):
    server_id: str


class SoftwareDeployment(NewSoftwareDeployment):
    id: str
    creation_time: str
    updated_time: str | None


class SoftwareDeployments(BaseModel):
    software_deployments: list[SoftwareDeployment]


class ShownSoftwareDeployment(BaseModel):
    software_deployment: SoftwareDeployment


class ServerMetadata(BaseModel):
    metadata: list[SoftwareConfig]
