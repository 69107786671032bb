"""Definitions that all routers of the Clustering API share."""

from typing import Any

from fastapi import APIRouter

from homeostat.api.clustering.context import PREFIX
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json


def router(tag: str) -> APIRouter:
    """Return a router for routes below `/clustering/v1`."""
    return APIRouter(
        prefix=f"{PREFIX}/v1",
        tags=[f"clustering: {tag}"],
        default_response_class=Json,
        responses=documented(400, 401, 403, 404, 405, 406, 408, 409, 429, 500, 503),
    )


def answers(model: Any, description: str = "Done.", code: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` for success; `model` is None for no body."""
    return {code: {"description": description} | ({"model": model} if model is not None else {})}


def accepted(model: Any = None) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` for what is carried out later."""
    return answers(model, "Accepted; Location has the address of the action.", 202)
