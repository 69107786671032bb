"""TLS of HTTP clients, which verify every peer and load the authorities only when there is one."""

import ssl
from functools import cache
from typing import Any

import httpx


class _Verifying(ssl.SSLContext):
    """A TLS context that verifies as httpx does by default, and loads the authorities with the first TLS connection.

    They take a twentieth of a second, and most services are reached without TLS, where only a redirect may need them.
    The context itself trusts no authority: a connection that was made without them would be refused.
    """

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        return _loaded().wrap_socket(*arguments, **options)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return _loaded().wrap_bio(*arguments, **options)


def verifying() -> ssl.SSLContext:
    """Return a context for the option `verify` of httpx."""
    return _Verifying(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _loaded() -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
