"""About the service itself: its build and its workers."""

import datetime
from importlib import metadata
from typing import Any

from starlette.responses import Response

from homeostat.api.answers import Json
from homeostat.api.asking import Ask
from homeostat.api.orchestration import models
from homeostat.api.orchestration.routing import answers, router
from homeostat.store import views

ROUTER = router("service")
REPORT_INTERVAL_S = 5
VERSION = metadata.version("homeostat")


@ROUTER.get("/build_info", summary="Show what is running", responses=answers(models.BuildInfo))
def show_build_info(ask: Ask) -> Response:
    return Json({"api": {"revision": VERSION}, "engine": {"revision": VERSION}})


@ROUTER.get("/services", summary="List the workers that are at work", responses=answers(models.Services))
def list_services(ask: Ask) -> Response:
    """Workers are known by the leases they hold: one that has nothing to do is not listed."""
    with ask.db.read() as tx:
        found = views.workers(tx, ask.db.now_of(tx))
    return Json({"services": [_service(name, until) for name, until in found]})


def _service(name: str, lease_until: float) -> dict[str, Any]:
    host = name.partition(":")[0]
    reported = datetime.datetime.fromtimestamp(lease_until - REPORT_INTERVAL_S, datetime.UTC)
    return {
        "id": name,
        "binary": "homeostat-worker",
        "engine_id": name,
        "host": host,
        "hostname": host,
        "topic": "engine",
        "report_interval": REPORT_INTERVAL_S,
        "created_at": None,
        "updated_at": reported.replace(tzinfo=None).isoformat(),
        "deleted_at": None,
        "status": "up",
    }
