"""The service itself."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from homeostat.doctor.checks import Level


class BuildInfo(TypedDict):
    api: dict[str, str]
    engine: dict[str, str]


class WorkerService(TypedDict):
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


class Services(TypedDict):
    services: list[WorkerService]


class WorkerState(TypedDict):
    name: str
    host: str
    pid: int
    version: str
    board: Annotated[str, Field(description="Channel that announces work to the worker: `sql` or `redis`.")]
    alive: bool
    shards: Annotated[int, Field(description="Number of shards that it owns now.")]
    started_at: str
    seen_at: str


class ShardCounts(TypedDict):
    owned: Annotated[int, Field(description="Shards owned by living workers.")]
    waiting: Annotated[int, Field(description="Shards that are due, and that no worker has taken.")]
    waiting_seconds: Annotated[float, Field(description="Longest time that a shard has waited.")]
    set_aside: Annotated[
        int, Field(description="Shards that have met a bug of the service, and are tried again later.")
    ]


class RequestLimit(TypedDict):
    """A service of the cloud with a limit of requests, which all processes share."""

    service: str
    waiting_seconds: Annotated[float, Field(description="Time that a new request waits for its turn.")]


class ServiceState(TypedDict):
    version: str
    workers: list[WorkerState]
    shards: ShardCounts
    requests: list[RequestLimit]


class ShownServiceState(TypedDict):
    service: ServiceState


class CheckResult(TypedDict):
    name: str
    level: Level
    found: str
    remedy: Annotated[str, Field(description="What to do; empty if all is well.")]


class SetAside(TypedDict):
    """A shard that was set aside because of a bug of the service."""

    stack_name: str
    stack_id: str
    project: str
    shard: int
    reason: str


class Examination(TypedDict):
    healthy: Annotated[bool, Field(description="Whether no check fails; warnings do not count.")]
    checks: list[CheckResult]
    set_aside: list[SetAside]


class ShownExamination(TypedDict):
    examination: Examination
