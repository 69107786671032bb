"""Response classes for all routes: within the budget of an answer, or sent piece by piece."""

from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.background import BackgroundTask
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from homeostat.api.http.answer_budget import REMEDY, STREAMED, AnswerBytes
from homeostat.json_pieces import pieces

MAKERS = 4
"""Streams that build their next piece concurrently. Further streams wait, without using the threads of requests."""
_MAKERS: RunVar[CapacityLimiter] = RunVar("makers_of_pieces")
_END = b""


class Json(JSONResponse):
    """JSON within the budget of an answer.

    The content may hold `Items` and `Entries`, which are evaluated in the constructor, so within the caller's
    transaction. Large answers are kept in pieces, and each piece is dropped once it is sent.

    Args:
        remedy: Advice for the caller if the answer is too large.

    Raises:
        Rejected: RequestLimitExceeded.
        Transient: Too many large answers have not been read yet.
    """

    media_type = "application/json"

    def __init__(
        self,
        content: Any,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
        background: BackgroundTask | None = None,
        *,
        remedy: str = REMEDY,
    ) -> None:
        answer = AnswerBytes(pieces(content), remedy)
        self._made = answer if len(answer.pieces) > 1 else None
        super().__init__(
            b"".join(answer.pieces) if self._made is None else b"", status_code, headers, media_type, background
        )
        if self._made is not None:
            self.headers["content-length"] = str(answer.size)

    def render(self, content: Any) -> bytes:
        """Return the body, which is encoded already."""
        return bytes(content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer, self._made = self._made, None
        if answer is None:
            await super().__call__(scope, receive, send)
            return
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            answer.pieces.reverse()
            while answer.pieces:
                piece = answer.pieces.pop()
                await send({"type": "http.response.body", "body": piece, "more_body": bool(answer.pieces)})
        finally:
            answer.done()


class Stream(StreamingResponse):
    """A response that is sent in pieces while it is built; its size has no limit."""

    async def stream_response(self, send: Send) -> None:
        """Send the response. An error in the middle cuts the connection, so that the client notices the missing end."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send({**start, STREAMED: True})
        async for chunk in self.body_iterator:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class JsonStream(Stream):
    """JSON that is sent while it is built.

    Args:
        json_pieces: Generates the pieces, in changing threads.
    """

    media_type = "application/json"

    def __init__(self, json_pieces: Iterator[bytes]) -> None:
        super().__init__(_made_in_threads(json_pieces))


def json_stream(content: Any) -> Response:
    """Return JSON that is sent while it is built.

    The first two pieces are built at once: invalid requests still get a fault, and short answers are sent as a whole.

    Args:
        content: A value with `Items` or `Entries`. Between their members no transaction may be open, which a slowly
            reading client would keep open.
    """
    rest = pieces(content)
    begun = list(islice(rest, 2))
    if len(begun) == 1:
        return Response(begun[0], media_type=JsonStream.media_type)
    return JsonStream(chain(begun, rest))


async def _made_in_threads(json_pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    limiter = _makers()
    while piece := await to_thread.run_sync(next, json_pieces, _END, limiter=limiter):
        yield piece


def _makers() -> CapacityLimiter:
    try:
        return _MAKERS.get()
    except LookupError:
        limiter = CapacityLimiter(MAKERS)
        _MAKERS.set(limiter)
        return limiter


def nothing(code: int = 204, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response without a body."""
    return Response(status_code=code, headers=dict(headers or {}))
