"""Middleware that enforces the size limit of answers."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homeostat.api import errors
from homeostat.api.http.answer_budget import ANSWER_BYTES_MAX, OWNER, STREAMED, too_large


class AnswerLimit:
    """Middleware that counts the bytes of every answer, as a safety net.

    `Json` answers were already counted while they were built, and streams have no budget. Any other answer above the
    budget becomes a fault; if its first bytes are already sent, the answer is cut off.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.get("state", {})
        OWNER.set(str(state.get("project") or ""))
        start: Message | None = None
        streamed, refused, size = False, False, 0

        async def weighed(message: Message) -> None:
            nonlocal start, streamed, refused, size
            if refused:
                return
            if message["type"] == "http.response.start":
                streamed = bool(message.pop(STREAMED, False))
                start = message
                return
            size += len(message.get("body", b""))
            if size > ANSWER_BYTES_MAX and not streamed:
                if start is None:
                    raise RuntimeError(f"an answer to {scope['method']} {scope['path']} outgrew its budget on the way")
                refused = True
                await errors.rejected(scope, too_large())(scope, receive, send)
                return
            if start is not None:
                begun, start = start, None
                await send(begun)
            await send(message)

        await self._app(scope, receive, weighed)
