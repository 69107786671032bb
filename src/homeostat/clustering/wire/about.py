"""Routes about the Clustering API itself: versions, build, services."""

from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.responses import Json
from homeostat.clustering.wire.context import LEAST, MOST, PREFIX, Context, base_of
from homeostat.clustering.wire.routes import answers, router
from homeostat.model.errors import Rejected
from homeostat.store.operation import workers
from homeostat.store.operation.workers import Worker

ROUTER = router("about")
ONE = answers(dict[str, Any])
UPDATED = "2016-01-18T00:00:00Z"
"""Date of the version of the API, as in Senlin."""
HELP = "https://docs.openstack.org/api-ref/clustering"
MEDIA = {"base": "application/json", "type": "application/vnd.openstack.clustering-v1+json"}


def version(request: Request) -> dict[str, Any]:
    """Return the only version of the API, with the bounds of its microversions."""
    return {
        "id": "1.0",
        "status": "CURRENT",
        "updated": UPDATED,
        "media-types": [MEDIA],
        "links": [{"href": base_of(request), "rel": "self"}, {"href": HELP, "rel": "help"}],
        "min_version": "{}.{}".format(*LEAST),
        "max_version": "{}.{}".format(*MOST),
    }


def add_versions(app: FastAPI) -> None:
    """Add the routes for version discovery, which need no authentication."""

    @app.get(PREFIX, summary="List versions of the Clustering API", status_code=300, tags=["clustering: about"])
    @app.get(f"{PREFIX}/", include_in_schema=False)
    @app.get(f"{PREFIX}/versions", include_in_schema=False)
    async def list_clustering_versions(request: Request) -> Response:
        return Json({"versions": [version(request)]}, 300)

    @app.get(f"{PREFIX}/v1", summary="Show the version of the Clustering API", tags=["clustering: about"])
    @app.get(f"{PREFIX}/v1/", include_in_schema=False)
    async def show_clustering_version(request: Request) -> Response:
        return Json({"version": version(request)})


@ROUTER.get(
    "/build-info",
    dependencies=[may("build_info:build_info")],
    summary="Show the build of the Clustering API",
    responses=ONE,
)
def show_build(context: Context) -> Response:
    return context.json({"build_info": {"api": {"revision": workers.VERSION}, "engine": {"revision": workers.VERSION}}})


@ROUTER.get("/services", dependencies=[may("service:index")], summary="List the workers, as an admin", responses=ONE)
def list_services(context: Context) -> Response:
    if not context.caller.is_admin and not context.caller.is_anybody:
        raise Rejected("Forbidden", "You are not authorized to complete this operation.")
    with context.db.read() as tx:
        now = tx.now()
        rows = workers.listed(tx)
    return context.json({"services": [_service(worker, alive=worker.is_alive(now)) for worker in rows]})


def _service(worker: Worker, *, alive: bool) -> dict[str, Any]:
    return {
        "id": worker.name,
        "host": worker.host,
        "binary": "homeostat-worker",
        "topic": worker.board,
        "status": "enabled",
        "state": "up" if alive else "down",
        "disabled_reason": None,
        "updated_at": datetime.fromtimestamp(worker.seen_at, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    }
