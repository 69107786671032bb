"""Policies attached to a cluster, as far as its sizes and updates follow them."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from homeostat.api.services.clusters.clusters import Begun, ClusterService, check_free
from homeostat.api.services.clusters.requester import Asking, referring
from homeostat.api.services.clusters.specs import SpecService
from homeostat.clustering import health_policy, states
from homeostat.clustering.health_policy import HEALTH
from homeostat.clustering.policies import attach_problem, binding_data, policy_kind, stored_policy
from homeostat.clustering.policy_types import BATCH, DELETION, SCALING, ZONE_PLACEMENT
from homeostat.clustering.states import ClusterAction
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.clusters import actions, bindings, living
from homeostat.store.clusters.actions import NewAction
from homeostat.store.database import Database
from homeostat.store.shards import health

CARRIED_OUT = frozenset({SCALING.name, DELETION.name, ZONE_PLACEMENT.name, BATCH.name, HEALTH.name})
"""Types of policies that this service carries out."""
_binding = schema.cluster_policy


class Bindings:
    """Attaches policies to clusters, switches them on and off, and detaches them."""

    def __init__(self, db: Database, clusters: ClusterService, policies: SpecService) -> None:
        self._db = db
        self._clusters = clusters
        self._policies = policies

    def attach(self, asking: Asking, identity: str, policy: str, *, enabled: bool) -> Begun:
        """Attach a policy; one that does not fit makes an action that has failed, as in Senlin.

        Raises:
            Rejected: ResourceNotFound; BadRequest: there is no such policy; ActionConflict.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, asking, identity)
            wanted = self._policy(tx, asking, policy)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.ATTACH_POLICY)
            bound = bindings.of_cluster(tx, cluster.id)
            inputs = {"policy_id": wanted.id, "enabled": enabled}
            if any(row.policy_id == wanted.id for row in bound):
                return self._done(tx, asking, cluster, ClusterAction.ATTACH_POLICY, inputs)
            problem = _bind(tx, cluster, bound, wanted, enabled=enabled, now=self._db.now_of(tx))
            return self._done(tx, asking, cluster, ClusterAction.ATTACH_POLICY, inputs, problem)

    def attach_first(self, tx: Connection, asking: Asking, cluster_id: str, policy: str, *, enabled: bool) -> None:
        """Attach a policy in the transaction that makes a cluster.

        Raises:
            Rejected: BadRequest: there is no such policy, or it does not fit.
        """
        cluster = tx.execute(select(schema.cluster).where(schema.cluster.c.id == cluster_id)).one()
        wanted, bound = self._policy(tx, asking, policy), bindings.of_cluster(tx, cluster_id)
        if any(row.policy_id == wanted.id for row in bound):
            raise Rejected("BadRequest", f"The policy '{policy}' is named twice.")
        problem = _bind(tx, cluster, bound, wanted, enabled=enabled, now=self._db.now_of(tx))
        if problem:
            raise Rejected("BadRequest", f"The policy '{policy}' cannot be attached: {problem}")
        self._done(tx, asking, cluster, ClusterAction.ATTACH_POLICY, {"policy_id": wanted.id, "enabled": enabled})

    def detach(self, asking: Asking, identity: str, policy: str) -> Begun:
        """Detach a policy.

        Raises:
            Rejected: ResourceNotFound; BadRequest: it is not attached; ActionConflict.
        """
        with self._db.write() as tx:
            cluster, row = self._bound(tx, asking, identity, policy, ClusterAction.DETACH_POLICY)
            tx.execute(delete(_binding).where(_binding.c.id == row.id))
            health.detach(tx, row.id, self._db.now_of(tx))
            return self._done(tx, asking, cluster, ClusterAction.DETACH_POLICY, {"policy_id": row.policy_id})

    def switch(self, asking: Asking, identity: str, policy: str, *, enabled: bool | None) -> Begun:
        """Switch a policy on or off; None leaves it as it is.

        Raises:
            Rejected: As `detach`.
        """
        with self._db.write() as tx:
            cluster, row = self._bound(tx, asking, identity, policy, ClusterAction.UPDATE_POLICY)
            if enabled is not None:
                tx.execute(update(_binding).where(_binding.c.id == row.id).values(enabled=enabled))
                health.switch(tx, row.id, enabled=enabled, now=self._db.now_of(tx))
            inputs = {"policy_id": row.policy_id, **({} if enabled is None else {"enabled": enabled})}
            return self._done(tx, asking, cluster, ClusterAction.UPDATE_POLICY, inputs)

    def _bound(
        self, tx: Connection, asking: Asking, identity: str, policy: str, action: ClusterAction
    ) -> tuple[Row[Any], Row[Any]]:
        cluster = self._clusters.get(tx, asking, identity)
        wanted = self._policy(tx, asking, policy)
        check_free(actions.settled_in(tx, cluster.id), cluster.id, action)
        for row in bindings.of_cluster(tx, cluster.id):
            if row.policy_id == wanted.id:
                return cluster, row
        message = f"The policy '{policy}' is not attached to the specified cluster '{identity}'."
        raise Rejected("BadRequest", message)

    def _policy(self, tx: Connection, asking: Asking, identity: str) -> Row[Any]:
        with referring(f"The specified policy '{identity}'"):
            return self._policies.get(tx, asking, identity)

    def _done(
        self,
        tx: Connection,
        asking: Asking,
        cluster: Row[Any],
        action: ClusterAction,
        inputs: Mapping[str, Any],
        problem: str = "",
    ) -> Begun:
        name = states.action_name(action, cluster.id)
        new = NewAction(action, name, cluster.id, cluster.id, inputs, cluster.timeout, failure=problem)
        return Begun(cluster.id, actions.add(tx, new, asking.owner, self._db.now_of(tx)))


def _bind(
    tx: Connection, cluster: Row[Any], bound: Sequence[Row[Any]], wanted: Row[Any], *, enabled: bool, now: float
) -> str:
    """Attach a policy to a cluster that has the policies `bound`; return why it does not fit, "" if it does."""
    spec = stored_policy(wanted.spec)
    profile = schema.profile
    profile_type = tx.execute(select(profile.c.type).where(profile.c.id == cluster.profile_id)).scalar_one()
    problem = attach_problem(spec, profile_type, [row.policy_type for row in bound]) or _not_carried_out(spec)
    if not problem:
        values = {
            "id": str(uuid.uuid4()),
            "cluster_id": cluster.id,
            "policy_id": wanted.id,
            "enabled": enabled,
            "priority": policy_kind(wanted.type).priority,
            "data": binding_data(spec),
        }
        tx.execute(insert(_binding).values(**values))
        if spec.type is HEALTH:
            of_group = {"stack_id": cluster.id, "name": living.GROUP, "members": True}
            check = {"id": str(uuid.uuid4()), "source": values["id"], "spec": wanted.spec, "enabled": enabled}
            health.attach(tx, {**check, **of_group}, now)
    return problem


def _not_carried_out(spec: Any) -> str:
    """Return why this service does not carry out a policy; "" if it does."""
    name = spec.type.name
    if name not in CARRIED_OUT:
        listed = ", ".join(sorted(CARRIED_OUT))
        return f"Policies of type {name} are not carried out by this version of the service; there is {listed}."
    if name == HEALTH.name:
        return health_policy.not_carried_out(health_policy.health_policy(spec))
    return ""
