"""Errors as fault bodies of the Orchestration API, which clients parse; the only place that builds them."""

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from homeostat.api.http.responses import Json
from homeostat.model.errors import Rejected, Transient

EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: "The caller is not authenticated, or the password is wrong.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
    406: "The server cannot produce a response that the request accepts.",
    408: "The server timed out waiting for the request.",
    409: "There was a conflict when trying to complete your request.",
    412: "What the request was made for has changed since.",
    429: "The caller has sent too many requests in a given amount of time.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
"""The general sentence for each status code; `error.message` has the details of this request."""

RETRY_AFTER_S = 5
CACHING = "no-store"
"""Value of `Cache-Control` for all answers of the APIs, which are confidential."""


class FaultError(BaseModel):
    type: str
    traceback: str | None = None
    message: str | None = None
    remedy: str | None = None


class Fault(BaseModel):
    """Body of every error response."""

    code: int
    title: str
    explanation: str
    error: FaultError


def documented(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return entries for a route's `responses` that document these faults."""
    # Only the first entry has the model, the others refer to it: FastAPI builds a validator for each model of each
    # route, and faults would be nine out of ten.
    schema = {"schema": {"$ref": f"#/components/schemas/{Fault.__name__}"}}
    first, *others = codes
    entries: dict[int | str, dict[str, Any]] = {first: {"model": Fault}}
    entries |= {code: {"content": {Json.media_type: schema}} for code in others}
    return {code: {"description": EXPLANATIONS[int(code)], **entry} for code, entry in entries.items()}


def fault(
    code: int,
    kind: str,
    message: str | None = None,
    headers: dict[str, str] | None = None,
    *,
    traceback: bool = True,
    remedy: str = "",
) -> Json:
    """Build a fault response.

    Args:
        kind: `error.type`.
        remedy: `error.remedy`, if the message does not contain it.
        message: `error.message`; None for unexpected errors, whose texts are not shown to callers.
        traceback: Whether the error has the key `traceback`, which is always null. Faults of the Clustering API have
            `code` instead.
    """
    error: dict[str, Any] = {"type": kind, **({"traceback": None} if traceback else {"code": code})}
    if message is not None:
        error["message"] = message
    if remedy:
        error["remedy"] = remedy
    body = {"code": code, "title": HTTPStatus(code).phrase, "explanation": EXPLANATIONS[code], "error": error}
    return Json(body, code, headers)


def rejected(error: Rejected, challenge: str = "", *, traceback: bool = True) -> Json:
    """Return the fault for a rejected request.

    Args:
        challenge: Value of `WWW-Authenticate` for a 401; "" omits the header.
        traceback: See `fault`.
    """
    headers = {"WWW-Authenticate": challenge} if error.code == 401 and challenge else None
    if not traceback:  # clients of the Clustering API compare the whole message
        return fault(error.code, error.fault, error.plain, headers, traceback=False, remedy=error.remedy)
    return fault(error.code, error.fault, error.on_wire, headers)


def transient(error: Transient, *, traceback: bool = True) -> Json:
    """Return a 503 with `Retry-After`, at least one second; `traceback`: see `fault`."""
    after_s = RETRY_AFTER_S if error.retry_after_s is None else max(1, round(error.retry_after_s))
    message = f"Try again in {after_s} s: {error}"
    return fault(503, "ServiceUnavailable", message, {"Retry-After": str(after_s)}, traceback=traceback)


def unexpected(*, traceback: bool = True) -> Json:
    return fault(500, "InternalError", traceback=traceback)
