"""Software configs and deployments."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from homeostat.api.http.bodies import Fault, RequestBody


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


class SoftwareDeployment(BaseModel):
    id: str
    server_id: str
    config_id: str | None
    input_values: dict[str, Any] | None
    output_values: dict[str, Any] | None
    action: str | None
    status: str | None = Field(description="IN_PROGRESS, COMPLETE or FAILED.")
    status_reason: str | None
    creation_time: str
    updated_time: str | None


class SoftwareDeployments(BaseModel):
    software_deployments: list[SoftwareDeployment]


class ShownSoftwareDeployment(BaseModel):
    software_deployment: SoftwareDeployment


class ServerMetadata(BaseModel):
    metadata: list[SoftwareConfig]
