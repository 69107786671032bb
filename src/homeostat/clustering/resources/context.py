"""Dependencies of the operations on `OS::Senlin::*` resources, and the rights of their requester."""

from dataclasses import dataclass
from functools import partial

from homeostat.api.access.enforcer import Policy
from homeostat.clustering.resources.records import Requester
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.services import Clustering
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.model.limits import too_deep
from homeostat.services.pipeline.request import CheckTypes
from homeostat.store.database import Database


@dataclass(frozen=True, slots=True)
class ResourceContext:
    """The services and limits for operations on objects of templates.

    Attributes:
        base: URL of the Clustering API with its version, for servers and alarms.
        policy: The access rules; None if every user may do everything.
        depth_max: Maximum of levels of nested stacks, including nesting by clusters.
        timeout_s: Default time limit of an action of a stack.
    """

    db: Database
    services: Clustering
    base: str
    policy: Policy | None
    depth_max: int
    timeout_s: float

    def scope(self, by: Requester) -> RequestScope:
        """Return the scope of the owner of the stack, with the rights of every user of the project."""
        caller = Caller(user=by.user, project=by.project, user_id=by.user_id or None)
        return RequestScope(caller, by.project)

    def reading(self, project: str) -> RequestScope:
        """Return the scope for reading objects of a project."""
        return RequestScope(Caller(project=project), project)

    def check_types(self, scope: RequestScope) -> CheckTypes | None:
        """Return the check of types without any roles of the user: only requests to the API have roles."""
        if self.policy is None:
            return None
        return partial(self.policy.check_types, caller=scope.caller, project=scope.project)

    def check_depth(self, by: Requester) -> None:
        """Check that a further stack may be nested in the stack of a resource.

        Raises:
            Rejected: RequestLimitExceeded.
        """
        if by.depth > self.depth_max:
            raise Rejected("RequestLimitExceeded", too_deep(self.depth_max).detail)
