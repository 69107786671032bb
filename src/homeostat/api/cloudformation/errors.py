"""Error codes of the CloudFormation API, and their mapping from the service's own errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from homeostat.model.errors import Rejected, Transient

SENDER, SERVER = "Sender", "Server"


@dataclass(frozen=True, slots=True)
class Code:
    """An error code of AWS.

    Attributes:
        status: HTTP status.
        explanation: The general sentence.
        type: Who must act, the sender or the server.
    """

    status: int
    explanation: str
    type: str = SENDER


CODES: Mapping[str, Code] = {
    "AccessDenied": Code(403, "You may not do this"),
    "AlreadyExists": Code(400, "There is a stack of this name"),
    "IncompleteSignature": Code(400, "The request lacks a signature, or parts of it"),
    "InternalFailure": Code(500, "The service has made a mistake", SERVER),
    "InvalidAction": Code(400, "There is no such action, or it cannot be done now"),
    "InvalidClientTokenId": Code(403, "The access key is not known here"),
    "InvalidParameterCombination": Code(400, "These parameters do not go together"),
    "InvalidParameterValue": Code(400, "A parameter does not fit, or names what is not there"),
    "MalformedQueryString": Code(404, "The parameters cannot be read"),
    "MissingAuthenticationToken": Code(403, "The request is not authenticated"),
    "MissingParameter": Code(400, "A parameter is missing"),
    "RequestExpired": Code(400, "The request is too old, or from the future"),
    "RequestLimitExceeded": Code(400, "There is a limit"),
    "ServiceUnavailable": Code(503, "The service cannot answer now", SERVER),
    "Throttling": Code(429, "There are too many requests"),
    "SignatureDoesNotMatch": Code(403, "The signature does not fit"),
}
FROM_FAULTS: Mapping[str, str] = {
    "ActionInProgress": "InvalidAction",
    "Forbidden": "AccessDenied",
    "HTTPUnauthorized": "AccessDenied",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "StackExists": "AlreadyExists",
    "StackLocked": "InvalidAction",
    "TooManyRequests": "Throttling",
}
"""Fault of the Orchestration API -> code. All other faults, EntityNotFound too, become InvalidParameterValue."""


class Refused(Exception):
    """A request that the CloudFormation API refuses.

    Attributes:
        code: Key of CODES.
        detail: The problem and the remedy.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        self.code = code
        self.detail = detail
        super().__init__(self.message)

    @property
    def status(self) -> int:
        return CODES[self.code].status

    @property
    def type(self) -> str:
        return CODES[self.code].type

    @property
    def message(self) -> str:
        explanation = CODES[self.code].explanation
        return f"{explanation}:{self.detail}" if self.detail else explanation


def refused(error: Refused | Rejected | Transient) -> Refused:
    """Translate an error of the caller, or a transient one, into this API's terms."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Transient):
        return Refused("ServiceUnavailable", str(error))
    if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Refused("InternalFailure")
    return Refused(FROM_FAULTS.get(error.fault, "InvalidParameterValue"), str(error))
