"""Software configs and deployments."""

from typing import Any

from pydantic import BaseModel, Field


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
