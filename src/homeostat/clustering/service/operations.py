"""Operations, checks and recoveries by request of the user: an action, and a request in the row of each node."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from homeostat.clustering.decisions import states
from homeostat.clustering.decisions.health_policy import HEALTH, recover_data, recovery_inputs
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.requests import CHECKED, NodeRequest, operation_of, recovery_of
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import ClusterAction, NodeAction, NodeStatus
from homeostat.clustering.service.changes import StartedAction
from homeostat.clustering.service.clusters import ClusterService, check_free
from homeostat.clustering.service.nodes import NodeService
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
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.stacks import action_begin, locks
from homeostat.templates import HIDDEN

FILTERS = ("name", "profile_id", "status", "role")
StatusesOf = Callable[[Transaction, Sequence[NodeRow]], Mapping[str, str]]
"""Returns the statuses of nodes, by their ids."""


class OperationService:
    """Requests operations, checks and recoveries of nodes."""

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
            Rejected: ResourceNotFound; BadRequest: unknown operation; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            request = operation_of(_profile(tx, row.profile_id), operation, parameters)
            inputs = {"operation": operation, "params": parameters or {}}
            return self._ask_node(tx, scope, row, NodeAction.OPERATION, request, inputs)

    def check_node(self, scope: RequestScope, identity: str, inputs: Mapping[str, Any]) -> StartedAction:
        """Request a check of a node.

        Raises:
            Rejected: ResourceNotFound, StackLocked, ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            return self._ask_node(tx, scope, row, NodeAction.CHECK, CHECKED, inputs)

    def recover_node(self, scope: RequestScope, identity: str, inputs: Mapping[str, Any]) -> StartedAction:
        """Request a recovery of a node.

        Raises:
            Rejected: ResourceNotFound; BadRequest; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            row = self._nodes.get(tx, scope, identity)
            inputs_by_policy, data = _by_policy(tx, row.cluster_id, inputs)
            request = recovery_of(_profile(tx, row.profile_id), inputs_by_policy)
            return self._ask_node(tx, scope, row, NodeAction.RECOVER, request, inputs, data)

    def _ask_node(
        self,
        tx: Transaction,
        scope: RequestScope,
        row: NodeRow,
        action: NodeAction,
        request: NodeRequest,
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
        operation = request.operation if action == NodeAction.OPERATION else ""
        name = states.action_name(action, row.id, operation)
        return self._ask(
            tx, scope, [row], request, NewAction(action, name, row.id, row.cluster_id, shown(inputs), timeout), data
        )

    # -- clusters ----------------------------------------------------------------------------------------------------

    def operate_cluster(
        self, scope: RequestScope, identity: str, operation: str, fields: Mapping[str, Any], statuses: StatusesOf
    ) -> StartedAction:
        """Perform an operation on the nodes of a cluster that match filters.

        Args:
            identity: Id or name of the cluster.
            operation: Name of the operation.
            fields: `{params, filters}`; further keys are parameters, too: openstacksdk sends them unnested.
            statuses: Returns the statuses of nodes.

        Raises:
            Rejected: ResourceNotFound; BadRequest: unknown operation, or no matching node; StackLocked;
                ActionConflict.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            parameters, filters = _split(fields)
            request = operation_of(_profile(tx, cluster.profile_id), operation, parameters)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.OPERATION)
            nodes = _fitting(tx, _members(tx, cluster), filters, statuses)
            if not nodes:
                raise Rejected("BadRequest", "No node (matching the filter) could be found.")
            inputs = {"operation": operation, "params": parameters, "filters": dict(filters)}
            return self._ask_cluster(tx, scope, cluster, nodes, ClusterAction.OPERATION, request, inputs)

    def recover_cluster(
        self, scope: RequestScope, identity: str, inputs: Mapping[str, Any], statuses: StatusesOf
    ) -> StartedAction:
        """Request a recovery of the unhealthy nodes of a cluster.

        With `check` every node is checked first; without, nodes with a status other than ACTIVE are recovered. With
        `check_capacity` missing nodes are created.

        Raises:
            Rejected: ResourceNotFound; BadRequest; StackLocked; ActionConflict.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            inputs_by_policy, data = _by_policy(tx, cluster.id, inputs)
            request = recovery_of(_profile(tx, cluster.profile_id), inputs_by_policy, of_cluster=True)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.RECOVER)
            nodes = _members(tx, cluster)
            if not request.if_unwell:
                status_of = statuses(tx, nodes)
                nodes = [node for node in nodes if status_of[node.id] != NodeStatus.ACTIVE]
            return self._ask_cluster(tx, scope, cluster, nodes, ClusterAction.RECOVER, request, inputs, data)

    def _ask_cluster(
        self,
        tx: Transaction,
        scope: RequestScope,
        cluster: ClusterRow,
        nodes: Sequence[NodeRow],
        action: ClusterAction,
        request: NodeRequest,
        inputs: Mapping[str, Any],
        data: Mapping[str, Any] = {},
    ) -> StartedAction:
        operation = request.operation if action == ClusterAction.OPERATION else ""
        name = scope.action_name or states.action_name(action, cluster.id, operation)
        new = NewAction(action, name, cluster.id, cluster.id, shown(inputs), cluster.timeout)
        return self._ask(tx, scope, nodes, request, new, data)

    def _ask(
        self,
        tx: Transaction,
        scope: RequestScope,
        nodes: Sequence[NodeRow],
        request: NodeRequest,
        new: NewAction,
        data: Mapping[str, Any],
    ) -> StartedAction:
        """Write a request into the rows of nodes, and store the action.

        If nodes to create have no rows yet, the stack is converged, and the action ends with the stack's.
        """
        root = new.cluster_id or nodes[0].stack_id
        # Stacks are locked from the root down.
        stack = locks.changeable(tx, root)
        identity = str(uuid.uuid4())
        placed = self._requests.place(tx, nodes, request, identity, scope.caller.user, new.timeout)
        now = tx.now()
        action_data = {**data, **placed.data()}
        if request.check_capacity and placed.failures:
            action_begin.converge(tx, stack, now, self._stacks.quotas.timeout_s)
            action_data = dict(data)
        action = replace(new, stack_id=root, id=identity, data=action_data)
        return StartedAction(new.target, actions.add(tx, action, scope.owner, now))


def shown(inputs: Any) -> Any:
    """Return the inputs of an action with the secrets hidden."""
    if isinstance(inputs, Mapping):
        return {key: HIDDEN if value and is_secret(str(key)) else shown(value) for key, value in inputs.items()}
    return inputs


def _profile(tx: Transaction, profile_id: str) -> Spec:
    chosen = select(schema.profile.c.spec).where(schema.profile.c.id == profile_id)
    return check_profile(tx.execute(chosen).scalar_one())


def _by_policy(
    tx: Transaction, cluster_id: str | None, inputs: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the inputs of a recovery and the data of its action, with defaults from the cluster's health policy.

    The policy has the operation if the request names none.
    """
    bound = bindings.of_cluster(tx, cluster_id) if cluster_id is not None else []
    is_health = (binding for binding in bound if binding.enabled and binding.policy_type.startswith(f"{HEALTH.name}-"))
    policy = next(is_health, None)
    if policy is None:
        return inputs, {}
    spec = stored_policy(policy.spec)
    return recovery_inputs(spec, inputs), {"health": recover_data(spec)}


def _members(tx: Transaction, cluster: ClusterRow) -> list[NodeRow]:
    members_page = Page(None, {"cluster_id": [cluster.id]}, (Order("number"),))
    return [row for row in listing.page(tx, NodeRow, members_page, living.is_living_node()) if not row.leaving]


def _split(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the parameters and the filters of an operation on a cluster."""
    parameters, filters = fields.get("params") or {}, fields.get("filters") or {}
    if not isinstance(parameters, Mapping) or not isinstance(filters, Mapping):
        raise Rejected("BadRequest", "The params and filters of an operation have to be maps.")
    strange = sorted(str(key) for key in filters if key not in FILTERS)
    if strange:
        message = "\n".join(f"Filter key '{key}' is unsupported" for key in strange)
        raise Rejected("BadRequest", f"{message}.", remedy=f"there is {', '.join(FILTERS)}")
    unnested = {key: value for key, value in fields.items() if key not in ("params", "filters")}
    return {**unnested, **parameters}, filters


def _fitting(
    tx: Transaction, nodes: Sequence[NodeRow], filters: Mapping[str, Any], statuses: StatusesOf
) -> list[NodeRow]:
    """Return the nodes that match all filters; a filter has a value or a list of allowed values."""
    wanted = {name: value if isinstance(value, list) else [value] for name, value in filters.items()}
    status_of = statuses(tx, nodes) if "status" in wanted else {}

    def fits(row: NodeRow) -> bool:
        values = {
            "status": status_of.get(row.id),
            "role": row.role or "",
            "name": row.name,
            "profile_id": row.profile_id,
        }
        return all(values[name] in allowed for name, allowed in wanted.items())

    return [row for row in nodes if fits(row)]
