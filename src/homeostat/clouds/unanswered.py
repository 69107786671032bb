"""Reasons of failed requests: statements of the node itself, or failures of this service and the network.

A refused connection was refused by the node's machine: the node has answered. A missing route or an unknown name is
reported by this machine or a router. A timeout is silence of the node only if there was time to answer: time that this
service used up itself does not count.
"""

import errno
import socket
import ssl
from typing import NamedTuple

import httpcore
import httpx

from homeostat.model.answers import Kind
from homeostat.model.errors import Rejected

WAITED_PART = 0.8
"""Part of the timeout that must have been spent waiting, for a timeout to count as silence."""
OVERSLEPT_S, OVERSLEPT_PART = 0.25, 0.25
"""Tolerated delay of a timeout, in seconds and as a part of it: a later timeout means that this process was not
running.
"""
_NOTHING_LISTENS = {errno.ECONNREFUSED}
_CLOSED = {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ESHUTDOWN}
_NO_ROUTE = {
    *(errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.ENETRESET, errno.ENONET),
    *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENODEV, errno.EACCES, errno.EPERM),
}
_OUT_OF_MEANS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.EADDRINUSE}
KINDS = {
    **dict.fromkeys(_NOTHING_LISTENS, Kind.REFUSED),
    **dict.fromkeys(_CLOSED, Kind.BROKEN_OFF),
    errno.ETIMEDOUT: Kind.SILENT,
    **dict.fromkeys(_NO_ROUTE, Kind.NO_ROUTE),
    **dict.fromkeys(_OUT_OF_MEANS, Kind.OUT_OF_MEANS),
}
"""Error number of the system -> kind of failure; any other number is unclear."""
CERTIFICATE_OF_THE_NODE = {10: "has expired", 62: "is for another name", 64: "is for another address", 23: "is revoked"}
"""Codes of OpenSSL for certificates that are wrong in themselves. All further codes depend on this machine's trust
anchors and clock: a certificate not valid yet, or of an unknown issuer."""
_TLS_OF_THE_NODE = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_EOF_WHILE_READING"}
)
"""Reasons of OpenSSL for a peer that speaks no TLS, or closed the connection."""


class Answered(NamedTuple):
    """An answer to a request.

    Attributes:
        status: Status code; 0 without an answer.
        text: Text of the answer, or reason of the failure.
        kind: Kind of the failure; None for an answer.
    """

    status: int
    text: str
    kind: Kind | None = None


class Refused(Exception):
    """The rules do not allow the request, or it cannot be made; the message is for the user."""

    def __init__(self, message: str, kind: Kind = Kind.FORBIDDEN_BY_RULE) -> None:
        super().__init__(message)
        self.kind = kind


FAILURES = (
    *(Refused, UnicodeDecodeError, httpx.InvalidURL, httpcore.TimeoutException, TimeoutError),
    *(httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError),
)
"""Errors that a request may raise."""


def reason_of(error: Exception, timeout_s: float) -> str:
    """Return the reason of a failed request, for users."""
    if isinstance(error, httpcore.TimeoutException | TimeoutError):
        return f"it took more than {timeout_s:g} s"
    return str(error) or type(error).__name__


def kind_of(error: Exception, timeout_s: float, took_s: float, waited_s: float) -> Kind:
    """Return the kind of failure of a request.

    Args:
        timeout_s: Timeout in seconds.
        took_s: Duration in seconds.
        waited_s: Part of the duration spent waiting for the peer.
    """
    if isinstance(error, Refused):
        return error.kind
    if isinstance(error, Rejected):
        return Kind.TOO_LARGE
    if isinstance(error, httpcore.TimeoutException | TimeoutError):
        overslept = took_s - timeout_s > max(OVERSLEPT_S, OVERSLEPT_PART * timeout_s)
        return Kind.OWN_TIME if overslept or waited_s < WAITED_PART * timeout_s else Kind.SILENT
    if isinstance(error, httpcore.RemoteProtocolError):
        return Kind.BROKEN_OFF
    cause: BaseException | None = error
    while cause is not None:
        kind = _kind_of_system_error(cause)
        if kind is not Kind.UNCLEAR:
            return kind
        cause = cause.__cause__ or cause.__context__
    return Kind.UNCLEAR


def _kind_of_system_error(error: BaseException) -> Kind:
    """Return the kind of failure of a system or TLS error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Kind.INVALID_CERTIFICATE if error.verify_code in CERTIFICATE_OF_THE_NODE else Kind.UNTRUSTED
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Kind.BROKEN_OFF
    if isinstance(error, ssl.SSLError):
        return Kind.BROKEN_OFF if error.reason in _TLS_OF_THE_NODE else Kind.UNTRUSTED
    if isinstance(error, socket.gaierror):
        return Kind.UNRESOLVED
    if isinstance(error, OSError) and error.errno is not None:
        return KINDS.get(error.errno, Kind.UNCLEAR)
    return Kind.UNCLEAR


def why_unsaid(kind: Kind, reason: str, *, took_s: float, waited_s: float) -> str:
    """Return the reason why the state of the peer is unknown, for users."""
    if kind is Kind.OWN_TIME:
        return f"this worker was too busy to ask: of {took_s:.1f} s it has waited {waited_s:.1f} s for an answer"
    return reason
