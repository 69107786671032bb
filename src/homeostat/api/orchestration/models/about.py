"""The service itself."""

from pydantic import BaseModel


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
