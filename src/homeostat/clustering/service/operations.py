"""Operations, checks and recoveries of nodes by request: an action, and a request in the row of each node."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from homeostat.clustering.decisions import states
from homeostat.clustering.decisions.health_policy import HEALTH, recover_data, recovery_inputs
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.requests import CHECKED, Ask, operation_of, recovery_of
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import ClusterAction, NodeAction, NodeStatus
from homeostat.clustering.service.clusters import ClusterService, check_free
from homeostat.clustering.service.nodes import NodeService
from homeostat.clustering.service.plans import StartedAction
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.requests import RequestService
from homeostat.clustering.service.stack_requests import TIMEOUT_S
from homeostat.clustering.store import actions, bindings, listing, living
from homeostat.clustering.store.actions import NewAction
from homeostat.clustering.store.listing import Order, Page
from homeostat.model.errors import Rejected
from homeostat.resources.secrets import is_secret
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.stacks import action_begin, locks
from homeostat.templates import HIDDEN

FILTERS = ("name", "profile_id", "status", "role")
_node = schema.node
StatusesOf = Callable[[Connection, Sequence[NodeRow]], Mapping[str, str]]
"""Returns the statuses of nodes, by their ids."""


class OperationService:
    """Has nodes operated, checked and recovered."""

    def __init__(self, db: Database, stack_service: StackService, clusters: ClusterService, nodes: NodeService) -> None:
        self._db = db
        self._stacks = stack_service
        self._clusters = clusters
        self._nodes = nodes
        self._requests = RequestService(db)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def operate_node(self, scope: RequestScope, identity: str, operation: str, parameters: Any) -> StartedAction:
        """Perform an operation on a node.

        Raises:
            Rejected: ResourceNotFound; BadRequest: there is no such operation; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            ask = operation_of(_profile(tx, row.profile_id), operation, parameters)
            inputs = {"operation": operation, "params": parameters or {}}
            return self._ask_node(tx, scope, row, NodeAction.OPERATION, ask, inputs)

    def check_node(self, scope: RequestScope, identity: str, inputs: Mapping[str, Any]) -> StartedAction:
        """Have a node looked at.

        Raises:
            Rejected: ResourceNotFound, StackLocked, ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            return self._ask_node(tx, scope, row, NodeAction.CHECK, CHECKED, inputs)

    def recover_node(self, scope: RequestScope, identity: str, inputs: Mapping[str, Any]) -> StartedAction:
        """Have a node recovered.

        Raises:
            Rejected: ResourceNotFound; BadRequest; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            whole, data = _by_policy(tx, row.cluster_id, inputs)
            ask = recovery_of(_profile(tx, row.profile_id), whole)
            return self._ask_node(tx, scope, row, NodeAction.RECOVER, ask, inputs, data)

    def _ask_node(
        self,
        tx: Connection,
        scope: RequestScope,
        row: NodeRow,
        action: NodeAction,
        ask: Ask,
        inputs: Mapping[str, Any],
        data: Mapping[str, Any] = {},
    ) -> StartedAction:
        if row.leaving:
            raise Rejected("ActionInProgress", f"The node '{row.name}' is in status {NodeStatus.DELETING}.")
        if action not in states.NEVER_REFUSED:
            targets = [row.id, *([row.cluster_id] if row.cluster_id else [])]
            check_free(actions.going_on(tx, targets), row.id, action)
        timeout = TIMEOUT_S
        if row.cluster_id is not None:
            of = select(schema.cluster.c.timeout).where(schema.cluster.c.id == row.cluster_id)
            timeout = tx.execute(of).scalar_one()
        operation = ask.operation if action == NodeAction.OPERATION else ""
        name = states.action_name(action, row.id, operation)
        return self._ask(
            tx, scope, [row], ask, NewAction(action, name, row.id, row.cluster_id, shown(inputs), timeout), data
        )

    # -- clusters ----------------------------------------------------------------------------------------------------

    def operate_cluster(
        self, scope: RequestScope, identity: str, operation: str, given: Mapping[str, Any], statuses: StatusesOf
    ) -> StartedAction:
        """Perform an operation on the nodes of a cluster that fit some filters.

        Args:
            scope: Who asks.
            identity: The cluster.
            operation: The operation.
            given: `{params, filters}`; parameters may also stand beside these, as openstacksdk sends them.
            statuses: Returns the statuses of nodes.

        Raises:
            Rejected: ResourceNotFound; BadRequest: there is no such operation, or no such node; StackLocked;
                ActionConflict.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            parameters, filters = _split(given)
            ask = operation_of(_profile(tx, cluster.profile_id), operation, parameters)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.OPERATION)
            nodes = _fitting(tx, _members(tx, cluster), filters, statuses)
            if not nodes:
                raise Rejected("BadRequest", "No node (matching the filter) could be found.")
            inputs = {"operation": operation, "params": parameters, "filters": dict(filters)}
            return self._ask_cluster(tx, scope, cluster, nodes, ClusterAction.OPERATION, ask, inputs)

    def recover_cluster(
        self, scope: RequestScope, identity: str, inputs: Mapping[str, Any], statuses: StatusesOf
    ) -> StartedAction:
        """Have the nodes of a cluster recovered that are not well.

        With `check` every node is looked at; without, those that are known not to be ACTIVE are recovered. With
        `check_capacity` nodes that were never made are made.

        Raises:
            Rejected: ResourceNotFound; BadRequest; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            whole, data = _by_policy(tx, cluster.id, inputs)
            ask = recovery_of(_profile(tx, cluster.profile_id), whole, of_cluster=True)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.RECOVER)
            nodes = _members(tx, cluster)
            if not ask.if_unwell:
                found = statuses(tx, nodes)
                nodes = [each for each in nodes if found[each.id] != NodeStatus.ACTIVE]
            return self._ask_cluster(tx, scope, cluster, nodes, ClusterAction.RECOVER, ask, inputs, data)

    def _ask_cluster(
        self,
        tx: Connection,
        scope: RequestScope,
        cluster: ClusterRow,
        nodes: Sequence[NodeRow],
        action: ClusterAction,
        ask: Ask,
        inputs: Mapping[str, Any],
        data: Mapping[str, Any] = {},
    ) -> StartedAction:
        operation = ask.operation if action == ClusterAction.OPERATION else ""
        name = scope.action_name or states.action_name(action, cluster.id, operation)
        new = NewAction(action, name, cluster.id, cluster.id, shown(inputs), cluster.timeout)
        return self._ask(tx, scope, nodes, ask, new, data)

    def _ask(
        self,
        tx: Connection,
        scope: RequestScope,
        nodes: Sequence[NodeRow],
        ask: Ask,
        new: NewAction,
        shows: Mapping[str, Any],
    ) -> StartedAction:
        """Write a request into the rows of nodes, and its action.

        Where nodes were never begun that are to be made, the stack is converged, and the action is that of the stack.
        """
        root = new.cluster_id or nodes[0].stack_id
        # Stacks are locked from the root down.
        stack = locks.changeable(self._db, tx, root)
        identity = str(uuid.uuid4())
        asked = self._requests.place(tx, nodes, ask, identity, scope.caller.user, new.timeout)
        now = self._db.now_of(tx)
        data = {**shows, **asked.data()}
        if ask.check_capacity and asked.failures:
            action_begin.converge(self._db, tx, stack, now, self._stacks.quotas.timeout_s)
            data = dict(shows)
        whole = replace(new, stack_id=root, id=identity, data=data)
        return StartedAction(new.target, actions.add(tx, whole, scope.owner, now))


def shown(given: Any) -> Any:
    """Return what was asked for without its secrets, for the inputs of an action."""
    if isinstance(given, Mapping):
        return {key: HIDDEN if value and is_secret(str(key)) else shown(value) for key, value in given.items()}
    return given


def _profile(tx: Connection, profile_id: str) -> Spec:
    chosen = select(schema.profile.c.spec).where(schema.profile.c.id == profile_id)
    return check_profile(tx.execute(chosen).scalar_one())


def _by_policy(
    tx: Connection, cluster_id: str | None, inputs: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the inputs of a recovery with what the health policy of its cluster says, and what its action shows of it.

    The policy says what is done where the request names no operation.
    """
    bound = bindings.of_cluster(tx, cluster_id) if cluster_id is not None else []
    is_health = (each for each in bound if each.enabled and each.policy_type.startswith(f"{HEALTH.name}-"))
    policy = next(is_health, None)
    if policy is None:
        return inputs, {}
    spec = stored_policy(policy.spec)
    return recovery_inputs(spec, inputs), {"health": recover_data(spec)}


def _members(tx: Connection, cluster: ClusterRow) -> list[NodeRow]:
    members_page = Page(None, {"cluster_id": [cluster.id]}, (Order("number"),))
    return [row for row in listing.page(tx, NodeRow, members_page, living.is_living_node()) if not row.leaving]


def _split(given: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the parameters of an operation on a cluster, and the filters."""
    parameters, filters = given.get("params") or {}, given.get("filters") or {}
    if not isinstance(parameters, Mapping) or not isinstance(filters, Mapping):
        raise Rejected("BadRequest", "The params and filters of an operation have to be maps.")
    strange = sorted(str(key) for key in filters if key not in FILTERS)
    if strange:
        message = "\n".join(f"Filter key '{key}' is unsupported" for key in strange)
        raise Rejected("BadRequest", f"{message}.", remedy=f"there is {', '.join(FILTERS)}")
    beside = {key: value for key, value in given.items() if key not in ("params", "filters")}
    return {**beside, **parameters}, filters


def _fitting(
    tx: Connection, nodes: Sequence[NodeRow], filters: Mapping[str, Any], statuses: StatusesOf
) -> list[NodeRow]:
    """Return the nodes that have one of the values that each filter allows."""
    wanted = {name: value if isinstance(value, list) else [value] for name, value in filters.items()}
    found = statuses(tx, nodes) if "status" in wanted else {}

    def fits(row: NodeRow) -> bool:
        values = {"status": found.get(row.id), "role": row.role or "", "name": row.name, "profile_id": row.profile_id}
        return all(values[name] in allowed for name, allowed in wanted.items())

    return [row for row in nodes if fits(row)]
