"""Errors as the API at their address tells them: faults, or errors of the CloudFormation API."""

import re
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Scope

from homeostat.api.cloudformation import responses
from homeostat.api.cloudformation.errors import Refused, refused
from homeostat.api.http import faults
from homeostat.model.errors import Rejected, TooManyRequests, Transient

CLOUDFORMATION = ("/v1", "/v1/")
"""Addresses of the CloudFormation API, which asks by itself who its callers are."""
_SIGNALS = re.compile(r"/v1/(waitcondition|signal)/arn:openstack:heat::")
"""Signed addresses of the same API."""


def rejected(scope: Scope, error: Rejected, challenge: str = "") -> Response:
    """challenge — value of WWW-Authenticate that goes with a 401."""
    answer = _told(scope, refused(error)) if _of_cloudformation(scope) else faults.rejected(error, challenge)
    if isinstance(error, TooManyRequests):
        answer.headers.update(error.headers)
    return answer


def transient(scope: Scope, error: Transient) -> Response:
    return _told(scope, refused(error)) if _of_cloudformation(scope) else faults.transient(error)


def unexpected(scope: Scope) -> Response:
    return _told(scope, Refused("InternalFailure")) if _of_cloudformation(scope) else faults.unexpected()


def _of_cloudformation(scope: Scope) -> bool:
    return scope["path"] in CLOUDFORMATION or _SIGNALS.match(scope["path"]) is not None


def _told(scope: Scope, error: Refused) -> Response:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return responses.error(error, as_json=query.get("ContentType") == ["JSON"])
