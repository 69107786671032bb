"""Response classes that all routes share."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import JSONResponse, Response


class Json(JSONResponse):
    """JSON response rendered by orjson, with Python's encoder as the fallback for integers beyond 64 bits."""

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:
            return json.dumps(content, ensure_ascii=False).encode()


def nothing(code: int = 204, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response without a body."""
    return Response(status_code=code, headers=dict(headers or {}))
