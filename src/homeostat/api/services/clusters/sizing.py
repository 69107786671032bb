"""How many nodes a cluster has: another size, by hand or by the rules of its policies, and which nodes leave."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, select

from homeostat.api.services.clusters import membership
from homeostat.api.services.clusters.plans import Plan
from homeostat.api.services.clusters.requester import Asking
from homeostat.clustering import choices, sizes
from homeostat.clustering.choices import DeletionRule, NodeFacts
from homeostat.clustering.policies import stored_policy
from homeostat.clustering.policy_types import BATCH, DELETION, SCALING, ZONE_PLACEMENT
from homeostat.clustering.sizes import Adjustment, Direction, Resize, ScalingRule, Sizes
from homeostat.clustering.specs import Spec
from homeostat.clustering.states import ClusterAction, NodeStatus, action_name
from homeostat.model.errors import Rejected
from homeostat.model.intent import left_alone_for
from homeostat.model.status import Status
from homeostat.resources.group_limits import DRAIN_MAX_S
from homeostat.store import schema
from homeostat.store.clusters import bindings, living
from homeostat.store.database import Database

_node = schema.node


class Sizing:
    """Plans for the sizes of clusters."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def resize(self, tx: Connection, cluster: Row[Any], given: Mapping[str, Any]) -> Plan:
        """Return the plan of a resize.

        Raises:
            Rejected: BadRequest.
        """
        kind = given.get("adjustment_type")
        request = Resize(
            Adjustment(kind) if kind is not None else None,
            given.get("number"),
            given.get("min_size"),
            given.get("max_size"),
            given.get("min_step") if kind == Adjustment.PERCENT else None,
            given.get("strict", True),
        )
        nodes = facts_of(tx, cluster)
        after = sizes.resized(sizes_of(cluster), len(nodes), request)
        names = ("adjustment_type", "number", "min_size", "max_size", "min_step", "strict")
        inputs = {name: given.get(name) for name in names} | {"strict": request.strict}
        columns = {"min_size": after.min_size, "max_size": after.max_size}
        return self._sized(tx, cluster, ClusterAction.RESIZE, nodes, after.desired, inputs, columns)

    def scale(self, tx: Connection, cluster: Row[Any], direction: Direction, count: int | None) -> Plan:
        """Return the plan for more or fewer nodes: as many as the request, or a scaling policy, says.

        Raises:
            Rejected: BadRequest; ActionCooldown.
        """
        sizes.check_count(direction, count)
        rule, ids = self._rule(tx, cluster, direction)
        nodes = facts_of(tx, cluster)
        # Fewer than there are: that is how many go.
        asked = min(count, len(nodes)) if count is not None and direction is Direction.IN and nodes else count
        after = sizes.scaled(sizes_of(cluster), len(nodes), direction, asked, rule)
        inputs = {} if count is None else {"count": count}
        plan = self._sized(tx, cluster, ClusterAction(direction), nodes, after.desired, inputs, {})
        return replace(plan, cooled=tuple(ids))

    def del_nodes(
        self, tx: Connection, cluster: Row[Any], asking: Asking, names: Sequence[str], given: Mapping[str, Any]
    ) -> Plan:
        """Return the plan to take nodes that are named out of a cluster: to delete them, or to keep them without one.

        Raises:
            Rejected: BadRequest.
        """
        leaving = membership.members_named(tx, cluster, asking, names)
        rule = self._deletion(tx, cluster)
        destroy = given.get("destroy_after_deletion", rule is not None and rule.destroy)
        there = len(facts_of(tx, cluster))
        desired = there - len(leaving)
        problem = sizes.size_problem(sizes_of(cluster), desired)
        if problem:
            raise Rejected("BadRequest", problem)
        columns = {"desired_capacity": desired} if rule is None or rule.reduce_desired else {}
        ids = [row.id for row in leaving]
        inputs = {"candidates": ids, "count": len(leaving), "destroy_after_deletion": destroy}
        plan = Plan(ClusterAction.DEL_NODES, action_name(ClusterAction.DEL_NODES, cluster.id), inputs, columns)
        if not destroy:
            return replace(plan, released=leaving)
        if rule is not None and rule.hooks is not None:
            facts = [each for each in facts_of(tx, cluster) if each.id in ids]
            return _waiting(plan, rule.hooks, facts)
        numbers = tuple(row.number for row in leaving)
        return replace(plan, leaving=numbers, grace_s=self.grace_s(tx, cluster))

    def batches(self, tx: Connection, cluster: Row[Any], plan: Plan) -> Plan:
        """Return the plan of an update, in batches where a policy says so."""
        policy = self._policy(tx, cluster, BATCH.name) if plan.spec is not None else None
        if policy is None:
            return plan
        rule, nodes = choices.batch_rule(policy), facts_of(tx, cluster)
        groups = choices.batches(nodes, rule)
        size = len(groups[0]) if groups else 1
        in_service = min(rule.min_in_service, max(len(nodes) - size, 0))
        rolling = {"max_batch_size": size, "min_in_service": in_service, "pause_time": rule.pause_s}
        return replace(plan, batches=rolling)

    def _sized(
        self,
        tx: Connection,
        cluster: Row[Any],
        action: ClusterAction,
        nodes: Sequence[NodeFacts],
        desired: int,
        inputs: Mapping[str, Any],
        columns: Mapping[str, Any],
    ) -> Plan:
        """Return the plan by which a cluster gets so many nodes."""
        more = desired - len(nodes)
        gone = self._victims(tx, cluster, nodes, -more) if more < 0 else []
        numbers = tuple(sorted(each.index - 1 for each in gone))
        columns = {**columns, "desired_capacity": desired}
        name = action_name(action, cluster.id)
        rule = self._deletion(tx, cluster)
        if gone and rule is not None and not rule.destroy:
            rows = membership.rows_of(tx, [each.id for each in gone])
            return Plan(action, name, inputs, columns, released=rows)
        if gone and rule is not None and rule.hooks is not None:
            return _waiting(Plan(action, name, inputs, columns), rule.hooks, gone)
        zones = self._zones(tx, cluster, nodes, more) if more > 0 else ()
        grace_s = self.grace_s(tx, cluster) if gone else 0
        return Plan(action, name, inputs, columns, added=max(more, 0), leaving=numbers, zones=zones, grace_s=grace_s)

    def _victims(self, tx: Connection, cluster: Row[Any], nodes: Sequence[NodeFacts], count: int) -> list[NodeFacts]:
        rule = self._deletion(tx, cluster) or DeletionRule()
        seed = f"{cluster.id}/{cluster.updated_at}"
        zoned = self._policy(tx, cluster, ZONE_PLACEMENT.name)
        if zoned is None:
            return choices.victims(nodes, count, rule.criteria, seed)
        current = Counter(each.zone for each in nodes)
        counts = choices.removed(current, choices.places(zoned), count)
        return choices.victims_by_place(nodes, counts, rule.criteria, seed, lambda node: node.zone)

    def _zones(self, tx: Connection, cluster: Row[Any], nodes: Sequence[NodeFacts], count: int) -> tuple[str, ...]:
        """Return the zones of new nodes; () where no policy chooses them."""
        zoned = self._policy(tx, cluster, ZONE_PLACEMENT.name)
        if zoned is None:
            return ()
        placed = choices.placed(Counter(each.zone for each in nodes), choices.places(zoned), count)
        return tuple(zone for zone, number in placed.items() for _ in range(number))

    def grace_s(self, tx: Connection, cluster: Row[Any]) -> int:
        """Return for how many seconds nodes of a cluster stay that leave it."""
        rule = self._deletion(tx, cluster)
        return min(rule.grace_s, DRAIN_MAX_S) if rule is not None else 0

    def _deletion(self, tx: Connection, cluster: Row[Any]) -> DeletionRule | None:
        policy = self._policy(tx, cluster, DELETION.name)
        return choices.deletion_rule(policy) if policy is not None else None

    def _policy(self, tx: Connection, cluster: Row[Any], type_name: str) -> Spec | None:
        """Return the enabled policy of a type, checked; None where there is none."""
        for row in bindings.of_cluster(tx, cluster.id):
            if row.enabled and row.policy_type.rpartition("-")[0] == type_name:
                return stored_policy(row.spec)
        return None

    def _rule(self, tx: Connection, cluster: Row[Any], direction: Direction) -> tuple[ScalingRule | None, list[str]]:
        """Return the rule for a direction, and the bindings whose cooldown begins with it.

        Raises:
            Rejected: ActionCooldown.
        """
        now, found, ids = self._db.now_of(tx), None, []
        for row in bindings.of_cluster(tx, cluster.id):
            if not row.enabled or row.policy_type.rpartition("-")[0] != SCALING.name:
                continue
            rule = sizes.scaling_rule(stored_policy(row.spec))
            ids.append(row.id)
            if rule.event is not direction:
                continue
            if sizes.cooldown_left_s(rule, row.last_op, now) > 0:
                message = f"cannot be processed due to Policy {row.policy_id} cooldown still in progress"
                raise Rejected("ActionCooldown", f"The {direction} action for cluster {cluster.id} {message}")
            found = found or rule
        return found, ids


def _waiting(plan: Plan, hook: Mapping[str, Any], gone: Sequence[NodeFacts]) -> Plan:
    """Return a plan after which nodes go once others have been notified; those that are not active go at once."""
    active = {each.id: each.status == NodeStatus.ACTIVE and each.created_at is not None for each in gone}
    return replace(plan, hook=hook, hooked=active, at_once=True)


def sizes_of(cluster: Row[Any]) -> Sizes:
    """Return the sizes in the row of a cluster."""
    return Sizes(cluster.min_size, cluster.max_size, cluster.desired_capacity)


def facts_of(tx: Connection, cluster: Row[Any]) -> list[NodeFacts]:
    """Return what choices among the nodes of a cluster depend on; those that leave are not among them."""
    profile = schema.profile
    chosen = select(_node, profile.c.created_at.label("profile_created_at")).join(
        profile, profile.c.id == _node.c.profile_id
    )
    rows = tx.execute(chosen.where(_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))).all()
    stacks = living.stacks_of(tx, [cluster.id])
    group = stacks[cluster.id].group_id if cluster.id in stacks else None
    found = living.resources_of(tx, [group], [row.number for row in rows]) if group is not None else ()
    resources = {each.name: each for each in found}
    return [_facts(row, resources.get(str(row.number))) for row in rows]


def _facts(row: Row[Any], resource: Row[Any] | None) -> NodeFacts:
    failed = resource is not None and (resource.status == Status.FAILED or bool(left_alone_for(resource.intent)))
    made = resource is not None and bool(resource.handle) and not failed
    return NodeFacts(
        row.id,
        row.name,
        row.number + 1,
        NodeStatus.ERROR if failed else NodeStatus.ACTIVE,
        resource.created_at if made and resource is not None else None,
        row.profile_created_at,
        row.tainted,
        (row.data.get("placement") or {}).get("zone") or "",
    )
