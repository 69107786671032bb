"""The middleware that hides what lets its bearer act from readers: signed addresses, tokens of handles, and logins.

Such a value may be an attribute, a part of an output that a template makes of it, metadata of a server, or a text that
a cloud quotes. So it is found by its form, in whatever is answered, and the part that proves the right is replaced by
asterisks, as many as it has characters. Who may signal what acts (`resource:signal_gate`) sees it as it is.
"""

import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homeostat.api.access.enforcer import Policy

RULE = "resource:signal_gate"
"""Who is allowed this sees what lets its bearer act."""
_KEY = rb"[\w-]{32}(?![\w-])"
"""A key, or a password, of 24 random bytes (`builtin.sessions`, `identity.stack_users`)."""
SIGNATURE = re.compile(rb"(?<=Signature=)(?:[A-Za-z0-9]|%2B|%2F){43}%3D")
# It begins with a letter that is searched for fast: answers are long, and tokens few.
TOKEN = re.compile(rb"\.(?<=[0-9a-f]{32}\.)" + _KEY)
LOGIN = re.compile(rb"""((?:password|secret_access_key)\\*["']\s*:\s*\\*["'])""" + _KEY)
VALUE_ENDS = (b",", b"}", b"]", b">", b"\n")
"""What no such value has within it."""
HELD_MAX = 64 * 1024
"""Bytes of the beginning of a value that are held back until its end is there."""


class HiddenAddresses:
    """Middleware that hides what acts from those who may not act.

    Requests without a caller are not concerned: a signed address that is used proves the right by itself.
    """

    def __init__(self, app: ASGIApp, *, policy: Policy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        hides: Callable[[bytes, bool], bytes] | None = None

        async def hidden(message: Message) -> None:
            nonlocal hides
            # The CloudFormation API finds out who asks while it answers.
            if message["type"] == "http.response.start" and "caller" in state:
                acts = self._policy.allows(RULE, state["caller"], state.get("project", ""))
                hides = None if acts else _Hiding()
            if message["type"] == "http.response.body" and hides is not None:
                body = hides(message.get("body", b""), bool(message.get("more_body")))
                message = {**message, "body": body}
            await send(message)

        await self._app(scope, receive, hidden)


class _Hiding:
    """Hides what acts in an answer that comes in pieces; a value whose end has not come yet is held back."""

    def __init__(self) -> None:
        self._held = b""

    def __call__(self, piece: bytes, more: bool) -> bytes:
        whole, self._held = self._held + piece if self._held else piece, b""
        if more:
            end = max(whole.rfind(mark) for mark in VALUE_ENDS) + 1
            if len(whole) - end <= HELD_MAX:
                whole, self._held = whole[:end], whole[end:]
        return without_acting(whole)


def without_acting(text: bytes) -> bytes:
    """Return an answer, or a part of it, in which what lets its bearer act is replaced; its length stays.

    It may be JSON, XML, or JSON as a text in one of both.
    """
    if b"Signature=" in text:
        text = SIGNATURE.sub(lambda found: b"*" * len(found[0]), text)
    text = TOKEN.sub(lambda found: b"." + b"*" * (len(found[0]) - 1), text)
    if b"password" in text or b"secret_access_key" in text:
        text = LOGIN.sub(lambda found: found[1] + b"*" * (len(found[0]) - len(found[1])), text)
    return text
