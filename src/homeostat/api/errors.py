"""Error responses in the format of the API at the request's path.

Requests to the CloudFormation API get its XML or JSON errors, all other requests get faults of the Orchestration API,
in the Clustering API without a traceback.
"""

import re
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Scope

from homeostat.api.cloudformation import responses
from homeostat.api.cloudformation.errors import Refused, refused
from homeostat.api.http import faults
from homeostat.model.errors import Rejected, TooManyRequests, Transient

CLOUDFORMATION = ("/v1", "/v1/")
"""Paths of the CloudFormation API, which authenticates its callers."""
CLUSTERING = "/clustering/v1/"
"""Beginning of the paths of the Clustering API."""
_SIGNALS = re.compile(r"/v1/(waitcondition|signal)/arn:openstack:heat::")
"""Signed paths whose errors also have the format of the CloudFormation API."""


def rejected(scope: Scope, error: Rejected, challenge: str = "") -> Response:
    """Return the response for a rejected request.

    Args:
        challenge: Value of `WWW-Authenticate` for a 401; "" omits the header.
    """
    if _of_cloudformation(scope):
        answer = _cloudformation_error(scope, refused(error))
    else:
        answer = faults.rejected(error, challenge, traceback=not is_clustering(scope["path"]))
    if isinstance(error, TooManyRequests):
        answer.headers.update(error.headers)
    return answer


def transient(scope: Scope, error: Transient) -> Response:
    """Return the response for a request that can be retried later."""
    if _of_cloudformation(scope):
        return _cloudformation_error(scope, refused(error))
    return faults.transient(error, traceback=not is_clustering(scope["path"]))


def unexpected(scope: Scope) -> Response:
    """Return the response for an internal error, without details."""
    if _of_cloudformation(scope):
        return _cloudformation_error(scope, Refused("InternalFailure"))
    return faults.unexpected(traceback=not is_clustering(scope["path"]))


def is_clustering(path: str) -> bool:
    """Return whether a path is a path of the Clustering API for authenticated callers."""
    return path.startswith(CLUSTERING)


def _of_cloudformation(scope: Scope) -> bool:
    return scope["path"] in CLOUDFORMATION or _SIGNALS.match(scope["path"]) is not None


def _cloudformation_error(scope: Scope, error: Refused) -> Response:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return responses.error(error, as_json=query.get("ContentType") == ["JSON"])
