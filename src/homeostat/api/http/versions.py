"""Version discovery: the only version of the API."""

from typing import Any

from starlette.requests import Request

from homeostat.api.http.addresses import base_of
from homeostat.api.http.responses import Json


def version_of(request: Request) -> dict[str, Any]:
    """Return the only API version, in the format of version discovery."""
    href = f"{base_of(request)}/v1/"
    return {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}


def versions_answer(request: Request) -> Json:
    """Return the list of API versions, with the status 300."""
    return Json({"versions": [version_of(request)]}, 300)
