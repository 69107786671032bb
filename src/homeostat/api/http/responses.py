"""Bodies of answers."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import JSONResponse, Response


class Json(JSONResponse):
    """JSON by the fastest encoder; Python's own for the rare number that it cannot take (beyond 64 bits)."""

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:
            return json.dumps(content, ensure_ascii=False).encode()


def nothing(code: int = 204, headers: Mapping[str, str] | None = None) -> Response:
    """An answer without a body."""
    return Response(status_code=code, headers=dict(headers or {}))
