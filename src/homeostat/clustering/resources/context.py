"""On whose behalf the Clustering API acts for a resource of a template."""

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
    """What the things of templates are made and changed with.

    Attributes:
        db: The database.
        services: The services of the Clustering API.
        base: URL of the Clustering API with its version, as servers and alarms reach it.
        policy: The access rules; None where every user may do everything.
        depth_max: Levels of stacks that are nested in one another, also by way of clusters.
        timeout_s: Seconds that an action of a stack may take, where the stack does not say it.
    """

    db: Database
    services: Clustering
    base: str
    policy: Policy | None
    depth_max: int
    timeout_s: float

    def scope(self, by: Requester) -> RequestScope:
        """Return who asks: the owner of the stack, with the rights that each user of the project has."""
        caller = Caller(user=by.user, project=by.project, user_id=by.user_id or None)
        return RequestScope(caller, by.project)

    def reading(self, project: str) -> RequestScope:
        """Return who looks at the things of a project."""
        return RequestScope(Caller(project=project), project)

    def check_types(self, scope: RequestScope) -> CheckTypes | None:
        """Return what refuses types that not every user of the project may use: roles are known of requests alone."""
        if self.policy is None:
            return None
        return partial(self.policy.check_types, caller=scope.caller, project=scope.project)

    def check_depth(self, by: Requester) -> None:
        """Check that one more stack may be nested in the stack of a resource.

        Raises:
            Rejected: RequestLimitExceeded.
        """
        if by.depth > self.depth_max:
            raise Rejected("RequestLimitExceeded", too_deep(self.depth_max).detail)
