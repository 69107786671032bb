"""Middleware that redacts bearer secrets for readers: signed addresses, tokens of handles, and logins.

A secret may be an attribute, a part of an output, metadata of a server, or a text that a cloud quotes. So secrets are
recognized by their form in every answer. Each character of the signature, token or password becomes an asterisk.
Callers with the right `resource:signal_gate` see the secrets.
"""

import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homeostat.api.access.enforcer import Policy

RULE = "resource:signal_gate"
"""Rule whose callers see bearer secrets."""
_KEY = rb"[\w-]{32}(?![\w-])"
"""A key, or a password, of 24 random bytes (`builtin.sessions`, `identity.stack_users`)."""
SIGNATURE = re.compile(rb"(?<=Signature=)(?:[A-Za-z0-9]|%2B|%2F){43}%3D")
# The pattern begins with a literal character, which is searched for fast: answers are long, and tokens few.
TOKEN = re.compile(rb"\.(?<=[0-9a-f]{32}\.)" + _KEY)
LOGIN = re.compile(rb"""((?:password|secret_access_key)\\*["']\s*:\s*\\*["'])""" + _KEY)
VALUE_ENDS = (b",", b"}", b"]", b">", b"\n")
"""Characters that no secret contains."""
HELD_MAX = 64 * 1024
"""Bytes of an incomplete value that are held back until its end arrives."""


class HiddenAddresses:
    """Middleware that redacts bearer secrets for callers without the right to act.

    Requests without a caller are not redacted: they come to signed addresses, whose bearers have the right.
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
            # The CloudFormation API authenticates only in its route, so the caller is read when the answer starts.
            if message["type"] == "http.response.start" and "caller" in state:
                acts = self._policy.allows(RULE, state["caller"], state.get("project", ""))
                hides = None if acts else _Redactor()
            if message["type"] == "http.response.body" and hides is not None:
                body = hides(message.get("body", b""), bool(message.get("more_body")))
                message = {**message, "body": body}
            await send(message)

        await self._app(scope, receive, hidden)


class _Redactor:
    """Redacts bearer secrets in an answer that comes in pieces; an incomplete value is held back until its end."""

    def __init__(self) -> None:
        self._held = b""

    def __call__(self, piece: bytes, more: bool) -> bytes:
        whole, self._held = self._held + piece if self._held else piece, b""
        if more:
            end = max(whole.rfind(mark) for mark in VALUE_ENDS) + 1
            if len(whole) - end <= HELD_MAX:
                whole, self._held = whole[:end], whole[end:]
        return without_secrets(whole)


def without_secrets(text: bytes) -> bytes:
    """Return an answer, or a part of an answer, with bearer secrets redacted. The length does not change.

    The format may be JSON, XML, or JSON quoted inside of them.
    """
    if b"Signature=" in text:
        text = SIGNATURE.sub(lambda match: b"*" * len(match[0]), text)
    text = TOKEN.sub(lambda match: b"." + b"*" * (len(match[0]) - 1), text)
    if b"password" in text or b"secret_access_key" in text:
        text = LOGIN.sub(lambda match: match[1] + b"*" * (len(match[0]) - len(match[1])), text)
    return text
