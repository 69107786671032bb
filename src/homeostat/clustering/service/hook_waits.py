"""Lifecycle hooks: removal of nodes after a notification and its answer or timeout (ADR 0075).

The progress is in rows, so another worker continues after a crash.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from homeostat.clustering.decisions import hooks
from homeostat.clustering.decisions.hooks import Next
from homeostat.clustering.decisions.states import ActionStatus, NodeAction, action_name
from homeostat.clustering.service.changes import ClusterChange, StartedAction
from homeostat.clustering.service.clusters import ClusterService
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import listing, node_views, waiting_actions
from homeostat.clustering.store.waiting_actions import HOOK
from homeostat.model.caller import Caller
from homeostat.model.errors import HomeostatError, Rejected
from homeostat.notifications.sinks import Sinks
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ActionRow, ClusterRow, NodeRow
from homeostat.store.sql import typed

LOG = logging.getLogger(__name__)
TAKEN_S = 30.0
"""Time for which a worker owns an action while sending its message: longer than a send may take."""
DUE_MAX = 100
"""Actions of one round, at most."""
_node = schema.node


class LifecycleHooks:
    """Continues actions that wait for lifecycle hooks."""

    def __init__(self, db: Database, clusters: ClusterService) -> None:
        self._db = db
        self._clusters = clusters

    def complete(self, scope: RequestScope, identity: str, token: str) -> StartedAction:
        """Release a node whose hook is complete; an action in any other status stays unchanged.

        Args:
            identity: Id or name of the cluster.
            token: The `lifecycle_action_token` of the message.

        Raises:
            Rejected: ResourceNotFound: there is no such cluster or action.
        """
        with self._db.write() as tx:
            cluster = self._clusters.get(tx, scope, identity)
            row = listing.get(tx, ActionRow, scope.reach, token, schema.action.c.cluster_id == cluster.id)
            if row.status == ActionStatus.WAITING_LIFECYCLE_COMPLETION:
                waiting_actions.make_ready(tx, row, tx.now())
        return StartedAction(cluster.id, row.id)

    def tidier(self, sinks: Sinks) -> "HookWorker":
        """Return the background task that runs due hooks; `sinks` send the messages."""
        return HookWorker(self._db, self, sinks)

    def release_nodes(self, cluster_id: str, owner: ActionRow) -> None:
        """Remove all nodes of a cluster whose hook has ended; `owner` is the action of one of them.

        Raises:
            Rejected: The cluster does not exist, or has a conflicting action.
        """
        caller = Caller(user=owner.user, project=owner.project, user_id=owner.user, domain=owner.domain)
        self._clusters.change(RequestScope(caller, owner.project), cluster_id, self._leaving)

    def _leaving(self, tx: Transaction, cluster: ClusterRow) -> ClusterChange:
        now = tx.now()
        ready = [row for row in waiting_actions.in_cluster(tx, cluster.id) if _is_ready(row, now)]
        conditions = (_node.c.id.in_([row.target for row in ready]), _node.c.leaving.is_(False))
        # Nodes that leave already, by another request, only have their actions continued.
        numbers = tx.execute(select(_node.c.number).where(_node.c.cluster_id == cluster.id, *conditions)).scalars()
        ids = tuple(row.id for row in ready)
        if not ids:
            raise Rejected("ActionConflict", "nothing waits any more")
        name = action_name(NodeAction.DELETE, ids[0])
        return ClusterChange(NodeAction.DELETE, name, {}, {}, leaving=tuple(sorted(numbers)), awaited=ids)


def _is_ready(row: ActionRow, now: float) -> bool:
    if row.status == ActionStatus.READY:
        return True
    return HOOK in row.data and hooks.next_step(row.data[HOOK], now).next is Next.GO


class HookWorker:
    """Sends due messages and removes due nodes. One thread calls it, about once a second."""

    def __init__(self, db: Database, waits: LifecycleHooks, sinks: Sinks) -> None:
        self._db = db
        self._waits = waits
        self._sinks = sinks

    def tidy(self) -> int:
        """Process the due actions, and return their number.

        Raises:
            Transient: The database does not answer.
        """
        with self._db.read() as tx:
            now = tx.now()
            rows = waiting_actions.due(tx, now, DUE_MAX)
        ready: dict[str, list[ActionRow]] = {}
        for row in rows:
            if _is_ready(row, now):
                ready.setdefault(row.cluster_id or "", []).append(row)
            else:
                self._look_at(row, now)
        for cluster_id, ready_rows in ready.items():
            self._go(cluster_id, ready_rows, now)
        return len(rows)

    def _look_at(self, row: ActionRow, now: float) -> None:
        """Send the message if it is due, and store the time of the next step."""
        hook, step = dict(row.data[HOOK]), hooks.next_step(row.data[HOOK], now)
        due_at = step.at
        if step.next is Next.NOTIFY:
            with self._db.write() as tx:
                # The time now, not the start of the round: earlier messages of the round may have taken long.
                until = min(tx.now() + TAKEN_S, max(hook["ends_at"], step.at))
                taken = waiting_actions.take(tx, row, until)
            # Another worker is sending this message. If it dies on the way, the action is due again after `TAKEN_S`.
            if not taken:
                return
            hook["tried"] += 1
            hook["sent"] = self._notified(row, hook)
            due_at = hook["ends_at"] if hook["sent"] else step.at
        with self._db.write() as tx:
            waiting_actions.put_off(tx, row, hook, due_at)

    def _notified(self, row: ActionRow, hook: Mapping[str, Any]) -> bool:
        """Send the message about a node; return whether the receiver accepted it."""
        with self._db.read() as tx:
            rows = typed.rows(NodeRow, tx.execute(select(_node).where(_node.c.id == row.target)))
            views = node_views.nodes(tx, rows.all(), {}, tainted=False)
        physical_id = (views[0]["physical_id"] or "") if views else ""
        body = hooks.message(row.id, row.target, physical_id)
        try:
            self._sinks.post(row.project, hooks.settings(hook), body)
        except HomeostatError as error:
            LOG.warning("the hook of action %s was not taken, it is tried again: %s", row.id, error)
            return False
        return True

    def _go(self, cluster_id: str, rows: Sequence[ActionRow], now: float) -> None:
        ids = [row.id for row in rows]
        try:
            self._waits.release_nodes(cluster_id, rows[0])
        except Rejected as error:
            with self._db.write() as tx:
                if error.fault == "ResourceNotFound":
                    waiting_actions.cancel(tx, rows, now, "The cluster is gone.")
                else:
                    LOG.info("actions %s wait on: %s", ids, error)
                    waiting_actions.delay(tx, ids, now + hooks.RETRY_S)
