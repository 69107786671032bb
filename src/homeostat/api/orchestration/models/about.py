"""The service itself."""

from pydantic import BaseModel, Field

from homeostat.doctor.checks import Level


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


class WorkerState(BaseModel):
    name: str
    host: str
    pid: int
    version: str
    board: str = Field(description="Channel that announces work to the worker: `sql` or `redis`.")
    alive: bool
    shards: int = Field(description="Number of shards that it owns now.")
    started_at: str
    seen_at: str


class ShardCounts(BaseModel):
    owned: int = Field(description="Shards owned by living workers.")
    waiting: int = Field(description="Shards that are due, and that no worker has taken.")
    waiting_seconds: float = Field(description="Longest time that a shard has waited.")
    set_aside: int = Field(description="Shards that have met a bug of the service, and are tried again later.")


class RequestLimit(BaseModel):
    """A service of the cloud with a limit of requests, which all processes share."""

    service: str
    waiting_seconds: float = Field(description="Time that a new request waits for its turn.")


class ServiceState(BaseModel):
    version: str
    workers: list[WorkerState]
    shards: ShardCounts
    requests: list[RequestLimit]


class ShownServiceState(BaseModel):
    service: ServiceState


class CheckResult(BaseModel):
    name: str
    level: Level
    found: str
    remedy: str = Field(description="What to do; empty if all is well.")


class SetAside(BaseModel):
    """A shard that was set aside because of a bug of the service."""

    stack_name: str
    stack_id: str
    project: str
    shard: int
    reason: str


class Examination(BaseModel):
    healthy: bool = Field(description="Whether no check fails; warnings do not count.")
    checks: list[CheckResult]
    set_aside: list[SetAside]


class ShownExamination(BaseModel):
    examination: Examination
