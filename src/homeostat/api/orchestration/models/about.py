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
    board: str = Field(description="Where it learns that there is work: `sql` or `redis`.")
    alive: bool
    shards: int = Field(description="How many it owns now.")
    started_at: str
    seen_at: str


class ShardCounts(BaseModel):
    owned: int = Field(description="Those that a living worker works on.")
    waiting: int = Field(description="Those that are due, and that no worker has taken.")
    waiting_seconds: float = Field(description="How long one of them has waited.")
    set_aside: int = Field(description="Those that have met a bug of the service, and are tried again later.")


class RequestLimit(BaseModel):
    """Requests to a service of the cloud that are limited: all processes keep one limit together."""

    service: str
    waiting_seconds: float = Field(description="How long a request that is begun now waits for its turn.")


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
    remedy: str = Field(description="What to do; empty where all is well.")


class SetAside(BaseModel):
    """A shard that was set aside for a bug of the service."""

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
