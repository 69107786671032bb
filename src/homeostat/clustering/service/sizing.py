"""Changes of the size of a cluster, by hand or by its scaling policies, and the choice of leaving nodes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import select

from homeostat.clustering.decisions import choices, placement, sizes
from homeostat.clustering.decisions.attached import of_type
from homeostat.clustering.decisions.choices import DeletionRule, NodeFacts
from homeostat.clustering.decisions.definitions import region_of
from homeostat.clustering.decisions.placement import Placement
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.clustering.decisions.policy_types import BATCH, SCALING
from homeostat.clustering.decisions.sizes import Adjustment, Direction, Resize, ScalingRule, Sizes
from homeostat.clustering.decisions.states import ClusterAction, NodeStatus, action_name, refused_by_policy
from homeostat.clustering.service import attached_policies, membership
from homeostat.clustering.service.changes import ClusterChange
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import actions, bindings, living
from homeostat.model.errors import Rejected
from homeostat.model.intent import left_alone_for
from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow
from homeostat.store.shards import away
from homeostat.store.sql import typed

_node = schema.node


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A scaling rule, and the name of its policy."""

    policy: str
    rule: ScalingRule


class Sizing:
    """Builds the changes of the sizes of clusters."""

    def resize(self, tx: Transaction, cluster: ClusterRow, request: Resize) -> ClusterChange:
        """Return the change for a resize.

        Raises:
            Rejected: BadRequest.
        """
        nodes = facts_of(tx, cluster)
        after = sizes.resized(sizes_of(cluster), len(nodes), request)
        inputs = {"adjustment_type" if name == "type" else name: value for name, value in asdict(request).items()}
        columns = {"min_size": after.min_size, "max_size": after.max_size}
        return self._sized(tx, cluster, ClusterAction.RESIZE, nodes, after.desired, inputs, columns)

    def scale(self, tx: Transaction, cluster: ClusterRow, direction: Direction, count: int | None) -> ClusterChange:
        """Return the change for scaling out or in: by the count of the request, or by a scaling policy.

        If limits do not allow it, the change is a failed action, as in Senlin.

        Raises:
            Rejected: BadRequest; ActionCooldown.
        """
        sizes.check_count(direction, count)
        rule, strict, ids = self._rule(tx, cluster, direction)
        nodes, scaling_rule = facts_of(tx, cluster), rule.rule if rule is not None else None
        after = sizes.scaled(sizes_of(cluster), len(nodes), direction, count, scaling_rule, trimmed=not strict)
        action = ClusterAction(direction)
        inputs = {} if count is None else {"count": count}
        if after.failure:
            policy = rule.policy if rule is not None else strict
            failure = refused_by_policy(policy, after.failure) if policy else after.failure
            change = ClusterChange(action, action_name(action, cluster.id), inputs, {}, at_once=True, failure=failure)
        else:
            change = self._sized(tx, cluster, action, nodes, after.sizes.desired, inputs, {})
        return replace(change, cooled=tuple(ids))

    def del_nodes(
        self, tx: Transaction, cluster: ClusterRow, scope: RequestScope, names: Sequence[str], fields: Mapping[str, Any]
    ) -> ClusterChange:
        """Return the change that removes the named nodes from a cluster: deleted, or kept without a cluster.

        Raises:
            Rejected: BadRequest.
        """
        leaving = membership.members_named(tx, cluster, scope, names)
        rule = placement.deletion_rule(attached_policies.of_cluster(tx, cluster.id))
        destroy = rule.destroy if rule is not None else fields.get("destroy_after_deletion", False)
        size = len(facts_of(tx, cluster))
        desired = size - len(leaving)
        problem = sizes.size_problem(sizes_of(cluster), desired)
        if problem:
            raise Rejected("BadRequest", problem)
        columns = {"desired_capacity": desired} if rule is None or rule.reduce_desired else {}
        ids = [row.id for row in leaving]
        inputs = {"candidates": ids, "count": len(leaving), "destroy_after_deletion": destroy}
        change = ClusterChange(
            ClusterAction.DEL_NODES, action_name(ClusterAction.DEL_NODES, cluster.id), inputs, columns
        )
        if not destroy:
            return replace(change, released=leaving)
        if rule is not None and rule.hooks is not None:
            facts = [node for node in facts_of(tx, cluster) if node.id in ids]
            return _waiting(change, rule.hooks, facts)
        return replace(change, leaving=tuple(row.number for row in leaving))

    def batches(self, tx: Transaction, cluster: ClusterRow, change: ClusterChange) -> ClusterChange:
        """Return the change for an update, in batches if the cluster has a batch policy."""
        policy = of_type(attached_policies.of_cluster(tx, cluster.id), BATCH.name)
        if policy is None or change.spec is None:
            return change
        rule, nodes = choices.batch_rule(policy.spec), facts_of(tx, cluster)
        groups = choices.batches(nodes, rule)
        size = len(groups[0]) if groups else 1
        in_service = min(rule.min_in_service, max(len(nodes) - size, 0))
        rolling = {"max_batch_size": size, "min_in_service": in_service, "pause_time": rule.pause_s}
        return replace(change, batches=rolling)

    def _sized(
        self,
        tx: Transaction,
        cluster: ClusterRow,
        action: ClusterAction,
        nodes: Sequence[NodeFacts],
        desired: int,
        inputs: Mapping[str, Any],
        columns: Mapping[str, Any],
    ) -> ClusterChange:
        """Return the change that gives a cluster `desired` nodes."""
        policies = attached_policies.of_cluster(tx, cluster.id)
        places, more = placement.rules(policies), desired - len(nodes)
        change = ClusterChange(
            action, action_name(action, cluster.id), inputs, {**columns, "desired_capacity": desired}
        )
        if more >= 0:
            return replace(change, added=more, placements=placement.placements(nodes, places, more))
        rule = placement.deletion_rule(policies) or DeletionRule()
        leaving = placement.leaving(nodes, places, -more, rule.criteria, f"{cluster.id}/{cluster.updated_at}")
        if not rule.destroy:
            return replace(change, released=membership.rows_of(tx, [node.id for node in leaving]))
        if leaving and rule.hooks is not None:
            return _waiting(change, rule.hooks, leaving)
        return replace(change, leaving=tuple(sorted(node.index - 1 for node in leaving)))

    def _rule(
        self, tx: Transaction, cluster: ClusterRow, direction: Direction
    ) -> tuple[NamedRule | None, str, list[str]]:
        """Return the scaling rule for a direction, with the strict policy and the cooldowns.

        Of several rules, the rule attached last applies, as in Senlin; the cooldowns of all apply.

        Returns:
            The rule; the name of a strict policy (not `best_effort`) for either direction, "" for none; the bindings
            whose cooldown begins.

        Raises:
            Rejected: ActionCooldown.
        """
        now, chosen_rule, strict, ids = tx.now(), None, "", []
        ended = actions.last_end(tx, cluster.id, tuple(Direction))
        for row in bindings.of_cluster(tx, cluster.id):
            if not row.enabled or row.policy_type.rpartition("-")[0] != SCALING.name:
                continue
            rule = sizes.scaling_rule(stored_policy(row.spec))
            ids.append(row.id)
            strict = strict if rule.best_effort else row.policy_name
            if rule.event is not direction:
                continue
            if sizes.cooldown_left_s(rule, sizes.last_operation(row.last_op, ended), now) > 0:
                message = f"cannot be processed due to Policy {row.policy_id} cooldown still in progress"
                raise Rejected("ActionCooldown", f"The {direction} action for cluster {cluster.id} {message}")
            chosen_rule = NamedRule(row.policy_name, rule)
        return chosen_rule, strict, ids


def parse_resize(fields: Mapping[str, Any]) -> Resize:
    """Return the resize from the fields of a request.

    Raises:
        Rejected: BadRequest: the request is incomplete.
    """
    kind = fields.get("adjustment_type")
    request = Resize(
        Adjustment(kind) if kind is not None else None,
        fields.get("number"),
        fields.get("min_size"),
        fields.get("max_size"),
        fields.get("min_step") if kind == Adjustment.PERCENT else None,
        fields.get("strict", True),
    )
    sizes.check_resize(request)
    return request


def _waiting(change: ClusterChange, hook: Mapping[str, Any], leaving: Sequence[NodeFacts]) -> ClusterChange:
    """Return the change with a lifecycle hook before active nodes leave; inactive nodes leave at once."""
    active = {node.id: node.status == NodeStatus.ACTIVE and node.created_at is not None for node in leaving}
    return replace(change, hook=hook, hooked=active, at_once=True)


def placements(tx: Transaction, cluster: ClusterRow, nodes: Sequence[NodeFacts], count: int) -> list[Placement]:
    """Return the placements of new nodes of a cluster, balanced with its existing nodes.

    Raises:
        Rejected: BadRequest: the policies of the cluster leave no room.
    """
    return placement.placements(nodes, placement.rules(attached_policies.of_cluster(tx, cluster.id)), count)


class ProfiledNode(NamedTuple):
    """A node, with the creation time of its profile."""

    id: str
    name: str
    number: int
    profile_id: str
    tainted: bool
    data: Any
    profile_created_at: float


def sizes_of(cluster: ClusterRow) -> Sizes:
    """Return the sizes in the row of a cluster."""
    return Sizes(cluster.min_size, cluster.max_size, cluster.desired_capacity)


def facts_of(tx: Transaction, cluster: ClusterRow) -> list[NodeFacts]:
    """Return the facts about the nodes of a cluster for choices among them; leaving nodes are excluded."""
    profile = schema.profile
    columns = (_node.c.id, _node.c.name, _node.c.number, _node.c.profile_id, _node.c.tainted, _node.c.data)
    chosen = select(*columns, profile.c.created_at.label("profile_created_at"))
    chosen = chosen.join(profile, profile.c.id == _node.c.profile_id)
    conditions = (_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
    rows = typed.rows(ProfiledNode, tx.execute(chosen.where(*conditions))).all()
    stacks = living.stacks_of(tx, [cluster.id])
    group = stacks[cluster.id].group_id if cluster.id in stacks else None
    numbers = [row.number for row in rows]
    resource_rows = living.resources_of(tx, [group], numbers) if group is not None else ()
    marked = away.replaced_for_marks(tx, group) if group is not None else ()
    resources = {resource.name: resource for resource in resource_rows}
    places = living.places_of(tx, [group], numbers) if group is not None else {}
    unbalanced = {number for (_, number), place in places.items() if place.status == Status.FAILED}
    regions = _regions(tx, {row.profile_id for row in rows})
    return [
        _facts(
            row,
            resources.get(str(row.number)),
            regions[row.profile_id],
            unbalanced=row.number in unbalanced,
            marked=str(row.number) in marked,
        )
        for row in rows
    ]


def _regions(tx: Transaction, profile_ids: Collection[str]) -> dict[str, str]:
    """Return profile id -> region of the profile, or ""."""
    table = schema.profile
    rows = tx.execute(select(table.c.id, table.c.spec).where(table.c.id.in_(profile_ids)))
    return {row.id: region_of({"context": {}, **(row.spec.get("properties") or {})}) for row in rows}


def _facts(
    row: ProfiledNode, resource: living.NodeResource | None, region: str, *, unbalanced: bool, marked: bool
) -> NodeFacts:
    """Return the facts of a node; `marked` if it is being replaced because of a mark."""
    well = NodeStatus.WARNING if unbalanced else NodeStatus.ACTIVE
    failed = resource is not None and (resource.status == Status.FAILED or bool(left_alone_for(resource.intent)))
    failed = failed or marked
    is_created = resource is not None and bool(resource.handle) and not failed
    placed = row.data.get("placement") or {}
    return NodeFacts(
        row.id,
        row.name,
        row.number + 1,
        NodeStatus.ERROR if failed else well,
        resource.created_at if is_created and resource is not None else None,
        row.profile_created_at,
        row.tainted,
        placed.get(placement.ZONE) or "",
        placed.get(placement.REGION) or region,
    )
