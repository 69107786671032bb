"""Software configs and deployments."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from homeostat.api.http.bodies import Fault, RequestBody


class SoftwareConfigItem(TypedDict):
    id: str
    name: str
    group: str
    creation_time: str
    project: NotRequired[Annotated[str, Field(description="Only in the list of all projects.")]]


class NewSoftwareConfig(BaseModel):
    """A new config; the rules for configs in templates hold."""

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


class SoftwareConfigs(TypedDict):
    software_configs: list[SoftwareConfigItem]


class ShownSoftwareConfig(TypedDict):
    software_config: SoftwareConfig


class SoftwareDeploymentChanges(RequestBody, extra="ignore"):
    """Changes of a deployment; null for a field is no change."""

    config_id: str | None = None
    input_values: dict[str, Any] | None = None
    output_values: dict[str, Any] | None = None
    action: str | None = None
    status: Annotated[
        Literal["IN_PROGRESS", "COMPLETE", "FAILED"] | None,
        Fault("it is IN_PROGRESS, COMPLETE or FAILED", ", not {input}"),
    ] = None
    status_reason: str | None = None

    def values(self) -> dict[str, Any]:
        """Return the fields that are to change."""
        return {name: value for name, value in self if value is not None}


class NewSoftwareDeployment(SoftwareDeploymentChanges):
    config_id: Annotated[str, Fault("the id of a config is needed")]
    server_id: Annotated[str, Field(min_length=1), Fault("the id of a server is needed")]


class SoftwareDeployment(TypedDict):
    id: str
    server_id: str
    config_id: str | None
    input_values: dict[str, Any] | None
    output_values: dict[str, Any] | None
    action: str | None
    status: Annotated[str | None, Field(description="IN_PROGRESS, COMPLETE or FAILED.")]
    status_reason: str | None
    creation_time: str
    updated_time: str | None


class SoftwareDeployments(TypedDict):
    software_deployments: list[SoftwareDeployment]


class ShownSoftwareDeployment(TypedDict):
    software_deployment: SoftwareDeployment


class ServerMetadata(TypedDict):
    metadata: list[SoftwareConfig]
