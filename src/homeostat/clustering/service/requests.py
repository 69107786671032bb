"""Requests for what nodes are: written into the rows of their servers or stacks, in a short transaction.

Never waits for the engine: the planner carries each out when nothing else goes on with the row (`model.requested`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.clustering.decisions.requests import Ask
from homeostat.clustering.decisions.server_profile import SERVER
from homeostat.clustering.store import living
from homeostat.clustering.store.requests import Asked
from homeostat.model.errors import Rejected
from homeostat.model.marks import NO_MARKS
from homeostat.model.requested import Request
from homeostat.model.world import Resource
from homeostat.planner.current import current_row
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_arguments import encrypt
from homeostat.store.schema.rows import NodeRow
from homeostat.store.shards import shard_state, shards
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks, stacks

QUEUED_MAX = 5
"""Requests that one row may have at a time."""
NAMES_MAX = 400
"""Names in one query."""
NOTHING = "It has no physical object yet."
ELSEWHERE = "It is a stack in another region: ask for it there, or recover it by RECREATE."
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a request for a node goes.

    Attributes:
        depth: How deep the stack of its row is.
        row: The row; None where there is none, and `problem` says why.
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
    """Asks for something of the rows that nodes are."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def place(
        self, tx: Connection, nodes: Sequence[NodeRow], ask: Ask, request_id: str, by: str | None, timeout_s: float
    ) -> Asked:
        """Write a request into the rows of nodes, and wake their shards.

        Args:
            tx: The transaction.
            nodes: Rows of the nodes.
            ask: What is asked.
            request_id: Id of the request: that of the action.
            by: Who asks.
            timeout_s: Seconds after which it fails.

        Raises:
            Rejected: StackLocked; ActionConflict where too much was asked of a node already.
        """
        # Found twice, as in `services.marks`: first to know what to lock, then, under the locks, as it is now.
        held = self._hold(tx, _found(tx, nodes, ask))
        places = _found(tx, nodes, ask)
        now = self._db.now_of(tx)
        request = Request(
            request_id,
            ask.operation,
            now,
            now + timeout_s,
            ask.aim,
            encrypt(self._db.keys, ask.arguments),
            by,
            ask.if_unwell,
        )
        failures: dict[str, str] = {}
        written: dict[str, Writes] = {}
        for each in places:
            if each.row is None or each.shard not in held:
                failures[each.node.id] = f"Node {each.node.name}: {each.problem or NOTHING}"
                continue
            marks = each.row.marks or NO_MARKS
            if len(marks.requested) >= QUEUED_MAX:
                message = f"{QUEUED_MAX} requests of node {each.node.name} have not ended yet: ask again after that."
                raise Rejected("ActionConflict", message)
            each.row.marks = replace(marks, requested=(*marks.requested, request))
            written.setdefault(each.row.stack_id, Writes()).intend(each.row)
        for stack_id, writes in written.items():
            shard_state.record(self._db, tx, stack_id, writes, now)
        return Asked([each.node.id for each in places], failures)

    def _hold(self, tx: Connection, places: Sequence[_Place]) -> set[tuple[int, str, int]]:
        """Lock the stacks of rows, against passes and other requests, and wake their shards; return these."""
        held = {each.shard for each in places if each.row is not None}
        for _, stack_id in sorted({(depth, stack_id) for depth, stack_id, _ in held}):
            locks.changeable(self._db, tx, stack_id)
        now = self._db.now_of(tx)
        for _, stack_id, number in sorted(held, key=lambda each: (-each[0], *each[1:])):
            shards.wake(tx, stack_id, now, shards.USER, [number])
        return held


def _found(tx: Connection, nodes: Sequence[NodeRow], ask: Ask) -> list[_Place]:
    """Return where a request for each node goes."""
    groups = living.stacks_of(tx, {each.stack_id for each in nodes})
    found: list[_Place] = []
    for stack_id, of in groups.items():
        in_stack = [each for each in nodes if each.stack_id == stack_id]
        if of.group_id is None:
            found += [_Place(each, problem=NOTHING) for each in in_stack]
            continue
        rows = _rows(tx, of.group_id, [str(each.number) for each in in_stack])
        found += [_place(tx, each, rows.get(str(each.number)), ask) for each in in_stack]
    return found


def _place(tx: Connection, node: NodeRow, row: Resource | None, ask: Ask) -> _Place:
    if row is None:
        return _Place(node, problem=NOTHING)
    kind = kind_of(row.type)
    if not ask.concerns_server or kind == "server":
        return _Place(node, 1, row)
    if kind != STACK:
        return _Place(node, problem=ELSEWHERE)
    inside = _rows(tx, row.handle, [SERVER]).get(SERVER) if row.handle else None
    if inside is None or kind_of(inside.type) != "server":
        # A stack that a user has defined: there is no server that it stands for.
        return _Place(node, 1, row)
    return _Place(node, 2, inside)


def _rows(tx: Connection, stack_id: str, names: Sequence[str]) -> Mapping[str, Resource]:
    """Return the rows that stand for these names in a stack."""
    stack = stacks.get(tx, stack_id)
    if stack is None or stack.deleted_at is not None:
        return {}
    by_name: dict[str, list[Resource]] = {}
    for start in range(0, len(names), NAMES_MAX):
        some = names[start : start + NAMES_MAX]
        loaded, _ = shard_state.load_where(tx, _resource.c.stack_id == stack_id, _resource.c.name.in_(some))
        for row in loaded.values():
            by_name.setdefault(row.name, []).append(row)
    facts = stacks.facts(stack)
    chosen = {name: current_row(rows, facts) for name, rows in by_name.items()}
    return {name: row for name, row in chosen.items() if row is not None}
