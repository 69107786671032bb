"""The base URL of links in answers, and the known names of the service.

Clients may write anything into the header `Host`. So links use the header only if it holds a known name of the service;
otherwise links use the address that the client has connected to.
"""

import ipaddress
import logging
import re
import socket
from dataclasses import dataclass, field
from functools import lru_cache

from starlette.requests import Request

LOG = logging.getLogger(__name__)
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::\d{1,5})?\Z")
"""A bracketed IPv6 address, or another address or name; with an optional port."""
LOCAL = "localhost"


def host_named(authority: str) -> str | None:
    """Return the name or address in the header `Host`, in lower case and without the port; None if invalid."""
    match = _AUTHORITY.match(authority)
    return None if match is None else (match[1] or match[2]).lower()


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether a name or address is a loopback address."""
    if host.lower() == LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses at which clients reach the service.

    Attributes:
        public_url: The URL in the operator's settings, without version; "" if not set.
        own_names: Names of this machine, in lower case.
    """

    public_url: str = ""
    own_names: frozenset[str] = field(default_factory=lambda: frozenset({socket.gethostname().lower()}))

    def base(self, request: Request) -> str:
        """Return the URL of the service, without version and without a slash at the end, for links in an answer."""
        if self.public_url:
            return self.public_url
        authority = request.headers.get("host", "")
        host, port = request.scope.get("server") or (LOCAL, None)
        scheme = request.scope["scheme"]
        return f"{scheme}://{_followed(authority, host, port, self.own_names)}{request.scope.get('root_path', '')}"


@lru_cache(maxsize=256)
def _followed(authority: str, host: str, port: int | None, own_names: frozenset[str]) -> str:
    """Return the client's name for the service if known, else the address to which the client has connected."""
    named = host_named(authority)
    if named is not None and (is_loopback(named) or named == host.lower() or named in own_names):
        return authority
    connected = f"[{host}]" if ":" in host else host
    followed = connected if port is None else f"{connected}:{port}"
    if authority:
        _warn_once(followed)
    return followed


@lru_cache(maxsize=16)
def _warn_once(followed: str) -> None:
    LOG.warning(
        "clients use a name of this service that it does not know, so links name %s: set --public-url to the URL "
        "that clients use",
        followed,
    )


def base_of(request: Request) -> str:
    """Return the URL of the service as links in the answer to this request have it."""
    addresses: Addresses = request.app.state.addresses
    return addresses.base(request)
