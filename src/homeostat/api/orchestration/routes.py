"""Definitions that all routers share."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from homeostat.api.http.bodies import Router
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json

STACK = "/stacks/{stack_name}/{stack_id}"


def router(tag: str) -> Router:
    """Return a router for routes below `/v1/{project}`, all of which require access to the project."""
    return Router(
        prefix="/v1/{project}",
        tags=[tag],
        default_response_class=Json,
        responses=documented(400, 401, 403, 404, 405, 408, 429, 500, 503),
    )


def answers(
    model: Any, description: str = "Done.", code: int = 200, more: Mapping[str, Any] = MappingProxyType({})
) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` for success.

    Args:
        model: None for no body.
        more: Further documentation of the response.
    """
    return {code: {"description": description, **more} | ({"model": model} if model is not None else {})}
