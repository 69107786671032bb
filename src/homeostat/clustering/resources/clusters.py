"""Clusters of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from homeostat.clustering.decisions import sizes, states
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.sizes import Adjustment, Resize, Sizes
from homeostat.clustering.decisions.states import ClusterAction, ClusterStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.resources.specs import check_done, unknown
from homeostat.clustering.service.clusters import check_free
from homeostat.clustering.service.plans import ClusterChange
from homeostat.clustering.service.quotas import check_room
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.sizing import sizes_of
from homeostat.clustering.store import actions, bindings, living, parts
from homeostat.clustering.store.actions import NewAction
from homeostat.clustering.wire import clusters, views
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Rejected, Transient
from homeostat.model.status import Status
from homeostat.store.schema.rows import ClusterRow, ProfileRow
from homeostat.store.stacks import action_begin, locks

TIMEOUT_S = 3600
UNHEALTHY = frozenset({ClusterStatus.WARNING, ClusterStatus.ERROR, ClusterStatus.CRITICAL})
OF_A_CLUSTER = ("name", "metadata", "timeout", "config")
"""Fields that an update of a cluster takes as they are."""


class NoChange(Exception):
    """The cluster already matches its spec."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The spec of a cluster in a template, parsed and with its references resolved.

    Attributes:
        given: The fields of `OF_A_CLUSTER` that the template sets.
        profile: Row of the profile.
        sizes: Its sizes.
        policies: Id of a policy -> whether it is enabled.
    """

    given: Mapping[str, Any]
    profile: ProfileRow
    sizes: Sizes
    policies: Mapping[str, bool]

    @property
    def asked(self) -> dict[str, Any]:
        """The part of the spec that is stored, since the cluster itself does not show it."""
        return {"desired_capacity": self.sizes.desired, "policies": list(self.policies)}


class Clusters:
    """Clusters of templates."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._all = context.services
        self._service = context.services.clusters

    def look(self, tx: Connection, project: str, rows: Sequence[ClusterRow]) -> dict[str, Fields]:
        names = self._all.profile_names(tx, {row.profile_id for row in rows})
        ids = [row.id for row in rows]
        shown = views.clusters(tx, rows, names, bindings.policy_ids(tx, ids))
        stacks, made, bound = living.stacks_of(tx, ids), parts.of_clusters(tx, ids), bindings.of_clusters(tx, ids)
        found = {}
        for each in shown:
            id = each["id"]
            policies = [views.binding(row, each["name"], made.get(id, parts.NONE)) for row in bound.get(id, ())]
            found[id] = self._object({**each, "policies": policies}, stacks.get(id))
        return found

    def _object(self, shown: Mapping[str, Any], of: living.RootStack | None) -> Fields:
        """Return a cluster as templates see it: one whose last action has failed is in error.

        One in error has `failures`, for which the next update of its stack tries it again.
        """
        left_out = ("data", "dependents", "domain")
        found = {name: value for name, value in shown.items() if name not in left_out}
        if shown["status"] not in UNHEALTHY:
            return {**found, "status": str(shown["status"]).lower()}
        failed = of is not None and of.status == Status.FAILED
        status = ClusterStatus.ERROR if failed else shown["status"]
        reason = of.reason if failed and of is not None else shown["status_reason"]
        unhealthy = status != ClusterStatus.WARNING
        return {**found, "status": str(status).lower(), "fault": reason, **({"failures": True} if unhealthy else {})}

    # -- making ------------------------------------------------------------------------------------------------------

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        self._context.check_depth(by)
        with self._context.db.read() as tx:  # an early refusal spares the work of checking
            check_room(tx, scope)
        wanted = self._wanted(scope, spec)
        size = wanted.sizes
        columns = {"min_size": size.min_size, "max_size": size.max_size, "desired_capacity": size.desired}

        given, profile = wanted.given, check_profile(wanted.profile.spec)
        policies = self._all.bindings.first(scope, given["name"], profile, wanted.policies, size.desired)

        def also(tx: Connection, id: str) -> None:
            self._all.bindings.attach_first(tx, scope, id, policies)
            keep(tx, ResourceRecord(id, id, wanted.asked))

        self._service.create(
            scope,
            given["name"],
            wanted.profile,
            columns,
            given.get("timeout") or TIMEOUT_S,
            given.get("metadata", {}),
            given.get("config", {}),
            self._context.check_types(scope),
            also,
            policies,
        )

    def _wanted(self, scope: RequestScope, spec: Fields) -> Wanted:
        """Return a spec, checked like the body of a request.

        Raises:
            Rejected: BadRequest.
        """
        names = clusters.NEW.keys() & spec.keys()
        given = read({name: spec[name] for name in names}, clusters.NEW)
        size = sizes.new_sizes(given.get("desired_capacity"), given.get("min_size"), given.get("max_size"))
        profile = self._all.profile(scope, given["profile_id"])
        found: dict[str, bool] = {}
        with self._context.db.read() as tx:
            for each in spec.get("policies") or ():
                with referring(f"The specified policy '{each['policy_id']}'"):
                    policy = self._all.policies.get(tx, scope, each["policy_id"])
                if policy.id in found:
                    raise Rejected("BadRequest", f"The policy '{each['policy_id']}' is named twice.")
                found[policy.id] = each["enabled"]
        return Wanted({name: given[name] for name in OF_A_CLUSTER if name in given}, profile, size, found)

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Change a cluster to match a spec: its policies at once, then the rest with one revision of its stack.

        Nodes with a lifecycle hook are removed after the hook. A cluster in ERROR that already matches its spec is
        converged.

        Raises:
            Transient: Nodes are removed in a second step, after this one.
        """
        scope = self._context.scope(by)
        wanted = self._wanted(scope, spec)
        self._bind(scope, id, wanted, before)
        later: list[ClusterChange] = []

        def also(tx: Connection, _: str) -> None:
            capacity = before.get("desired_capacity") if later else wanted.sizes.desired
            keep(tx, ResourceRecord(id, id, {**wanted.asked, "desired_capacity": capacity}))

        def planner(tx: Connection, row: ClusterRow) -> ClusterChange:
            plans = self._plans(tx, row, wanted, before)
            later[:] = plans[1:]
            return plans[0]

        try:
            self._service.change(scope, id, planner, self._context.check_types(scope), also)
        except NoChange:
            with self._context.db.write() as tx:
                also(tx, id)
        if later:
            raise Transient("its nodes go once the rest is done", retry_after_s=1.0)
        self._repair(scope, id)

    def _bind(self, scope: RequestScope, id: str, wanted: Wanted, before: Fields) -> None:
        with self._context.db.read() as tx:
            cluster = self._service.get(tx, scope, id)
            bound = {row.policy_id: row.enabled for row in bindings.of_cluster(tx, cluster.id)}
        check_types = self._context.check_types(scope)
        for policy in before.get("policies") or ():
            if policy in bound and policy not in wanted.policies:
                self._all.bindings.detach(scope, id, policy, check_types)
        for policy, enabled in wanted.policies.items():
            if policy not in bound:
                check_done(self._context, self._all.bindings.attach(scope, id, policy, check_types, enabled=enabled))
            elif bound[policy] != enabled:
                self._all.bindings.switch(scope, id, policy, check_types, enabled=enabled)

    def _plans(self, tx: Connection, row: ClusterRow, wanted: Wanted, before: Fields) -> list[ClusterChange]:
        """Return what brings a cluster to what is wanted: one plan, or one and another that comes later.

        Raises:
            NoChange: There is nothing to do.
            Rejected: BadRequest.
        """
        updated = self._updated(tx, row, wanted)
        resized = self._resized(tx, row, wanted, before)
        if updated is None and resized is None:
            raise NoChange
        if updated is None or resized is None or resized.hooked:
            return [each for each in (updated, resized) if each is not None]
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

    def _updated(self, tx: Connection, row: ClusterRow, wanted: Wanted) -> ClusterChange | None:
        """Return the plan for what an update changes; None where it changes nothing."""
        differs = any(getattr(row, name) != value for name, value in wanted.given.items())
        if not differs and row.profile_id == wanted.profile.id:
            return None
        plan = self._service.update(tx, row, wanted.given, wanted.profile)
        return self._all.sizing.batches(tx, row, plan)

    def _resized(self, tx: Connection, row: ClusterRow, wanted: Wanted, before: Fields) -> ClusterChange | None:
        """Return the plan for other sizes; None for the same ones.

        A template that goes on wanting as many nodes as before leaves the cluster what has scaled it since, within its
        limits.
        """
        size, now = wanted.sizes, sizes_of(row)
        desired = size.desired
        if before.get("desired_capacity") in (desired, None):
            high = sizes.NODES_MAX if size.max_size < 0 else size.max_size
            desired = max(size.min_size, min(now.desired, high))
        if Sizes(size.min_size, size.max_size, desired) == now:
            return None
        request = Resize(Adjustment.EXACT, desired, size.min_size, size.max_size)
        plan = self._all.sizing.resize(tx, row, request)
        return replace(plan, at_once=not (plan.added or plan.leaving or plan.released))

    def _repair(self, scope: RequestScope, id: str) -> None:
        """Try again what has failed of a cluster, and bring back what is lost, unless something goes on in it."""
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
            busy = actions.going_on_in(tx, row.id)
            unhealthy = not busy and self.look(tx, row.project, [row])[row.id].get("failures")
        if not unhealthy:
            return
        name = states.action_name(ClusterAction.RECOVER, row.id)
        with self._context.db.write() as tx:
            stack = locks.changeable(self._context.db, tx, row.id)
            check_free(actions.settled_in(tx, row.id), row.id, ClusterAction.RECOVER)
            now = self._context.db.now_of(tx)
            action_begin.converge(self._context.db, tx, stack, now, self._context.timeout_s)
            new = NewAction(ClusterAction.RECOVER, name, row.id, row.id, {}, row.timeout, row.id)
            actions.add(tx, new, scope.owner, now)

    # -- the rest ----------------------------------------------------------------------------------------------------

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        wanted = self._wanted(scope, spec)
        with self._context.db.write() as tx:
            there = self._service.get(tx, scope, id).id
            bound = {row.policy_id for row in bindings.of_cluster(tx, there)}
            asked = {**wanted.asked, "policies": [each for each in wanted.policies if each in bound]}
            keep(tx, ResourceRecord(there, there, asked))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        self._service.delete(self._context.scope(by), id, force=True, also=lambda tx, _: forget(tx))
