"""The dashboard's files: read once, served compressed, with rules by which the page loads nothing from elsewhere.

They hold no data: what the page shows it asks of the API, as any client does, with that one's access rules.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

PATH = "/dashboard"
INDEX = "index.html"
SERVED = frozenset({".css", ".html", ".js", ".svg"})
RULES = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
"""Content security policy: scripts and styles are the service's own files, and a page of others cannot frame it."""
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": RULES,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
ROUTER = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class File:
    """One file, as it is sent."""

    media_type: str
    plain: bytes
    packed: bytes
    tag: str


@cache
def served_files() -> Mapping[str, File]:
    """Return the files by their path below that of the dashboard."""
    return dict(_below(files("homeostat.dashboard") / "static", ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for each in folder.iterdir():
        name = f"{path}{each.name}"
        if each.is_dir():
            found += _below(each, f"{name}/")
        elif any(name.endswith(ending) for ending in SERVED):
            data = each.read_bytes()
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            kind = "text/javascript" if name.endswith(".js") else kind
            packed = gzip.compress(data, mtime=0)
            found.append(
                (name, File(f"{kind}; charset=utf-8", data, packed, f'"{hashlib.sha256(data).hexdigest()[:32]}"'))
            )
    return found


@ROUTER.get(PATH)
async def move() -> Response:
    # A path of its own ends with a slash: addresses in the page are below it, whatever a proxy has put before.
    return RedirectResponse(f"{PATH.rpartition('/')[2]}/", 308, HEADERS)


@ROUTER.get(f"{PATH}/{{name:path}}")
async def show(request: Request, name: str) -> Response:
    found = served_files().get(name or INDEX)
    if found is None:
        return Response("404 Not Found: the dashboard has no such file.\n", 404, HEADERS, "text/plain")
    headers = {**HEADERS, "ETag": found.tag}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, 200, {**headers, "Content-Encoding": "gzip"}, found.media_type)
    return Response(found.plain, 200, headers, found.media_type)
