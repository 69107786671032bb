"""Requests for nodes: written into the rows of their servers or stacks, in a short transaction.

The engine carries a request out when no other action on the row is in progress (`model.requested`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from homeostat.clustering.decisions.requests import NodeRequest
from homeostat.clustering.decisions.server_profile import SERVER
from homeostat.clustering.store import living
from homeostat.clustering.store.requests import RequestedNodes
from homeostat.model.errors import Rejected
from homeostat.model.marks import NO_MARKS
from homeostat.model.requested import Request
from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.encryption.encrypted_arguments import encrypt
from homeostat.store.schema.rows import NodeRow
from homeostat.store.shards import shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks, stacks

QUEUED_MAX = 5
"""Maximum of pending requests of one row."""
NAMES_MAX = 400
"""Names in one query."""
NOTHING = "It has no physical object yet."
ELSEWHERE = "It is a stack in another region: ask for it there, or recover it by RECREATE."
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class _Place:
    """The row for a request of a node.

    Attributes:
        depth: Nesting depth of the stack of the row.
        row: The row; None if absent, and `problem` is the reason.
    """

    node: NodeRow
    depth: int = 0
    row: Resource | None = None
    problem: str = ""

    @property
    def shard(self) -> tuple[int, str, int]:
        assert self.row is not None, f"node {self.node.id} has no row"
        return self.depth, self.row.stack_id, self.row.shard


class RequestService:
    """Writes requests into the rows of nodes."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def place(
        self,
        tx: Transaction,
        nodes: Sequence[NodeRow],
        node_request: NodeRequest,
        request_id: str,
        by: str | None,
        timeout_s: float,
    ) -> RequestedNodes:
        """Write a request into the rows of nodes, and wake their shards.

        Args:
            request_id: Id of the request and of its action.
            by: The user.
            timeout_s: Seconds after which the request fails.

        Raises:
            Rejected: StackLocked; ActionConflict: a node has too many pending requests.
        """
        # Looked up twice, as in `services.marks`: first for the rows to lock, then, under the locks, for their state.
        held = self._hold(tx, _places(tx, nodes, node_request))
        places = _places(tx, nodes, node_request)
        now = tx.now()
        request = Request(
            request_id,
            node_request.operation,
            now,
            now + timeout_s,
            node_request.aim,
            encrypt(self._db.keys, node_request.arguments),
            by,
            node_request.if_unwell,
        )
        failures: dict[str, str] = {}
        written: dict[str, Writes] = {}
        for place in places:
            if place.row is None or place.shard not in held:
                failures[place.node.id] = f"Node {place.node.name}: {place.problem or NOTHING}"
                continue
            marks = place.row.marks or NO_MARKS
            if len(marks.requested) >= QUEUED_MAX:
                message = f"{QUEUED_MAX} requests of node {place.node.name} have not ended yet: ask again after that."
                raise Rejected("ActionConflict", message)
            place.row.marks = replace(marks, requested=(*marks.requested, request))
            written.setdefault(place.row.stack_id, Writes()).intend(place.row)
        for stack_id, writes in written.items():
            shard_state.record(tx, stack_id, writes, now)
        return RequestedNodes([place.node.id for place in places], failures)

    def _hold(self, tx: Transaction, places: Sequence[_Place]) -> set[tuple[int, str, int]]:
        """Lock the stacks of rows, against passes and other requests; wake and return the shards."""
        held = {place.shard for place in places if place.row is not None}
        for _, stack_id in sorted({(depth, stack_id) for depth, stack_id, _ in held}):
            locks.changeable(tx, stack_id)
        now = tx.now()
        for _, stack_id, number in sorted(held, key=lambda shard: (-shard[0], *shard[1:])):
            shards.wake(tx, stack_id, now, shards.USER, [number])
        return held


def _places(tx: Transaction, nodes: Sequence[NodeRow], node_request: NodeRequest) -> list[_Place]:
    groups = living.stacks_of(tx, {node.stack_id for node in nodes})
    places: list[_Place] = []
    for stack_id, stack in groups.items():
        in_stack = [node for node in nodes if node.stack_id == stack_id]
        if stack.group_id is None:
            places += [_Place(node, problem=NOTHING) for node in in_stack]
            continue
        rows = _rows(tx, stack.group_id, [str(node.number) for node in in_stack])
        places += [_place(tx, node, rows.get(str(node.number)), node_request) for node in in_stack]
    return places


def _place(tx: Transaction, node: NodeRow, row: Resource | None, node_request: NodeRequest) -> _Place:
    if row is None:
        return _Place(node, problem=NOTHING)
    kind = kind_of(row.type)
    if not node_request.concerns_server or kind == "server":
        return _Place(node, 1, row)
    if kind != STACK:
        return _Place(node, problem=ELSEWHERE)
    inside = _rows(tx, row.handle, [SERVER]).get(SERVER) if row.handle else None
    if inside is None or kind_of(inside.type) != "server":
        # A stack from a profile of the user's: it stands for no server.
        return _Place(node, 1, row)
    return _Place(node, 2, inside)


def _rows(tx: Transaction, stack_id: str, names: Sequence[str]) -> Mapping[str, Resource]:
    """Return name -> current row of a stack; names without a row are absent."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        return {}
    by_name: dict[str, list[Resource]] = {}
    for start in range(0, len(names), NAMES_MAX):
        batch = names[start : start + NAMES_MAX]
        loaded, _ = shard_state.load_where(tx, _resource.c.stack_id == stack_id, _resource.c.name.in_(batch))
        for row in loaded.values():
            by_name.setdefault(row.name, []).append(row)
    facts = stacks.facts(stack)
    chosen = {name: current_row(rows, facts) for name, rows in by_name.items()}
    return {name: row for name, row in chosen.items() if row is not None}
