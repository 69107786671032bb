"""Information about the service itself: its build and its workers."""

import datetime

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.about import (
    BuildInfo,
    Examination,
    Services,
    ServiceState,
    ShownExamination,
    ShownServiceState,
    WorkerService,
    WorkerState,
)
from homeostat.api.orchestration.routes import answers, router
from homeostat.api.orchestration.views import at
from homeostat.doctor.checks import Level
from homeostat.doctor.database import examine_database
from homeostat.store.operation import health, request_turns, workers
from homeostat.store.operation.workers import VERSION, Worker

ROUTER = router("service")
REPORT_INTERVAL_S = 2
"""Interval shown to clients; workers actually report more often, every quarter of a lease."""
ASIDE_MAX = 100
"""Shards named in an examination, of those that were set aside."""


@ROUTER.get(
    "/build_info",
    dependencies=[may("build_info:build_info")],
    summary="Show what is running",
    responses=answers(BuildInfo),
)
def show_build_info(context: Context) -> Response:
    return Json({"api": {"revision": VERSION}, "engine": {"revision": VERSION}})


@ROUTER.get("/services", dependencies=[may("service:index")], summary="List the workers", responses=answers(Services))
def list_services(context: Context) -> Response:
    """List the workers. A killed worker is shown as `down`, and removed from the list after a while."""
    with context.db.read() as tx:
        now = tx.now()
        all_workers = workers.listed(tx)
    return Json({"services": [_service(worker, worker.is_alive(now)) for worker in all_workers]})


@ROUTER.get(
    "/service",
    dependencies=[may("service:show")],
    summary="Show the state of the service",
    responses=answers(ShownServiceState),
)
def show_service(context: Context) -> Response:
    """Show the workers, how many shards of stacks they own and how many wait, and the limits of requests to clouds."""
    with context.db.read() as tx:
        now = tx.now()
        all_workers, owned, backlog = workers.listed(tx), health.owned(tx, now), health.backlog(tx, now)
        aside = health.set_aside(tx)
    state: ServiceState = {
        "version": VERSION,
        "workers": [_worker(worker, now, owned.get(worker.name, 0)) for worker in all_workers],
        "shards": {
            "owned": sum(owned.values()),
            "waiting": backlog.shards,
            "waiting_seconds": round(backlog.lag_s(now), 3),
            "set_aside": len(aside),
        },
        "requests": [
            {"service": service, "waiting_seconds": round(max(free_s, 0.0), 3)}
            for service, free_s in sorted(request_turns.free_in(context.db).items())
        ],
    }
    return Json({"service": state})


@ROUTER.get(
    "/service/doctor",
    dependencies=[may("service:examine")],
    summary="Examine the service",
    responses=answers(ShownExamination),
)
def examine_service(context: Context) -> Response:
    """Run those checks of `homeostat doctor` that need the database alone. They name stacks of all projects.

    They count rows: ask when you want to know, not every second.
    """
    checks = list(examine_database(context.db))
    usable = all(check.level is not Level.FAIL for check in checks if check.name in ("database", "schema"))
    aside: list[health.ShardAside] = []
    if usable:
        with context.db.read() as tx:
            aside = health.set_aside(tx)
    examination: Examination = {
        "healthy": all(check.level is not Level.FAIL for check in checks),
        "checks": [
            {"name": check.name, "level": check.level, "found": check.found, "remedy": check.remedy} for check in checks
        ],
        "set_aside": [
            {
                "stack_name": row.stack,
                "stack_id": row.stack_id,
                "project": row.project,
                "shard": row.number,
                "reason": row.reason,
            }
            for row in aside[:ASIDE_MAX]
        ],
    }
    return Json({"examination": examination})


def _worker(worker: Worker, now: float, shards: int) -> WorkerState:
    return {
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "board": worker.board,
        "alive": worker.is_alive(now),
        "shards": shards,
        "started_at": at(worker.started_at),
        "seen_at": at(worker.seen_at),
    }


def _service(worker: Worker, alive: bool) -> WorkerService:
    return {
        "id": worker.name,
        "binary": "homeostat-worker",
        "engine_id": worker.name,
        "host": worker.host,
        "hostname": worker.host,
        "topic": "engine",
        "report_interval": REPORT_INTERVAL_S,
        "created_at": _wire_time(worker.started_at),
        "updated_at": _wire_time(worker.seen_at),
        "deleted_at": None,
        "status": "up" if alive else "down",
    }


def _wire_time(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).replace(tzinfo=None).isoformat()
