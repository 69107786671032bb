"""Clusters of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from homeostat.clustering.decisions import sizes, states
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.sizes import Adjustment, Resize, Sizes
from homeostat.clustering.decisions.states import ClusterAction, ClusterStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.resources.specs import check_done, unknown
from homeostat.clustering.service.changes import ClusterChange
from homeostat.clustering.service.clusters import check_free
from homeostat.clustering.service.quotas import check_room
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.sizing import sizes_of
from homeostat.clustering.store import actions, bindings, living, parts
from homeostat.clustering.store.actions import NewAction
from homeostat.clustering.wire import clusters, views
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Rejected, Transient
from homeostat.model.status import Status
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, ProfileRow
from homeostat.store.stacks import action_begin, locks

TIMEOUT_S = 3600
UNHEALTHY = frozenset({ClusterStatus.WARNING, ClusterStatus.ERROR, ClusterStatus.CRITICAL})
OF_A_CLUSTER = ("name", "metadata", "timeout", "config")
"""Fields that an update passes to the cluster unchanged."""


class NoChange(Exception):
    """The cluster already matches its spec."""


@dataclass(frozen=True, slots=True)
class DesiredCluster:
    """The spec of a cluster in a template, parsed and with its references resolved.

    Attributes:
        fields: The fields of `OF_A_CLUSTER` that the template sets.
        profile: Row of the profile.
        sizes: Sizes of the cluster.
        policies: Id of a policy -> whether it is enabled.
    """

    fields: Mapping[str, Any]
    profile: ProfileRow
    sizes: Sizes
    policies: Mapping[str, bool]

    @property
    def stored(self) -> dict[str, Any]:
        """The part of the spec that is stored, since the cluster itself does not show it."""
        return {"desired_capacity": self.sizes.desired, "policies": list(self.policies)}


class Clusters:
    """Clusters of templates."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._all = context.services
        self._service = context.services.clusters

    def look(self, tx: Transaction, project: str, rows: Sequence[ClusterRow]) -> dict[str, Fields]:
        names = self._all.profile_names(tx, {row.profile_id for row in rows})
        ids = [row.id for row in rows]
        cluster_views = views.clusters(tx, rows, names, bindings.policy_ids(tx, ids))
        stacks, parts_of, bound = living.stacks_of(tx, ids), parts.of_clusters(tx, ids), bindings.of_clusters(tx, ids)
        objects = {}
        for cluster in cluster_views:
            id = cluster["id"]
            policies = [views.binding(row, cluster["name"], parts_of.get(id, parts.NONE)) for row in bound.get(id, ())]
            objects[id] = self._object({**cluster, "policies": policies}, stacks.get(id))
        return objects

    def _object(self, view: Mapping[str, Any], stack: living.RootStack | None) -> Fields:
        """Return the fields of a cluster for templates: after a failed action, its status is error.

        A cluster in error has `failures`, for which the next update of the template's stack converges it again.
        """
        left_out = ("data", "dependents", "domain")
        fields = {name: value for name, value in view.items() if name not in left_out}
        if view["status"] not in UNHEALTHY:
            return {**fields, "status": str(view["status"]).lower()}
        failed = stack is not None and stack.status == Status.FAILED
        status = ClusterStatus.ERROR if failed else view["status"]
        reason = stack.reason if failed and stack is not None else view["status_reason"]
        unhealthy = status != ClusterStatus.WARNING
        return {**fields, "status": str(status).lower(), "fault": reason, **({"failures": True} if unhealthy else {})}

    # -- creating ----------------------------------------------------------------------------------------------------

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        self._context.check_depth(by)
        with self._context.db.read() as tx:  # refuse early: the checks below are costly
            check_room(tx, scope)
        desired = self._wanted(scope, spec)
        size = desired.sizes
        columns = {"min_size": size.min_size, "max_size": size.max_size, "desired_capacity": size.desired}

        fields, profile = desired.fields, check_profile(desired.profile.spec)
        policies = self._all.bindings.first(scope, fields["name"], profile, desired.policies, size.desired)

        def also(tx: Transaction, id: str) -> None:
            self._all.bindings.attach_first(tx, scope, id, policies)
            keep(tx, ResourceRecord(id, id, desired.stored))

        self._service.create(
            scope,
            fields["name"],
            desired.profile,
            columns,
            fields.get("timeout") or TIMEOUT_S,
            fields.get("metadata", {}),
            fields.get("config", {}),
            self._context.check_types(scope),
            also,
            policies,
        )

    def _wanted(self, scope: RequestScope, spec: Fields) -> DesiredCluster:
        """Parse a spec, with the checks of a request body.

        Raises:
            Rejected: BadRequest.
        """
        names = clusters.NEW.keys() & spec.keys()
        fields = read({name: spec[name] for name in names}, clusters.NEW)
        size = sizes.new_sizes(fields.get("desired_capacity"), fields.get("min_size"), fields.get("max_size"))
        profile = self._all.profile(scope, fields["profile_id"])
        policies: dict[str, bool] = {}
        with self._context.db.read() as tx:
            for entry in spec.get("policies") or ():
                with referring(f"The specified policy '{entry['policy_id']}'"):
                    policy = self._all.policies.get(tx, scope, entry["policy_id"])
                if policy.id in policies:
                    raise Rejected("BadRequest", f"The policy '{entry['policy_id']}' is named twice.")
                policies[policy.id] = entry["enabled"]
        return DesiredCluster({name: fields[name] for name in OF_A_CLUSTER if name in fields}, profile, size, policies)

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Change a cluster to match a spec: its policies at once, then the rest with one revision of its stack.

        Nodes with a lifecycle hook are removed after the hook. A cluster in ERROR that already matches its spec is
        converged.

        Raises:
            Transient: Nodes are removed in a second step, after this one.
        """
        scope = self._context.scope(by)
        desired = self._wanted(scope, spec)
        # Policies first: the change of the size below has to follow the new ones.
        self._bind(scope, id, desired, before)
        later: list[ClusterChange] = []

        def also(tx: Transaction, _: str) -> None:
            # Stored as done only by the last step: after a crash the resource is changed again from here.
            capacity = before.get("desired_capacity") if later else desired.sizes.desired
            keep(tx, ResourceRecord(id, id, {**desired.stored, "desired_capacity": capacity}))

        def build(tx: Transaction, row: ClusterRow) -> ClusterChange:
            changes = self._changes(tx, row, desired, before)
            later[:] = changes[1:]
            return changes[0]

        try:
            self._service.change(scope, id, build, self._context.check_types(scope), also)
        except NoChange:
            with self._context.db.write() as tx:
                also(tx, id)
        if later:
            raise Transient("its nodes go once the rest is done", retry_after_s=1.0)
        self._repair(scope, id)

    def _bind(self, scope: RequestScope, id: str, desired: DesiredCluster, before: Fields) -> None:
        with self._context.db.read() as tx:
            cluster = self._service.get(tx, scope, id)
            bound = {row.policy_id: row.enabled for row in bindings.of_cluster(tx, cluster.id)}
        check_types = self._context.check_types(scope)
        for policy in before.get("policies") or ():
            if policy in bound and policy not in desired.policies:
                self._all.bindings.detach(scope, id, policy, check_types)
        for policy, enabled in desired.policies.items():
            if policy not in bound:
                check_done(self._context, self._all.bindings.attach(scope, id, policy, check_types, enabled=enabled))
            elif bound[policy] != enabled:
                self._all.bindings.switch(scope, id, policy, check_types, enabled=enabled)

    def _changes(
        self, tx: Transaction, row: ClusterRow, desired: DesiredCluster, before: Fields
    ) -> list[ClusterChange]:
        """Return the changes that make a cluster match its spec: a change, or a first and a later change.

        Raises:
            NoChange: The cluster matches the spec already.
            Rejected: BadRequest.
        """
        updated = self._updated(tx, row, desired)
        resized = self._resized(tx, row, desired, before)
        if updated is None and resized is None:
            raise NoChange
        if updated is None or resized is None or resized.hooked:
            return [change for change in (updated, resized) if change is not None]
        both = replace(
            updated,
            inputs={**resized.inputs, **updated.inputs},
            columns={**resized.columns, **updated.columns},
            added=resized.added,
            leaving=resized.leaving,
            released=resized.released,
            placements=resized.placements,
            at_once=updated.at_once and resized.at_once,
        )
        return [both]

    def _updated(self, tx: Transaction, row: ClusterRow, desired: DesiredCluster) -> ClusterChange | None:
        """Return the change of fields and profile; None if they match."""
        differs = any(getattr(row, name) != value for name, value in desired.fields.items())
        if not differs and row.profile_id == desired.profile.id:
            return None
        change = self._service.update(tx, row, desired.fields, desired.profile)
        return self._all.sizing.batches(tx, row, change)

    def _resized(
        self, tx: Transaction, row: ClusterRow, desired_cluster: DesiredCluster, before: Fields
    ) -> ClusterChange | None:
        """Return the change of sizes; None if they match.

        If the desired capacity in the template has not changed, the cluster keeps its current capacity, within the
        limits: it may have been scaled since.
        """
        size, now = desired_cluster.sizes, sizes_of(row)
        desired = size.desired
        if before.get("desired_capacity") in (desired, None):
            high = sizes.NODES_MAX if size.max_size < 0 else size.max_size
            desired = max(size.min_size, min(now.desired, high))
        if Sizes(size.min_size, size.max_size, desired) == now:
            return None
        request = Resize(Adjustment.EXACT, desired, size.min_size, size.max_size)
        change = self._all.sizing.resize(tx, row, request)
        return replace(change, at_once=not (change.added or change.leaving or change.released))

    def _repair(self, scope: RequestScope, id: str) -> None:
        """Converge a cluster in error, unless an action on it is in progress."""
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
            busy = actions.going_on_in(tx, row.id)
            unhealthy = not busy and self.look(tx, row.project, [row])[row.id].get("failures")
        if not unhealthy:
            return
        name = states.action_name(ClusterAction.RECOVER, row.id)
        with self._context.db.write() as tx:
            stack = locks.changeable(tx, row.id)
            check_free(actions.settled_in(tx, row.id), row.id, ClusterAction.RECOVER)
            now = tx.now()
            action_begin.converge(tx, stack, now, self._context.timeout_s)
            new = NewAction(ClusterAction.RECOVER, name, row.id, row.id, {}, row.timeout, row.id)
            actions.add(tx, new, scope.owner, now)

    # -- the rest ----------------------------------------------------------------------------------------------------

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        desired = self._wanted(scope, spec)
        with self._context.db.write() as tx:
            cluster_id = self._service.get(tx, scope, id).id
            bound = {row.policy_id for row in bindings.of_cluster(tx, cluster_id)}
            asked = {**desired.stored, "policies": [policy for policy in desired.policies if policy in bound]}
            keep(tx, ResourceRecord(cluster_id, cluster_id, asked))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None:
        self._service.delete(self._context.scope(by), id, force=True, also=lambda tx, _: forget(tx))
