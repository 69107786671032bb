"""The dashboard's files: read once, served compressed, with a policy that forbids content of other origins.

The files hold no data: the page is an ordinary client of the API, with the user's access rights.
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
"""Content security policy: scripts and styles are the service's own files, and foreign pages cannot frame the page."""
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
    """Return the files by their paths below `/dashboard`."""
    return dict(_below(files("homeostat.dashboard") / "static", ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, File]]:
    found_files: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir():
            found_files += _below(entry, f"{name}/")
        elif any(name.endswith(ending) for ending in SERVED):
            data = entry.read_bytes()
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            kind = "text/javascript" if name.endswith(".js") else kind
            packed = gzip.compress(data, mtime=0)
            found_files.append(
                (name, File(f"{kind}; charset=utf-8", data, packed, f'"{hashlib.sha256(data).hexdigest()[:32]}"'))
            )
    return found_files


@ROUTER.get(PATH)
async def move() -> Response:
    # The page's links are relative, to work below any prefix of a proxy, so its path must end with a slash.
    return RedirectResponse(f"{PATH.rpartition('/')[2]}/", 308, HEADERS)


@ROUTER.get(f"{PATH}/{{name:path}}")
async def show(request: Request, name: str) -> Response:
    file = served_files().get(name or INDEX)
    if file is None:
        return Response("404 Not Found: the dashboard has no such file.\n", 404, HEADERS, "text/plain")
    headers = {**HEADERS, "ETag": file.tag}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"}, file.media_type)
    return Response(file.plain, 200, headers, file.media_type)
