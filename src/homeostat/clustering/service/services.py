"""The services of the Clustering API together."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import select

from homeostat.clustering.decisions.definitions import invalid_spec
from homeostat.clustering.decisions.policies import Intervals, check_policy
from homeostat.clustering.decisions.profiles import check_named_profile, failed_in_creating
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.service import specs
from homeostat.clustering.service.adopting import Adopter
from homeostat.clustering.service.bindings import Bindings
from homeostat.clustering.service.cancelling import ActionService
from homeostat.clustering.service.clusters import ClusterService
from homeostat.clustering.service.hook_waits import LifecycleHooks
from homeostat.clustering.service.message_receivers import MessageReceivers
from homeostat.clustering.service.nodes import NodeService
from homeostat.clustering.service.operations import OperationService
from homeostat.clustering.service.policy_lookups import forbidden_url
from homeostat.clustering.service.receivers import ReceiverService
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.sizing import Sizing
from homeostat.clustering.service.stack_requests import ClusterFacts, stack_request
from homeostat.model.errors import Rejected
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ProfileRow


class Clustering:
    """The services behind the routes of the Clustering API; each attribute's class documents it."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stacks = stack_service
        self.profiles = specs.profiles(db, self.check_profile)
        self.policies = specs.policies(db, self.check_policy)
        self.clusters = ClusterService(db, stack_service)
        self.sizing = Sizing()
        self.nodes = NodeService(db, stack_service, self.clusters)
        self.adopter = Adopter(db, stack_service, self.profiles)
        self.hook_waits = LifecycleHooks(db, self.clusters)
        self.actions = ActionService(db)
        self.receivers = ReceiverService(db, self.clusters, MessageReceivers(db, stack_service))
        self.bindings = Bindings(db, self.clusters, self.policies, stack_service.prerequisites, stack_service.outbound)
        self.operations = OperationService(db, stack_service, self.clusters, self.nodes)

    def check_profile(self, name: str, spec: Any, project: str) -> Spec:
        """Check the spec of a profile, also against the clouds of the project.

        Args:
            name: Name of the profile; "" if the spec is only validated, and no profile is stored.

        Raises:
            Rejected: InvalidSpec, ResourceNotFound.
            Transient: A cloud does not answer.
        """
        checked = check_named_profile(name, spec)
        try:
            self._stacks.check_new(project, stack_request(ClusterFacts("", "", "", checked, 1)))
        except Rejected as error:
            raise Rejected("InvalidSpec", failed_in_creating(name) + error.plain, remedy=error.remedy) from error
        return checked

    def check_policy(self, name: str, spec: Any, project: str) -> Spec:
        """Check the spec of a policy, also that the service may call the URLs in it.

        Raises:
            Rejected: InvalidSpec, ESchema, ResourceNotFound.
        """
        checked = check_policy(spec, Intervals(self._stacks.quotas.health_interval_min))
        forbidden = forbidden_url(checked, self._stacks.outbound)
        if forbidden is not None:
            problem, path = forbidden
            raise invalid_spec(problem, "properties", *path)
        return checked

    def profile(self, scope: RequestScope, identity: str) -> ProfileRow:
        """Return the row of a profile that a request refers to.

        Raises:
            Rejected: BadRequest.
        """
        with self._db.read() as tx, referring(f"The specified profile '{identity}'"):
            return self.profiles.get(tx, scope, identity)

    def profile_names(self, tx: Transaction, ids: Collection[str]) -> dict[str, str]:
        """Return the names of profiles, by id."""
        table = schema.profile
        return {row.id: row.name for row in tx.execute(select(table.c.id, table.c.name).where(table.c.id.in_(ids)))}
