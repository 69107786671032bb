"""What the routers of all parts share."""

from typing import Any

from fastapi import APIRouter

from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json

STACK = "/stacks/{stack_name}/{stack_id}"


def router(tag: str) -> APIRouter:
    """Routes below `/v1/{project}`; any of them may be refused for want of access."""
    return APIRouter(
        prefix="/v1/{project}",
        tags=[tag],
        default_response_class=Json,
        responses=documented(400, 401, 403, 404, 405, 408, 429, 500, 503),
    )


def answers(model: Any, description: str = "Done.", code: int = 200) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: what a success looks like. model — None for no body."""
    return {code: {"description": description} | ({"model": model} if model is not None else {})}
