"""Policies attached to clusters: some put things into the stack of a cluster, others are rules for its requests."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from homeostat.clouds.outbound import Outbound
from homeostat.clouds.port import Cloud
from homeostat.clustering.decisions import health_policy, states
from homeostat.clustering.decisions.attached import Attached
from homeostat.clustering.decisions.definitions import Terms
from homeostat.clustering.decisions.health_policy import HEALTH
from homeostat.clustering.decisions.placement import GROUP
from homeostat.clustering.decisions.policies import attach_problem, binding_data, policy_kind, stored_policy
from homeostat.clustering.decisions.policy_types import AFFINITY, LOAD_BALANCING, REGION_PLACEMENT
from homeostat.clustering.decisions.profiles import check_profile, define, region_of, region_problem
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import ClusterAction
from homeostat.clustering.service import attached_policies, policy_lookups
from homeostat.clustering.service.asked_urls import unaskable_url
from homeostat.clustering.service.clusters import ClusterService
from homeostat.clustering.service.plans import ClusterChange, Outdated, PolicyChange, StartedAction
from homeostat.clustering.service.policy_lookups import Found
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.specs import SpecService
from homeostat.clustering.store import actions, bindings
from homeostat.clustering.store.actions import NewAction
from homeostat.model.errors import Rejected
from homeostat.model.health_policy import Preserved
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.pipeline.request import CheckTypes
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.schema.rows import ClusterRow, PolicyRow

IN_STACK = frozenset({LOAD_BALANCING.name, AFFINITY.name})
"""Types of policies that put things into the stack of a cluster: attaching one is a revision of it."""


class Bindings:
    """Attaches policies to clusters, switches them on and off, and detaches them."""

    def __init__(
        self,
        db: Database,
        clusters: ClusterService,
        policies: SpecService[PolicyRow],
        prerequisites: Prerequisites,
        outbound: Outbound,
    ) -> None:
        self._db, self._outbound = db, outbound
        self._clusters = clusters
        self._policies = policies
        self._prerequisites = prerequisites

    def attach(
        self,
        scope: RequestScope,
        identity: str,
        policy: str,
        check_types: CheckTypes | None = None,
        *,
        enabled: bool,
    ) -> StartedAction:
        """Attach a policy; one that does not fit makes an action that has failed, as in Senlin.

        Raises:
            Rejected: ResourceNotFound; BadRequest: there is no such policy, or it asks what the service may not ask;
                ActionConflict; what it puts into the stack of the cluster is not as it should be.
            Transient: A cloud does not answer.
        """
        with self._db.read() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            wanted = self._policy(tx, scope, policy)
            profile = _profile(tx, cluster)
        spec = stored_policy(wanted.spec)
        self._check_urls(wanted.name, spec)
        # A policy never changes, and what it names is looked up again when its things are made.
        found = policy_lookups.look_up(self._cloud(cluster.project), spec, profile)

        def planner(tx: Connection, row: ClusterRow) -> ClusterChange:
            self._policy(tx, scope, wanted.id)
            return _attaching(tx, self._db.now_of(tx), row, wanted, spec, found, enabled=enabled)

        return self._clusters.change(scope, cluster.id, planner, check_types)

    def first(
        self, scope: RequestScope, name: str, profile: Spec, policies: Mapping[str, bool], count: int
    ) -> list[Attached]:
        """Return policies as they are to be attached to a cluster that is about to be made.

        Args:
            scope: Who asks.
            name: Name of the cluster.
            profile: Its profile, checked.
            policies: Policies, and whether each is to act.
            count: Nodes that it has at first.

        Raises:
            Rejected: BadRequest: there is no such policy, or it does not fit.
            Transient: A cloud does not answer.
        """
        with self._db.read() as tx:
            rows = [(self._policy(tx, scope, policy), enabled) for policy, enabled in policies.items()]
        found: list[Attached] = []
        for row, enabled in rows:
            spec = stored_policy(row.spec)
            self._check_urls(row.name, spec)
            looked = policy_lookups.look_up(self._cloud(scope.project), spec, profile)
            problem = _problem(spec, profile, [each.spec.full_name for each in found], looked)
            if problem:
                raise Rejected("BadRequest", f"The policy '{row.name}' cannot be attached: {problem}")
            found.append(_new(row.id, spec, looked, name, count, enabled=enabled))
        return found

    def _check_urls(self, name: str, spec: Spec) -> None:
        """Check that the service may ask what a policy has it ask. Raise Rejected."""
        unaskable = unaskable_url(spec, self._outbound)
        if unaskable is not None:
            raise Rejected("BadRequest", f"The policy '{name}' cannot be attached: {unaskable[0]}")

    def attach_first(self, tx: Connection, scope: RequestScope, cluster_id: str, policies: Sequence[Attached]) -> None:
        """Attach policies in the transaction that makes a cluster.

        Args:
            tx: The transaction.
            scope: Who asks.
            cluster_id: The cluster.
            policies: From `first`.

        Raises:
            Rejected: BadRequest: a policy is gone.
        """
        now = self._db.now_of(tx)
        cluster = tx.execute(select(schema.cluster).where(schema.cluster.c.id == cluster_id)).one()
        for each in policies:
            try:
                attached_policies.add(tx, cluster_id, _row(each, now), now)
            except Outdated as error:
                raise Rejected("BadRequest", f"The policy '{each.id}' could not be found.") from error
            inputs = {"policy_id": each.id, "enabled": each.enabled}
            name = states.action_name(ClusterAction.ATTACH_POLICY, cluster_id)
            new = NewAction(ClusterAction.ATTACH_POLICY, name, cluster_id, cluster_id, inputs, cluster.timeout)
            actions.add(tx, new, scope.owner, now)

    def detach(
        self, scope: RequestScope, identity: str, policy: str, check_types: CheckTypes | None = None
    ) -> StartedAction:
        """Detach a policy; what it has made goes.

        Raises:
            Rejected: ResourceNotFound; BadRequest: it is not attached; ActionConflict.
        """

        def planner(tx: Connection, cluster: ClusterRow) -> ClusterChange:
            row = self._bound(tx, scope, cluster, identity, policy)
            after = [each for each in attached_policies.of_cluster(tx, cluster.id) if each.id != row.policy_id]
            kind = attached_policies.of_row(row).type
            forgotten = (GROUP,) if kind == AFFINITY.name else ()
            seen = attached_policies.seen(tx, cluster.id)
            change = PolicyChange(seen, after, removed=row.id, forgotten=forgotten)
            return _plan(cluster, ClusterAction.DETACH_POLICY, {"policy_id": row.policy_id}, change, kind in IN_STACK)

        return self._clusters.change(scope, identity, planner, check_types)

    def switch(
        self,
        scope: RequestScope,
        identity: str,
        policy: str,
        check_types: CheckTypes | None = None,
        *,
        enabled: bool | None,
    ) -> StartedAction:
        """Switch a policy on or off; None leaves it as it is.

        Raises:
            Rejected: As `detach`.
        """

        def planner(tx: Connection, cluster: ClusterRow) -> ClusterChange:
            row = self._bound(tx, scope, cluster, identity, policy)
            inputs = {"policy_id": row.policy_id, **({} if enabled is None else {"enabled": enabled})}
            if enabled is None or enabled == row.enabled:
                return _plan(cluster, ClusterAction.UPDATE_POLICY, inputs, None, False)
            one = attached_policies.of_row(row)
            state = _switched(one, cluster.next_index - 1, enabled=enabled)
            after = [
                Attached(each.id, each.spec, enabled, state) if each.id == one.id else each
                for each in attached_policies.of_cluster(tx, cluster.id)
            ]
            columns = {"enabled": enabled, "state": dict(state)}
            change = PolicyChange(attached_policies.seen(tx, cluster.id), after, changed={row.id: columns})
            moves = one.type == LOAD_BALANCING.name
            return _plan(cluster, ClusterAction.UPDATE_POLICY, inputs, change, moves)

        return self._clusters.change(scope, identity, planner, check_types)

    def _cloud(self, project: str) -> Cloud | None:
        try:
            return self._prerequisites.cloud(project)
        except LookupError:
            return None

    def _bound(
        self, tx: Connection, scope: RequestScope, cluster: ClusterRow, identity: str, policy: str
    ) -> bindings.Binding:
        wanted = self._policy(tx, scope, policy)
        for row in bindings.of_cluster(tx, cluster.id):
            if row.policy_id == wanted.id:
                return row
        message = f"The policy '{policy}' is not attached to the specified cluster '{identity}'."
        raise Rejected("BadRequest", message)

    def _policy(self, tx: Connection, scope: RequestScope, identity: str) -> PolicyRow:
        with referring(f"The specified policy '{identity}'"):
            row: PolicyRow = self._policies.get(tx, scope, identity)
            return row


def _attaching(
    tx: Connection, now: float, cluster: ClusterRow, wanted: PolicyRow, spec: Spec, found: Found, *, enabled: bool
) -> ClusterChange:
    """Return the plan to attach a policy, or that of an action that has failed."""
    bound, inputs = bindings.of_cluster(tx, cluster.id), {"policy_id": wanted.id, "enabled": enabled}
    if any(row.policy_id == wanted.id for row in bound):
        return _plan(cluster, ClusterAction.ATTACH_POLICY, inputs, None, False)
    problem = _problem(spec, _profile(tx, cluster), [row.policy_type for row in bound], found)
    if problem:
        return _plan(cluster, ClusterAction.ATTACH_POLICY, inputs, None, False, problem)
    one = _new(wanted.id, spec, found, cluster.name, cluster.next_index - 1, enabled=enabled)
    after = [*attached_policies.of_cluster(tx, cluster.id), one]
    change = PolicyChange({row.id: row.enabled for row in bound}, after, added=_row(one, now))
    return _plan(cluster, ClusterAction.ATTACH_POLICY, inputs, change, spec.type.name in IN_STACK)


def _new(policy_id: str, spec: Spec, found: Found, name: str, below: int, *, enabled: bool) -> Attached:
    """Return a policy as it is to be attached to a cluster with this name, whose nodes have numbers below this one."""
    state = {"name": name, **found.state} if spec.type is LOAD_BALANCING else dict(found.state)
    one = Attached(policy_id, spec, enabled, state)
    return replace(one, state=_switched(one, below, enabled=enabled))


def _row(policy: Attached, now: float) -> dict[str, Any]:
    """Return the columns of a new binding, but for its cluster."""
    return {
        "id": str(uuid.uuid4()),
        "policy_id": policy.id,
        "enabled": policy.enabled,
        "priority": policy_kind(policy.spec.full_name).priority,
        "data": binding_data(policy.spec),
        "state": dict(policy.state) or None,
        "attached_at": now,
    }


def _problem(spec: Spec, profile: Spec, bound: Sequence[str], found: Found) -> str:
    """Return why a policy cannot be attached to a cluster with this profile and these types of policies."""
    problem = attach_problem(spec, profile.full_name, bound, region_of(profile)) or found.problem
    if not problem and spec.type is REGION_PLACEMENT:
        elsewhere = len(found.state.get("home", ())) < len(spec.properties["regions"])
        problem = region_problem(profile) if elsewhere else ""
    return problem or (_preserve_problem(spec, profile) if spec.type is HEALTH else "")


def _switched(policy: Attached, below: int, *, enabled: bool) -> dict[str, Any]:
    """Return what is remembered of a policy once it is switched on or off: the nodes that there are stay balanced.

    Args:
        policy: The policy.
        below: More than the number of any node.
        enabled: Whether it is switched on.
    """
    state = {name: value for name, value in policy.state.items() if name != "below"}
    if policy.type == LOAD_BALANCING.name and not enabled:
        return {**state, "below": below}
    return state


def _plan(
    cluster: ClusterRow,
    action: ClusterAction,
    inputs: Mapping[str, Any],
    change: PolicyChange | None,
    in_stack: bool,
    failure: str = "",
) -> ClusterChange:
    """Return the plan of an action on a policy; `in_stack` says whether the stack of the cluster changes with it."""
    name = states.action_name(action, cluster.id)
    return ClusterChange(action, name, inputs, {}, at_once=not in_stack, policies=change, failure=failure)


def _profile(tx: Connection, cluster: ClusterRow) -> Spec:
    profile = schema.profile
    return check_profile(tx.execute(select(profile.c.spec).where(profile.c.id == cluster.profile_id)).scalar_one())


def _preserve_problem(spec: Spec, profile: Spec) -> str:
    """Return why nodes made again by a health policy cannot keep what it asks for; "" if they can."""
    kept = health_policy.health_policy(spec).preserve - {Preserved.NAME}
    # Such a node is a stack: made again, it has other ports and volumes.
    if kept and define(profile, Terms("")).server:
        names = ", ".join(sorted(kept))
        return f"recovery.preserve: {names} cannot be kept by nodes that have parts beside their server, or a region."
    return ""
