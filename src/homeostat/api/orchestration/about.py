"""Information about the service itself: its build and its workers."""

import datetime
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.about import BuildInfo, Services
from homeostat.api.orchestration.routes import answers, router
from homeostat.store.operation import workers
from homeostat.store.operation.workers import VERSION, Worker

ROUTER = router("service")
REPORT_INTERVAL_S = 2
"""Interval shown to clients; workers actually report more often, every quarter of a lease."""


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
    """List the workers. One that was killed is shown as `down`, and removed from the list after a while."""
    with context.db.read() as tx:
        now = context.db.now_of(tx)
        found = workers.listed(tx)
    return Json({"services": [_service(each, each.is_alive(now)) for each in found]})


def _service(worker: Worker, alive: bool) -> dict[str, Any]:
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
