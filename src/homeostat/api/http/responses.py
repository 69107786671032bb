"""Response classes that all routes share: each is within the budget of an answer, or is sent piece by piece."""

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
"""Streams whose next piece is made at the same time. Others wait, without keeping any other request from a thread."""
_MAKERS: RunVar[CapacityLimiter] = RunVar("makers_of_pieces")
_END = b""


class Json(JSONResponse):
    """JSON within the budget of an answer.

    The content may hold `Items` and `Entries`, which are made while they are written: in the constructor, within the
    transaction that they read in. Large answers are kept in pieces, each of which goes once it is sent.

    Args:
        remedy: What a caller may do about an answer that is too large.

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
        made = AnswerBytes(pieces(content), remedy)
        self._made = made if len(made.pieces) > 1 else None
        super().__init__(
            b"".join(made.pieces) if self._made is None else b"", status_code, headers, media_type, background
        )
        if self._made is not None:
            self.headers["content-length"] = str(made.size)

    def render(self, content: Any) -> bytes:
        """Return the body, which has been made."""
        return bytes(content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        made, self._made = self._made, None
        if made is None:
            await super().__call__(scope, receive, send)
            return
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            made.pieces.reverse()
            while made.pieces:
                piece = made.pieces.pop()
                await send({"type": "http.response.body", "body": piece, "more_body": bool(made.pieces)})
        finally:
            made.done()


class Stream(StreamingResponse):
    """A response that is sent piece by piece while it is made; it has no budget, since it is never there as a whole."""

    async def stream_response(self, send: Send) -> None:
        """Send the response. An error in the middle cuts the connection: the client sees that the end is missing."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send({**start, STREAMED: True})
        async for chunk in self.body_iterator:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class JsonStream(Stream):
    """JSON that is sent while it is made.

    Args:
        made: Its pieces. They are made in changing threads.
    """

    media_type = "application/json"

    def __init__(self, made: Iterator[bytes]) -> None:
        super().__init__(_made_in_threads(made))


def json_stream(content: Any) -> Response:
    """Return JSON that is sent while it is made.

    Its first pieces are made at once: what is wrong with the request is answered with a fault still, and what is short
    is sent as a whole.

    Args:
        content: A value with `Items` or `Entries`. No transaction may be open between two of their members: a client
            that reads slowly would keep it.
    """
    rest = pieces(content)
    begun = list(islice(rest, 2))
    if len(begun) == 1:
        return Response(begun[0], media_type=JsonStream.media_type)
    return JsonStream(chain(begun, rest))


async def _made_in_threads(made: Iterator[bytes]) -> AsyncIterator[bytes]:
    limiter = _makers()
    while piece := await to_thread.run_sync(next, made, _END, limiter=limiter):
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
