"""Shapes of the answers, for the OpenAPI document. Answers are built as plain data, not from these."""

from typing import Any

from pydantic import BaseModel


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


class Stack(StackSummary):
    template_description: str
    parameters: dict[str, str]
    capabilities: list[str]
    notification_topics: list[str]
    disable_rollback: bool
    timeout_mins: int | None
    outputs: list[Output] | None = None


class Stacks(BaseModel):
    stacks: list[StackSummary]
    links: list[Link] | None = None
    count: int | None = None


class CreatedStack(BaseModel):
    stack: StackIdentity


class ShownStack(BaseModel):
    stack: Stack


class Environment(BaseModel):
    parameters: dict[str, Any]
    parameter_defaults: dict[str, Any]
    resource_registry: dict[str, Any]
    event_sinks: list[dict[str, Any]]
    encrypted_param_names: list[str]


class OutputNames(BaseModel):
    outputs: list[OutputName]


class ShownOutput(BaseModel):
    output: Output


class Observed(BaseModel):
    """What was last seen of a resource."""

    presence: str
    seen_at: str
    reason: str
    properties: dict[str, Any]


class Leftover(BaseModel):
    """A thing of the same name that is on its way out."""

    physical_resource_id: str
    resource_type: str
    resource_status: str
    resource_status_reason: str
    updated_time: str


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
    waiting: str | None = None
    leftovers: list[Leftover] | None = None
    description: str | None = None
    attributes: dict[str, Any] | None = None


class Resources(BaseModel):
    resources: list[Resource]


class ShownResource(BaseModel):
    resource: Resource


class Metadata(BaseModel):
    metadata: dict[str, Any]


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
