"""Input of requests: bodies, booleans, numbers and names."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import quote

import orjson
from anyio import to_thread
from fastapi import Depends, Request
from pydantic import BeforeValidator

from homeostat.model.errors import Rejected
from homeostat.templates.parser import check_bounds
from homeostat.templates.yaml_parser import DEPTH_MAX

MALFORMED = "The server could not comply with the request since it is either malformed or otherwise incorrect."


COUNT_MAX = 2**31 - 1
"""Largest number in a request, which every supported database can store and count to."""


@lru_cache(maxsize=8192)
def quoted(part: str) -> str:
    """Quote one part of a path; cached, since a list repeats the same few parts in hundreds of links."""
    return quote(part, safe="")


SMALL = 65_536
"""Largest body in bytes that is parsed on the event loop; larger bodies are parsed in a thread."""
JSON = "application/json"
KEY_SHOWN = 100
"""Most characters of a key that a message quotes."""
WITH_SIGNALS = (JSON, "text/plain", "")
"""Content types of signals: scripts on servers send no type, or the default of their HTTP tool."""


async def _sent(request: Request, kinds: Collection[str]) -> Mapping[str, Any] | None:
    """Return the JSON object in the body; None if the body is no object or has another content type.

    Raises:
        Rejected: HTTPBadRequest for malformed JSON, or JSON that is nested too deeply.
    """
    raw = await request.body()
    if _kind(request) not in kinds or not raw.startswith(b"{"):
        return None
    return _parsed(raw) if len(raw) <= SMALL else await to_thread.run_sync(_parsed, raw)


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        body = dict(orjson.loads(raw))
        if raw.count(b"{") + raw.count(b"[") > DEPTH_MAX:  # fewer brackets cannot be nested too deeply
            check_bounds(body)
        # Of equal keys orjson keeps the last; a proxy that checks requests may have seen the first.
        json.loads(raw, object_pairs_hook=_check_keys, parse_int=_drop, parse_float=_drop)
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"Malformed JSON in the body: {error}") from error
    return body


def _check_keys(pairs: Sequence[tuple[str, Any]]) -> None:
    """Raise ValueError for a JSON object with duplicate keys."""
    if len(dict(pairs)) == len(pairs):
        return
    (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
    raise ValueError(f"the key {twice[:KEY_SHOWN]!r} is there more than once in one object")


def _drop(_: str) -> None:
    """Do not parse a number again."""


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request) -> Mapping[str, Any]:
    """Return the body as JSON object, only with the content type `application/json`."""
    # A web page can make a browser send other content types without the user's intention (cross-site request forgery).
    if _kind(request) != JSON and await request.body():
        raise Rejected("HTTPBadRequest", f"{MALFORMED} The body has to be JSON, with the header Content-Type: {JSON}.")
    body = await _sent(request, (JSON,))
    if body is None:
        raise Rejected("HTTPBadRequest", MALFORMED)
    return body


async def _harmless_body(request: Request) -> Mapping[str, Any]:
    """Return the body of a request that changes nothing, as JSON object, even without content type."""
    body = await _sent(request, (JSON, ""))
    return await _body(request) if body is None else body


async def _signal_body(request: Request) -> Mapping[str, Any] | None:
    return await _sent(request, WITH_SIGNALS)


Body = Annotated[Mapping[str, Any], Depends(_body)]
HarmlessBody = Annotated[Mapping[str, Any], Depends(_harmless_body)]
SignalBody = Annotated[Mapping[str, Any] | None, Depends(_signal_body)]


def flag(value: Any) -> bool:
    """Parse a boolean as clients send it. Raise ValueError for anything else."""
    word = str(value).strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f'Unrecognized value "{value}", acceptable values are: true, false')
    return word == "true"


Flag = Annotated[bool, BeforeValidator(flag)]
"""A strict boolean: `true` or `false`, in any case of letters."""
