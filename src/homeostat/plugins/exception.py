"""Errors that handlers raise, with the names and arguments of Heat's.

`UpdateReplace` replaces the resource, `PollDelay` delays the next poll, `ResourceInError` during a creation deletes
and recreates, `PhysicalResourceExists` repeats a deletion, `EntityNotFound` and `NotFound` during an observation mean
missing. Every other error fails the resource, with its text as the reason.
"""

from typing import Any


class HeatException(Exception):
    """Base class of most errors.

    The names in `msg_fmt` are passed as keywords; an `error_code` is put before the message.
    """

    msg_fmt = "An unknown exception occurred."
    error_code: str | None = None

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs
        self.error_code = kwargs.get("error_code", self.error_code)
        try:
            self.message = self.msg_fmt % kwargs
        except KeyError as error:  # a plug-in that forgets a keyword still gets its error reported
            self.message = f"{self.msg_fmt} (without {error}: {kwargs})"
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"HEAT-{self.error_code} {self.message}" if self.error_code else str(self.message)


class Error(HeatException):
    msg_fmt = "%(message)s"

    def __init__(self, msg: Any) -> None:
        super().__init__(message=msg)


class Invalid(HeatException):
    msg_fmt = "Data supplied was not valid: %(reason)s"


class NotFound(HeatException):
    def __init__(self, msg_fmt: str = "Not found", **kwargs: Any) -> None:
        self.msg_fmt = msg_fmt
        super().__init__(**kwargs)


class EntityNotFound(HeatException):
    msg_fmt = "The %(entity)s (%(name)s) could not be found."

    def __init__(self, entity: Any = None, name: Any = None, **kwargs: Any) -> None:
        super().__init__(entity=entity, name=name, **kwargs)


class Forbidden(HeatException):
    msg_fmt = "You are not authorized to use %(action)s."

    def __init__(self, action: str = "this action") -> None:
        super().__init__(action=action)


class NotAuthorized(Forbidden):
    msg_fmt = "This action is not allowed."

    def __init__(self) -> None:
        super().__init__(action="this action")


class NotSupported(HeatException):
    msg_fmt = "%(feature)s is not supported."


class InvalidTemplateAttribute(HeatException):
    msg_fmt = "The Referenced Attribute (%(resource)s %(key)s) is incorrect."


class InvalidTemplateReference(HeatException):
    msg_fmt = 'There is no resource "%(resource)s", to which %(key)s refers.'


class InvalidSchemaError(HeatException):
    msg_fmt = "%(message)s"


class UserParameterMissing(HeatException):
    msg_fmt = "The parameter %(key)s has no value."


class MissingCredentialError(HeatException):
    msg_fmt = "This credential is required, and missing: %(required)s"


class AuthorizationFailure(HeatException):
    msg_fmt = "The login failed.%(failure_reason)s"

    def __init__(self, failure_reason: str = "") -> None:
        super().__init__(failure_reason=failure_reason and f" {failure_reason}")


class NotAuthenticated(HeatException):
    msg_fmt = "Nobody is logged in."


class StackValidationFailed(HeatException):
    """A template or a value is not valid.

    Args:
        error: The class of the error, or the error itself if no message is given.
        path: The place, as names and indices.
        resource: Ignored.
        **kwargs: Further values, as for the base class.
    """

    def __init__(
        self, error: Any = None, path: Any = None, message: Any = None, resource: Any = None, **kwargs: Any
    ) -> None:
        self.error = str(error) if error is not None else ""
        self.path = list(path or ())
        self.error_message = str(message if message is not None else error if error is not None else "")
        self.msg_fmt = "%(message)s"
        super().__init__(message=self.error_message, **kwargs)


class ResourcePropertyConflict(StackValidationFailed):
    def __init__(self, *args: str, **kwargs: Any) -> None:
        names = ", ".join(args) or ", ".join(kwargs)
        super().__init__(message=f"Cannot define the following properties at the same time: {names}.")


class PropertyUnspecifiedError(StackValidationFailed):
    def __init__(self, *args: str, **kwargs: Any) -> None:
        names = ", ".join(args) or ", ".join(kwargs)
        super().__init__(message=f"At least one of the following properties must be specified: {names}.")


class ResourcePropertyDependency(StackValidationFailed):
    def __init__(self, prop1: str, prop2: str) -> None:
        super().__init__(message=f"{prop1} cannot be specified without {prop2}.")


class ResourcePropertyValueDependency(StackValidationFailed):
    def __init__(self, prop1: str, prop2: str, value: Any) -> None:
        super().__init__(message=f"{prop1} property should only be specified for {prop2} with value {value}.")


class PhysicalResourceNameAmbiguity(HeatException):
    msg_fmt = "Multiple physical resources were found with name (%(name)s)."


class PhysicalResourceIDAmbiguity(HeatException):
    msg_fmt = "Several things have the id %(phys_id)s."


class PhysicalResourceExists(HeatException):
    msg_fmt = "The physical resource for (%(name)s) exists."


class ResourceActionNotSupported(HeatException):
    msg_fmt = "%(action)s is not supported for resource."


class ResourceActionRestricted(HeatException):
    msg_fmt = "%(action)s is not allowed for this resource."


class ResourceNotFound(EntityNotFound):
    msg_fmt = "There is no resource %(resource_name)s in the stack %(stack_name)s."


class ResourceTypeUnavailable(HeatException):
    msg_fmt = "The type %(resource_type)s needs %(service_name)s, which is not there: %(reason)s"


class ClientNotAvailable(HeatException):
    msg_fmt = "There is no client %(client_name)s."


class InvalidServiceVersion(HeatException):
    msg_fmt = "The service %(service)s has no version %(version)s."


class RequestLimitExceeded(HeatException):
    msg_fmt = "A limit of the request is exceeded: %(message)s"


class StackResourceLimitExceeded(HeatException):
    msg_fmt = "The stack has too many resources."


class EgressRuleNotAllowed(HeatException):
    msg_fmt = "Rules for what leaves need a network of Neutron."


class InterfaceAttachFailed(HeatException):
    msg_fmt = "The port %(port)s could not be attached to the server %(server)s."


class InterfaceDetachFailed(HeatException):
    msg_fmt = "The port %(port)s could not be detached from the server %(server)s."


class UnableToAutoAllocateNetwork(HeatException):
    msg_fmt = "No network could be allocated: %(message)s"


class ResourceNotAvailable(HeatException):
    msg_fmt = "The Resource (%(resource_name)s) is not available."


class ResourceInError(HeatException):
    msg_fmt = 'Went to status %(resource_status)s due to "%(status_reason)s"'

    def __init__(self, resource_status: Any = "Unknown", status_reason: Any = "Unknown", **kwargs: Any) -> None:
        super().__init__(resource_status=resource_status, status_reason=status_reason, **kwargs)


class ResourceUnknownStatus(HeatException):
    msg_fmt = '%(result)s - Unknown status %(resource_status)s due to "%(status_reason)s"'

    def __init__(
        self, result: Any = "Resource failed", resource_status: Any = "", status_reason: Any = "Unknown", **kwargs: Any
    ) -> None:
        super().__init__(result=result, resource_status=resource_status, status_reason=status_reason, **kwargs)


class ResourceFailure(HeatException):
    """An action of a resource has failed.

    Args:
        exception_or_error: The error, or its text.
        resource: The resource, which the message names.
        action: The action: CREATE, UPDATE and so on.
    """

    def __init__(self, exception_or_error: Any, resource: Any = None, action: str | None = None) -> None:
        self.exc = exception_or_error if isinstance(exception_or_error, Exception) else None
        self.action = action
        self.msg_fmt = "%(message)s"
        kind = f"{type(self.exc).__name__}: " if self.exc is not None else ""
        place = f"resources.{resource.name}: " if resource is not None else ""
        super().__init__(message=f"{kind}{place}{exception_or_error}")


class UpdateReplace(Exception):
    """The change cannot be made in place: a replacement is created, then the old object is deleted."""

    def __init__(self, resource_name: str = "Unknown") -> None:
        super().__init__(f"The Resource {resource_name} requires replacement.")


class UpdateInProgress(Exception):
    """Another request is updating the object: the action is retried later."""

    def __init__(self, resource_name: str = "Unknown") -> None:
        super().__init__(f"The resource {resource_name} is already being updated.")


class NoActionRequired(Exception):
    """A signal requires no action, so no event is stored for it."""

    def __init__(self, res_name: str = "Unknown", reason: str = "") -> None:
        super().__init__(f"The resource {res_name} needs no action: {reason}")


class PollDelay(Exception):
    """Raised by `check_…_complete`: the action is not complete; the next poll comes after `period` seconds."""

    def __init__(self, period: float) -> None:
        self.period = period
        super().__init__(f"not to be polled again for {period} s")
