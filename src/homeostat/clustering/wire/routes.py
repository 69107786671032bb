"""Definitions that all routers of the Clustering API share."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json
from homeostat.clustering.wire import bodies
from homeostat.clustering.wire.context import PREFIX


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
    """Return a route's `responses` for a request that is carried out later."""
    return answers(model, "Accepted; Location has the address of the action.", 202)


def takes(fields: bodies.Fields, key: str = "") -> dict[str, Any]:
    """Return a route's `openapi_extra` for a body with these fields, below the only key `key` if set."""
    fields_schema = bodies.schema(fields)
    return _body({"type": "object", "properties": {key: fields_schema}, "required": [key]} if key else fields_schema)


def takes_one(choices: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a route's `openapi_extra` for a body with a single key, of these: key -> schema of its value."""
    return _body({"type": "object", "properties": choices, "minProperties": 1, "maxProperties": 1})


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
