"""Policies attached to clusters: some add resources to the stack of a cluster, others limit its requests."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

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
from homeostat.clustering.service.changes import ClusterChange, Outdated, PolicyChange, StartedAction
from homeostat.clustering.service.clusters import ClusterService
from homeostat.clustering.service.policy_lookups import Lookup
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.specs import SpecService
from homeostat.clustering.store import actions, bindings
from homeostat.clustering.store.actions import NewAction
from homeostat.model.errors import Rejected
from homeostat.model.health_policy import Preserved
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.pipeline.request import CheckTypes
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ClusterRow, PolicyRow

IN_STACK = frozenset({LOAD_BALANCING.name, AFFINITY.name})
"""Types of policies that add resources to the stack of a cluster: attaching them is a revision of the stack."""


class Bindings:
    """Attaches policies to clusters, enables, disables and detaches them."""

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
        """Attach a policy; an unfit policy makes a failed action, as in Senlin.

        Raises:
            Rejected: ResourceNotFound; BadRequest: unknown policy, or the service may not call its URLs;
                ActionConflict; errors in the resources that the policy adds to the stack.
            Transient: A cloud does not answer.
        """
        with self._db.read() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            wanted = self._policy(tx, scope, policy)
            profile = _profile(tx, cluster)
        spec = stored_policy(wanted.spec)
        self._check_urls(wanted.name, spec)
        # Outside of the transaction: a policy never changes, and references are resolved again at creation.
        lookup = policy_lookups.look_up(self._cloud(cluster.project), spec, profile)

        def build(tx: Transaction, row: ClusterRow) -> ClusterChange:
            self._policy(tx, scope, wanted.id)
            return _attaching(tx, tx.now(), row, wanted, spec, lookup, enabled=enabled)

        return self._clusters.change(scope, cluster.id, build, check_types)

    def first(
        self, scope: RequestScope, name: str, profile: Spec, policies: Mapping[str, bool], count: int
    ) -> list[Attached]:
        """Return the policies to attach to a new cluster.

        Args:
            name: Name of the cluster.
            profile: Profile of the cluster, checked.
            policies: Id or name of a policy -> whether it is enabled.
            count: Number of initial nodes.

        Raises:
            Rejected: BadRequest: a policy does not exist, or does not fit.
            Transient: A cloud does not answer.
        """
        with self._db.read() as tx:
            rows = [(self._policy(tx, scope, identity), enabled) for identity, enabled in policies.items()]
        attached: list[Attached] = []
        for row, enabled in rows:
            spec = stored_policy(row.spec)
            self._check_urls(row.name, spec)
            lookup = policy_lookups.look_up(self._cloud(scope.project), spec, profile)
            problem = _problem(spec, profile, [policy.spec.full_name for policy in attached], lookup)
            if problem:
                raise Rejected("BadRequest", f"The policy '{row.name}' cannot be attached: {problem}")
            attached.append(_new(row.id, spec, lookup, name, count, enabled=enabled))
        return attached

    def _check_urls(self, name: str, spec: Spec) -> None:
        """Check that the service may call the URLs of a policy. Raise Rejected."""
        forbidden = policy_lookups.forbidden_url(spec, self._outbound)
        if forbidden is not None:
            raise Rejected("BadRequest", f"The policy '{name}' cannot be attached: {forbidden[0]}")

    def attach_first(self, tx: Transaction, scope: RequestScope, cluster_id: str, policies: Sequence[Attached]) -> None:
        """Attach policies in the transaction that creates a cluster.

        Args:
            policies: From `first`.

        Raises:
            Rejected: BadRequest: a policy was deleted meanwhile.
        """
        now = tx.now()
        cluster = tx.execute(select(schema.cluster).where(schema.cluster.c.id == cluster_id)).one()
        for policy in policies:
            try:
                attached_policies.add(tx, cluster_id, _row(policy, now), now)
            except Outdated as error:
                raise Rejected("BadRequest", f"The policy '{policy.id}' could not be found.") from error
            inputs = {"policy_id": policy.id, "enabled": policy.enabled}
            name = states.action_name(ClusterAction.ATTACH_POLICY, cluster_id)
            new = NewAction(ClusterAction.ATTACH_POLICY, name, cluster_id, cluster_id, inputs, cluster.timeout)
            actions.add(tx, new, scope.owner, now)

    def detach(
        self, scope: RequestScope, identity: str, policy: str, check_types: CheckTypes | None = None
    ) -> StartedAction:
        """Detach a policy, and delete its resources.

        Raises:
            Rejected: ResourceNotFound; BadRequest: the policy is not attached; ActionConflict.
        """

        def build(tx: Transaction, cluster: ClusterRow) -> ClusterChange:
            row = self._bound(tx, scope, cluster, identity, policy)
            after = [
                attached for attached in attached_policies.of_cluster(tx, cluster.id) if attached.id != row.policy_id
            ]
            kind = attached_policies.of_row(row).type
            forgotten = (GROUP,) if kind == AFFINITY.name else ()
            seen = attached_policies.seen(tx, cluster.id)
            change = PolicyChange(seen, after, removed=row.id, forgotten=forgotten)
            return _cluster_change(
                cluster, ClusterAction.DETACH_POLICY, {"policy_id": row.policy_id}, change, kind in IN_STACK
            )

        return self._clusters.change(scope, identity, build, check_types)

    def switch(
        self,
        scope: RequestScope,
        identity: str,
        policy: str,
        check_types: CheckTypes | None = None,
        *,
        enabled: bool | None,
    ) -> StartedAction:
        """Enable or disable a policy; None changes nothing.

        Raises:
            Rejected: As `detach`.
        """

        def build(tx: Transaction, cluster: ClusterRow) -> ClusterChange:
            row = self._bound(tx, scope, cluster, identity, policy)
            inputs = {"policy_id": row.policy_id, **({} if enabled is None else {"enabled": enabled})}
            if enabled is None or enabled == row.enabled:
                return _cluster_change(cluster, ClusterAction.UPDATE_POLICY, inputs, None, False)
            binding = attached_policies.of_row(row)
            state = _switched(binding, cluster.next_index - 1, enabled=enabled)
            after = [
                Attached(attached.id, attached.spec, enabled, state) if attached.id == binding.id else attached
                for attached in attached_policies.of_cluster(tx, cluster.id)
            ]
            columns = {"enabled": enabled, "state": dict(state)}
            change = PolicyChange(attached_policies.seen(tx, cluster.id), after, changed={row.id: columns})
            moves = binding.type == LOAD_BALANCING.name
            return _cluster_change(cluster, ClusterAction.UPDATE_POLICY, inputs, change, moves)

        return self._clusters.change(scope, identity, build, check_types)

    def _cloud(self, project: str) -> Cloud | None:
        try:
            return self._prerequisites.cloud(project)
        except LookupError:
            return None

    def _bound(
        self, tx: Transaction, scope: RequestScope, cluster: ClusterRow, identity: str, policy: str
    ) -> bindings.Binding:
        wanted = self._policy(tx, scope, policy)
        for row in bindings.of_cluster(tx, cluster.id):
            if row.policy_id == wanted.id:
                return row
        message = f"The policy '{policy}' is not attached to the specified cluster '{identity}'."
        raise Rejected("BadRequest", message)

    def _policy(self, tx: Transaction, scope: RequestScope, identity: str) -> PolicyRow:
        with referring(f"The specified policy '{identity}'"):
            row: PolicyRow = self._policies.get(tx, scope, identity)
            return row


def _attaching(
    tx: Transaction, now: float, cluster: ClusterRow, wanted: PolicyRow, spec: Spec, lookup: Lookup, *, enabled: bool
) -> ClusterChange:
    """Return the change that attaches a policy, or a failed action."""
    bound, inputs = bindings.of_cluster(tx, cluster.id), {"policy_id": wanted.id, "enabled": enabled}
    if any(row.policy_id == wanted.id for row in bound):
        return _cluster_change(cluster, ClusterAction.ATTACH_POLICY, inputs, None, False)
    problem = _problem(spec, _profile(tx, cluster), [row.policy_type for row in bound], lookup)
    if problem:
        return _cluster_change(cluster, ClusterAction.ATTACH_POLICY, inputs, None, False, problem)
    attached = _new(wanted.id, spec, lookup, cluster.name, cluster.next_index - 1, enabled=enabled)
    after = [*attached_policies.of_cluster(tx, cluster.id), attached]
    change = PolicyChange({row.id: row.enabled for row in bound}, after, added=_row(attached, now))
    return _cluster_change(cluster, ClusterAction.ATTACH_POLICY, inputs, change, spec.type.name in IN_STACK)


def _new(policy_id: str, spec: Spec, lookup: Lookup, name: str, below: int, *, enabled: bool) -> Attached:
    """Return a policy to attach to the cluster `name`, whose nodes have numbers less than `below`."""
    state = {"name": name, **lookup.state} if spec.type is LOAD_BALANCING else dict(lookup.state)
    attached = Attached(policy_id, spec, enabled, state)
    return replace(attached, state=_switched(attached, below, enabled=enabled))


def _row(policy: Attached, now: float) -> dict[str, Any]:
    """Return the columns of a new binding, except `cluster_id`."""
    return {
        "id": str(uuid.uuid4()),
        "policy_id": policy.id,
        "enabled": policy.enabled,
        "priority": policy_kind(policy.spec.full_name).priority,
        "data": binding_data(policy.spec),
        "state": dict(policy.state) or None,
        "attached_at": now,
    }


def _problem(spec: Spec, profile: Spec, bound: Sequence[str], lookup: Lookup) -> str:
    """Return why a policy cannot be attached to a cluster with this profile and these policies; "" if it can."""
    problem = attach_problem(spec, profile.full_name, bound, region_of(profile)) or lookup.problem
    if not problem and spec.type is REGION_PLACEMENT:
        elsewhere = len(lookup.state.get("home", ())) < len(spec.properties["regions"])
        problem = region_problem(profile) if elsewhere else ""
    return problem or (_preserve_problem(spec, profile) if spec.type is HEALTH else "")


def _switched(policy: Attached, below: int, *, enabled: bool) -> dict[str, Any]:
    """Return the state of a policy after it is enabled or disabled.

    After a load balancing policy is disabled, the existing nodes stay in the pool: numbers less than `below`.
    """
    state = {name: value for name, value in policy.state.items() if name != "below"}
    if policy.type == LOAD_BALANCING.name and not enabled:
        return {**state, "below": below}
    return state


def _cluster_change(
    cluster: ClusterRow,
    action: ClusterAction,
    inputs: Mapping[str, Any],
    change: PolicyChange | None,
    in_stack: bool,
    failure: str = "",
) -> ClusterChange:
    """Return the change for an action on a policy; with `in_stack` it changes the stack of the cluster."""
    name = states.action_name(action, cluster.id)
    return ClusterChange(action, name, inputs, {}, at_once=not in_stack, policies=change, failure=failure)


def _profile(tx: Transaction, cluster: ClusterRow) -> Spec:
    profile = schema.profile
    return check_profile(tx.execute(select(profile.c.spec).where(profile.c.id == cluster.profile_id)).scalar_one())


def _preserve_problem(spec: Spec, profile: Spec) -> str:
    """Return why recreated nodes cannot keep the parts in `preserve` of a health policy; "" if they can."""
    kept = health_policy.health_policy(spec).preserve - {Preserved.NAME}
    # A node that is a stack gets new ports and volumes when it is recreated.
    if kept and define(profile, Terms("")).server:
        names = ", ".join(sorted(kept))
        return f"recovery.preserve: {names} cannot be kept by nodes that have parts beside their server, or a region."
    return ""
