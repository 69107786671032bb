"""Errors, sorted by who must act, and the register of the API's fault types.

`Rejected` is for the caller, `Transient` for time, `Terminal` for the user. After `Uncertain`, observe before acting
again. `Superseded` needs no action. `Bug` is an internal error.
"""

import math
import re
from collections.abc import Iterable

FAULT_CODES: dict[str, int] = {
    "ActionConflict": 409,
    "ActionCooldown": 409,
    "ActionImmutable": 409,
    "ActionInProgress": 409,
    "BadRequest": 400,
    "CircularDependencyException": 400,
    "Conflict": 409,
    "ConflictingMergeStrategyForParam": 400,
    "DownloadLimitExceeded": 400,
    "ESchema": 400,
    "EntityNotFound": 404,
    "FeatureNotSupported": 409,
    "Forbidden": 403,
    "HTTPBadRequest": 400,
    "HTTPMethodNotAllowed": 405,
    "HTTPNotFound": 404,
    "HTTPUnauthorized": 401,
    "HTTPUnprocessable": 400,
    "ImmutableParameterModified": 400,
    "InvalidBreakPointHook": 400,
    "InvalidGlobalAPIVersion": 406,
    "InvalidMergeStrategyForParam": 400,
    "InvalidRestrictedAction": 400,
    "InvalidSchemaError": 400,
    "InvalidSpec": 400,
    "InvalidTemplateAttribute": 400,
    "InvalidTemplateReference": 400,
    "InvalidTemplateSection": 400,
    "InvalidTemplateVersion": 400,
    "InvalidTenant": 403,
    "MethodVersionNotFound": 400,
    "MultipleChoices": 400,
    "NodeNotOrphan": 409,
    "NotFound": 404,
    "NotSupported": 400,
    "OverQuota": 403,
    "PhysicalResourceIDAmbiguity": 400,
    "PhysicalResourceNameAmbiguity": 400,
    "PolicyBindingNotFound": 404,
    "PreconditionFailed": 412,
    "RequestLimitExceeded": 400,
    "RequestTimeout": 408,
    "ResourceActionNotSupported": 400,
    "ResourceInUse": 409,
    "ResourceIsLocked": 409,
    "ResourceNotAvailable": 404,
    "ResourceNotFound": 404,
    "ResourceTypeUnavailable": 400,
    "StackExists": 409,
    "StackLocked": 409,
    "StackNotLocked": 409,
    "StackValidationFailed": 400,
    "TooManyRequests": 429,
    "UnknownUserParameter": 400,
    "UserParameterMissing": 400,
    "ValueError": 400,
}
"""Fault type (`error.type` of a response) -> HTTP code, as in Heat and Senlin. A name never changes its meaning.

Heat answers InvalidTemplateAttribute with 500, as Senlin does ESchema and OverQuota; here they are client errors.
"""


def dotted(path: Iterable[str | int]) -> str:
    """Join a path: `["resources", "srv", "networks", 0]` -> `resources.srv.networks[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class HomeostatError(Exception):
    """Base of all errors raised on purpose."""


class Rejected(HomeostatError):
    """The caller must change the request; nothing was stored.

    Args:
        fault: Key of FAULT_CODES.
        message: The problem and its remedy.
        error: Class of mistake, shown first (`Property error`).
        path: Place of the mistake, as names and indices.
        remedy: The remedy, if clients compare the message with a known text.

    Attributes:
        plain: The text without the remedy.
    """

    def __init__(
        self, fault: str, message: str, *, error: str = "", path: Iterable[str | int] = (), remedy: str = ""
    ) -> None:
        self.fault = fault
        self.error = error
        self.path = tuple(path)
        self.message = message
        self.remedy = remedy
        self.detail = f"{message} ({remedy})" if remedy else message
        where = (error, dotted(self.path))
        self.plain = ": ".join(part for part in (*where, message) if part)
        super().__init__(": ".join(part for part in (*where, self.detail) if part))

    @property
    def code(self) -> int:
        return FAULT_CODES[self.fault]

    @property
    def on_wire(self) -> str:
        """The text of the fault as Heat's clients know it."""
        if self.fault != "StackValidationFailed":
            return str(self)
        # For validation errors, Heat's engine and API both insert a colon between class, place and message.
        return ": : ".join(part for part in (self.error, dotted(self.path), self.detail) if part)

    def at(self, *prefix: str | int) -> "Rejected":
        """Return the same error with `prefix` put before its path."""
        return Rejected(self.fault, self.message, error=self.error, path=(*prefix, *self.path), remedy=self.remedy)


class TooManyRequests(Rejected):
    """The caller sends requests too often, and may retry after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("TooManyRequests", f"{message}; try again in {math.ceil(retry_after_s)} s.")

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(math.ceil(self.retry_after_s))}


class Absent(Rejected):
    """A resource lacks a value that a dependant reads: the dependant cannot be created yet."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__("StackValidationFailed", message, path=path)

    def at(self, *prefix: str | int) -> "Absent":
        """Return the same error with `prefix` put before its path."""
        return type(self)(self.message, *prefix, *self.path)


class LeadsNowhere(Absent):
    """An attribute has a value, but the path into the value does not exist."""


class MemberAway(Absent):
    """A desired member does not exist at present: it is being replaced, or its creation failed."""


class InvalidTemplateAttribute(Rejected):
    """A template reads an attribute that the resource does not have.

    Args:
        why: Further details.
    """

    def __init__(self, resource: str, attribute: str, why: str = "") -> None:
        message = f"The Referenced Attribute ({resource} {attribute}) is incorrect"
        super().__init__("InvalidTemplateAttribute", f"{message}: {why}." if why else f"{message}.")


def invalid(message: str, *path: str | int, error: str = "") -> Rejected:
    """Return the error for a template or property that does not validate (400 StackValidationFailed)."""
    return Rejected("StackValidationFailed", message, error=error, path=path)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_name(name: object, path: Iterable[str | int]) -> None:
    """Check that a name has no control characters, which programs, databases and terminals interpret.

    Raises:
        Rejected: A text has a control character. Values of other types are not checked.
    """
    match = _CONTROL.search(name) if isinstance(name, str) else None
    if match is not None:
        sign = f"U+{ord(match[0]):04X}"
        raise invalid(
            f"A name cannot have the control character {sign} (number {match.start() + 1}): take it out", *path
        )


def ambiguous(name: str) -> Rejected:
    message = f"Multiple physical resources were found with name ({name}); refer to one by its id."
    return Rejected("PhysicalResourceNameAmbiguity", message)


def stack_not_found(name: str) -> Rejected:
    return Rejected("EntityNotFound", f"The Stack ({name}) could not be found.")


class Transient(HomeostatError):
    """A passing failure: retry after `retry_after_s` seconds, or after the caller's own backoff if None."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class Outage(Transient):
    """A server that the service needs, such as its database, does not answer.

    Args:
        message: Name of the server; for all users.
        details: Address and error of the server; for operators and the log only.
    """

    def __init__(self, message: str, details: str, retry_after_s: float | None = None) -> None:
        self.details = details
        super().__init__(message, retry_after_s)


def in_detail(error: BaseException) -> str:
    """Return the text of an error for operators, including the details of an outage."""
    return f"{error}: {error.details}" if isinstance(error, Outage) else str(error)


class Terminal(HomeostatError):
    """A failure that only a change of the desired state can fix; the resource is FAILED with this reason."""


class ResourceActionRestricted(Terminal):
    """The stack's environment forbids an action (`update` or `replace`) that a resource would need."""

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} is restricted for resource.")


class NotSupported(Terminal):
    """A change that the type of the resource does not support."""


class NotFound(Terminal):
    """The thing behind a resource does not exist."""


class Uncertain(HomeostatError):
    """A request may or may not have been carried out; observe before acting again.

    For `late_s` seconds after the cloud answers again the request may still be carried out. Until then, an object that
    an observation does not find may yet appear.
    """

    def __init__(self, message: str, late_s: float = 0.0) -> None:
        self.late_s = late_s
        super().__init__(message)


class Superseded(HomeostatError):
    """A newer owner or revision has taken over; the work is dropped without an error."""


class Bug(HomeostatError):
    """A broken internal invariant: the affected shard or row is set aside, and all else continues."""
