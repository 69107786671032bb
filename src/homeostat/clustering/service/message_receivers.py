"""Receivers of messages: messages in a queue of the project start actions of clusters.

Queue and subscription are resources of a stack, so the engine creates and deletes them despite crashes. Zaqar posts
each message to the URL `notify` of the receiver, with a token from a trust of the user.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, func, insert, select

from homeostat.clustering.service.requester import RequestScope
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.model.limits import MESSAGE_RECEIVERS, MESSAGE_RECEIVERS_MAX, SumLimit
from homeostat.services.pipeline.request import CheckTypes, StackRequest
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema import json_size
from homeostat.store.schema.rows import ReceiverRow
from homeostat.store.sql import sizes, typed

QUEUE, STACK = "queue_name", "stack_id"
"""Keys of the channel of a receiver; users see the queue name only."""
_receiver = schema.receiver


def check_size(tx: Transaction, limit: SumLimit, added: Mapping[str, Any], *where: ColumnElement[bool]) -> None:
    """Check the size of added parameters and actors, together with existing receivers; `where` selects their rows.

    Raises:
        Rejected: OverQuota.
    """
    size = sizes.total(tx, (_receiver.c.params, _receiver.c.actor), *where)
    limit.check(0, size, json_size(dict(added)), 0)


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """The action that a message requests.

    Attributes:
        cluster: Id or name of a cluster.
        action: Such as `CLUSTER_SCALE_OUT`.
        params: Inputs of the action.
    """

    cluster: str
    action: str
    params: Mapping[str, Any]


class MessageReceivers:
    """Creates and deletes receivers of messages."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stacks = stack_service

    def create(
        self, scope: RequestScope, name: str, columns: Mapping[str, Any], base: str, check_types: CheckTypes | None
    ) -> ReceiverRow:
        """Store a receiver, and the stack of its queue and subscription; return its row.

        Args:
            columns: actor and params.
            base: URL of the API for Zaqar.
            check_types: See `StackRequest`.

        Raises:
            Rejected: BadRequest: the cloud has no Zaqar; OverQuota.
            Transient: A cloud does not answer.
        """
        stack_id = self._stacks.entropy.stack_id()
        identity = self._stacks.entropy.stack_id()
        queue = f"senlin-receiver-{identity}"
        values = {
            "id": identity,
            **scope.owner,
            "name": name,
            "type": "message",
            "cluster_id": None,
            "action": None,
            "channel": {QUEUE: queue, STACK: stack_id},
            **columns,
        }

        def also(tx: Transaction) -> None:
            of_messages = (_receiver.c.project == scope.project, _receiver.c.type == "message")
            receivers = tx.execute(select(func.count()).where(*of_messages)).scalar_one()
            if receivers >= MESSAGE_RECEIVERS_MAX:
                message = f"a project has at most {MESSAGE_RECEIVERS_MAX} receivers of messages: delete some first"
                raise Rejected("OverQuota", f"Quota exceeded: {message}")
            check_size(tx, MESSAGE_RECEIVERS, columns, *of_messages)
            tx.execute(insert(_receiver).values(**values, created_at=tx.now()))

        request = StackRequest(
            template=_template(queue, f"{base}/receivers/{identity}/notify"), check_types=check_types
        )
        try:
            self._stacks.create(
                scope.project,
                scope.caller.user,
                f"receiver-{identity}",
                request,
                by=scope.caller,
                stack_id=stack_id,
                also=also,
            )
        except Rejected as error:
            if error.fault != "ResourceTypeUnavailable":
                raise
            message = f"Receivers of type message need messaging (Zaqar), which this cloud does not have: {error}"
            raise Rejected("BadRequest", f"{message}. Make a receiver of type webhook.") from error
        with self._db.read() as tx:
            return typed.rows(ReceiverRow, tx.execute(select(_receiver).where(_receiver.c.id == identity))).one()

    def delete_stack(self, scope: RequestScope, row: ReceiverRow, also: Any) -> None:
        """Delete the stack of a receiver with the writes of `also`, which happen also if the stack is gone already."""
        try:
            self._stacks.delete(row.channel[STACK], scope.caller, also=also)
        except Rejected as error:
            # A user may have deleted the stack itself: the receiver has to go nevertheless.
            if error.fault != stack_not_found("").fault:
                raise
            with self._db.write() as tx:
                also(tx)


def _template(queue: str, address: str) -> Mapping[str, Any]:
    scheme, _, rest = address.partition("://")
    # Zaqar creates the trust for a subscriber with this prefix, and posts with its token.
    subscriber = f"trust+{scheme}://{rest}"
    return {
        "heat_template_version": "2021-04-16",
        "resources": {
            "queue": {"type": "OS::Zaqar::Queue", "properties": {"name": queue}},
            "subscription": {
                "type": "OS::Zaqar::Subscription",
                "properties": {"queue_name": {"get_resource": "queue"}, "subscriber": subscriber},
            },
        },
    }


def parse_message(body: Any) -> RequestedAction | None:
    """Return the action that a message requests; None for an invalid message.

    Args:
        body: Body of Zaqar's request: a notification with the message under `body`, or the message itself.
    """
    content = body.get("body", body) if isinstance(body, Mapping) else None
    if isinstance(content, str):
        try:
            content = orjson.loads(content)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(content, Mapping):
        return None
    cluster, action, params = content.get("cluster"), content.get("action"), content.get("params") or {}
    if not isinstance(cluster, str) or not isinstance(action, str) or not isinstance(params, Mapping):
        return None
    return RequestedAction(cluster, action, params)
