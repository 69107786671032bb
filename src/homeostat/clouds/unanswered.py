"""Why a request got no answer: what the node has said, and what this service, or the way, was not able to do.

A connection that is refused was refused by the machine of the node: it has answered. That there is no route, or no such
name, is said by this machine or by one on the way. Where nothing comes in time nobody has said anything, provided that
there was time: what this service has used up itself does not count.
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
"""Part of its time for which an answer has to have been waited for, so that none is silence."""
OVERSLEPT_S, OVERSLEPT_PART = 0.25, 0.25
"""How late the end of the time may be noticed, in seconds and as a part of it: later, this process was not running."""
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
"""Number of an error of the system -> what it says; any other is unclear."""
CERTIFICATE_OF_THE_NODE = {10: "has expired", 62: "is for another name", 64: "is for another address", 23: "is revoked"}
"""Codes of OpenSSL for certificates that are wrong in themselves. All others depend on what this machine trusts, and
on its clock: one that is not valid yet, or whose issuer is not known here."""
_TLS_OF_THE_NODE = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_EOF_WHILE_READING"}
)
"""Reasons of OpenSSL that say that the other side speaks no TLS, or has gone."""


class Answered(NamedTuple):
    """An answer to a request.

    Attributes:
        status: Status code; 0 without an answer.
        text: The text of the answer; why there is none.
        kind: Why there is none, see `Kind`; None where there is one.
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
    """Return why a request has failed, for users."""
    if isinstance(error, httpcore.TimeoutException | TimeoutError):
        return f"it took more than {timeout_s:g} s"
    return str(error) or type(error).__name__


def kind_of(error: Exception, timeout_s: float, took_s: float, waited_s: float) -> Kind:
    """Return what a failed request says.

    Args:
        error: What it has raised.
        timeout_s: Seconds that it might take.
        took_s: Seconds that it took.
        waited_s: Seconds of these in which the other side was waited for.
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
    found: BaseException | None = error
    while found is not None:
        kind = _kind_of_system_error(found)
        if kind is not Kind.UNCLEAR:
            return kind
        found = found.__cause__ or found.__context__
    return Kind.UNCLEAR


def _kind_of_system_error(error: BaseException) -> Kind:
    """Return what an error of the system, or of TLS, says."""
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
    """Return why nothing is known of the other side, for users."""
    if kind is Kind.OWN_TIME:
        return f"this worker was too busy to ask: of {took_s:.1f} s it has waited {waited_s:.1f} s for an answer"
    return reason
