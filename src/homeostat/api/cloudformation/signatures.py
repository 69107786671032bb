"""AWS request signatures, versions 2 and 4, in headers and in URLs. Pure.

The signature is computed from the same decoded parameters that the action receives, so the verified request is the
executed request.
"""

import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.parameters import Pairs
from homeostat.resources import signing

SKEW_S = 900.0
"""Allowed deviation of a caller's clock, and lifetime of a request."""
EXPIRES_MAX_S = 604_800
"""Longest lifetime of a presigned URL."""
ALGORITHM = "AWS4-HMAC-SHA256"
_V4_HEADER = re.compile(r"AWS4-HMAC-SHA256\s+(.*)\Z", re.DOTALL)
_AMZ_TIME = re.compile(r"\d{8}T\d{6}Z\Z")
_FULL_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?\Z")


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it was received.

    Attributes:
        path: As sent, percent-encoded.
        query: Decoded, in order.
        form: Decoded, in order.
        headers: Lower-case names, in order.
        body: Raw.
    """

    method: str
    path: str
    query: Pairs = ()
    form: Pairs = ()
    headers: Pairs = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    @property
    def parameters(self) -> dict[str, str]:
        return dict((*self.query, *self.form))


# -- version 2 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignedV2:
    """A version 2 signature, over all parameters."""

    access_key: str
    signature: str
    sent: SignedRequest

    def check_time(self, now: float) -> None:
        """Check the request's time, if given: agents on servers do not send it.

        Args:
            now: Seconds since the epoch.

        Raises:
            Refused: RequestExpired.
        """
        parameters = self.sent.parameters
        if "Timestamp" in parameters:
            _check_near(_full_time(parameters["Timestamp"], "Timestamp"), now, parameters["Timestamp"])
        if "Expires" in parameters and now > _full_time(parameters["Expires"], "Expires"):
            raise Refused("RequestExpired", f"It was good until {parameters['Expires']}.")

    def fits(self, secret: str) -> bool:
        """Return whether the request is signed with this secret, in constant time."""
        signed = {name: value for name, value in self.sent.parameters.items() if name != signing.SIGNATURE}
        host = self.sent.header("host")
        # Some clients sign the host without its port. Both signatures are always computed, so that the time does not
        # depend on the match.
        fitting = [
            signing.same(
                signing.signature(secret, self.sent.method, signed_host, self.sent.path, signed), self.signature
            )
            for signed_host in dict.fromkeys((host, _without_port(host)))
        ]
        return any(fitting)


def _version_2(sent: SignedRequest, parameters: Mapping[str, str]) -> SignedV2:
    if not parameters.get(signing.ACCESS_KEY):
        raise Refused("MissingAuthenticationToken", f"{signing.ACCESS_KEY} is needed.")
    if not parameters.get(signing.SIGNATURE):
        raise Refused("SignatureDoesNotMatch", "Signature is needed.")
    version, method = parameters.get("SignatureVersion"), parameters.get("SignatureMethod", "HmacSHA256")
    if version != "2" or method != "HmacSHA256":
        raise Refused("IncompleteSignature", "Sign with SignatureVersion 2 and HmacSHA256, or with version 4.")
    return SignedV2(parameters[signing.ACCESS_KEY], parameters[signing.SIGNATURE], sent)


def _without_port(host: str) -> str:
    return host.rpartition(":")[0] if re.search(r":\d+\Z", host) else host


# -- version 4 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignedV4:
    """A version 4 signature.

    Attributes:
        scope: Date, region, service and the terminator `aws4_request`.
        date: As signed.
        expires_s: Lifetime of a presigned URL; None for other requests.
        headers: Names of the signed headers.
    """

    access_key: str
    signature: str
    sent: SignedRequest
    scope: Sequence[str]
    date: str
    time: float
    headers: Sequence[str]
    expires_s: int | None = None

    def check_time(self, now: float) -> None:
        """Check the request's time, as for version 2."""
        if self.expires_s is None:
            _check_near(self.time, now, self.date)
        elif self.time > now + SKEW_S:
            raise Refused("RequestExpired", f"It is good from {self.date} on.")
        elif now > self.time + self.expires_s:
            raise Refused("RequestExpired", f"It was good for {self.expires_s} s from {self.date} on.")

    def fits(self, secret: str) -> bool:
        """Return whether the request is signed with this secret, as for version 2."""
        digest = hashlib.sha256(self._canonical().encode()).hexdigest()
        text = "\n".join((ALGORITHM, self.date, "/".join(self.scope), digest))
        key = f"AWS4{secret}".encode()
        for part in self.scope:
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        return signing.same(hmac.digest(key, text.encode(), hashlib.sha256).hex(), self.signature)

    def _canonical(self) -> str:
        """Return the canonical request. The body is hashed as received, whatever `x-amz-content-sha256` says."""
        pairs = sorted((_quoted(name), _quoted(value)) for name, value in self.sent.query if name != "X-Amz-Signature")
        values = defaultdict(list)
        for name, value in self.sent.headers:
            values[name].append(" ".join(value.split()))
        lines = [f"{name}:{','.join(values[name])}\n" for name in self.headers]
        return "\n".join(
            (
                self.sent.method,
                quote(self.sent.path, safe="/~"),
                "&".join(f"{name}={value}" for name, value in pairs),
                "".join(lines),
                ";".join(self.headers),
                hashlib.sha256(self.sent.body).hexdigest(),
            )
        )


def _in_header(sent: SignedRequest, value: str) -> SignedV4:
    """Parse the header Authorization: `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`."""
    parts = dict(part.strip().partition("=")[::2] for part in value.split(","))
    date = sent.header("x-amz-date") or sent.parameters.get("X-Amz-Date", "") or sent.header("date")
    return _version_4(sent, parts, date)


def _in_address(sent: SignedRequest, query: Mapping[str, str]) -> SignedV4:
    """Parse the signature of a presigned URL."""
    parts = {name.removeprefix("X-Amz-"): value for name, value in query.items() if name.startswith("X-Amz-")}
    if parts.get("Algorithm") != ALGORITHM:
        raise Refused("IncompleteSignature", f"X-Amz-Algorithm is {ALGORITHM}.")
    expires = parts.get("Expires", "")
    if not re.fullmatch(r"\d{1,6}", expires) or not 1 <= int(expires) <= EXPIRES_MAX_S:
        raise Refused("IncompleteSignature", f"X-Amz-Expires is a number of seconds from 1 to {EXPIRES_MAX_S}.")
    return _version_4(sent, parts, parts.get("Date", ""), int(expires))


def _version_4(sent: SignedRequest, parts: Mapping[str, str], date: str, expires_s: int | None = None) -> SignedV4:
    lacking = [name for name in ("Credential", "SignedHeaders", "Signature") if not parts.get(name)]
    if lacking:
        raise Refused("IncompleteSignature", f"The authorization lacks {', '.join(lacking)}.")
    access_key, *scope = parts["Credential"].split("/")
    if not access_key:
        raise Refused("MissingAuthenticationToken", "The credential names no access key.")
    if len(scope) != 4 or scope[3] != "aws4_request":
        raise Refused("IncompleteSignature", "The credential is <access key>/<date>/<region>/<service>/aws4_request.")
    time, date = _signing_time(date)
    if scope[0] != date[:8]:
        raise Refused("SignatureDoesNotMatch", f"The request is of {date[:8]}, its credential of {scope[0]}.")
    headers = parts["SignedHeaders"].lower().split(";")
    present = {name for name, _ in sent.headers}
    # An unsigned `x-amz-…` header could be added or changed on the way.
    open_ = sorted({"host", *(name for name in present if name.startswith("x-amz-"))}.difference(headers))
    if open_:
        raise Refused("SignatureDoesNotMatch", f"These headers have to be signed: {', '.join(open_)}.")
    absent = sorted(set(headers) - present)
    if absent:
        raise Refused("SignatureDoesNotMatch", f"These headers are signed and not there: {', '.join(absent)}.")
    return SignedV4(access_key, parts["Signature"], sent, scope, date, time, headers, expires_s)


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


# -- both --------------------------------------------------------------------------------------------------------------

Claim = SignedV2 | SignedV4
"""A request's claim to be signed with the secret of its access key, not yet verified."""


def claim_of(sent: SignedRequest) -> Claim | None:
    """Return the signature of a request; None if unsigned. Raise Refused for an incomplete signature."""
    authorization = _V4_HEADER.match(sent.header("authorization"))
    if authorization:
        return _in_header(sent, authorization[1])
    query = dict(sent.query)
    if "X-Amz-Signature" in query or "X-Amz-Algorithm" in query:
        return _in_address(sent, query)
    parameters = sent.parameters
    if "Signature" in parameters or "AWSAccessKeyId" in parameters:
        return _version_2(sent, parameters)
    return None


# -- times -------------------------------------------------------------------------------------------------------------


def _check_near(time: float, now: float, value: str) -> None:
    if abs(now - time) > SKEW_S:
        here = datetime.fromtimestamp(now, UTC)
        raise Refused("RequestExpired", f"It is of {value}, and now it is {here:%Y%m%dT%H%M%SZ}: look at the clock.")


def _signing_time(text: str) -> tuple[float, str]:
    """Return seconds since the epoch, and the form in which the time is signed."""
    try:
        if _AMZ_TIME.match(text):
            at = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        else:
            at = parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise Refused("IncompleteSignature", "X-Amz-Date is needed, like 20260131T235959Z.") from error
    return at.timestamp(), f"{at:%Y%m%dT%H%M%SZ}"


def _full_time(text: str, name: str) -> float:
    """Parse a time of version 2: `2026-01-31T23:59:59Z`, with optional fraction and zone."""
    match = _FULL_TIME.match(text)
    try:
        if match is None:
            raise ValueError(text)
        zone = (match[3] or "Z").replace("Z", "+00:00")
        return datetime.fromisoformat(match[1] + zone).timestamp() + float(match[2] or 0)
    except (ValueError, OverflowError) as error:
        raise Refused("InvalidParameterValue", f"{name} is a time like 2026-01-31T23:59:59Z, not {text!r}.") from error
