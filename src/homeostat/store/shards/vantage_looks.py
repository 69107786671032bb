"""What workers in several places have found of the URLs of members, by shard and place (ADR 0080).

As with other looks, no lease is needed: a worker takes a shard for its place by moving `due_at`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, case, delete, or_, select, tuple_, update

from homeostat.model.node_health import Finding
from homeostat.model.vantage import Seen, VantageLook
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.schema.rows import VantageLookRow
from homeostat.store.shards.health import TAKEN_S, Shard
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

_look, _shard = schema.vantage_look, schema.shard


@dataclass(frozen=True, slots=True)
class TakenLook:
    """A shard whose URLs are to be asked from one place.

    Attributes:
        whole: Whether all are due; else only those that are asked again.
        before: What was found from there last.
    """

    stack_id: str
    number: int
    project: str
    whole: bool
    whole_at: float
    before: VantageLook


def cover(db: Database, tx: Connection, shard: Shard, names: Collection[str], now: float) -> None:
    """Have the URLs of a shard asked from these places, and from no others."""
    condition = and_(_look.c.stack_id == shard[0], _look.c.number == shard[1])
    there = set(tx.execute(select(_look.c.vantage).where(condition)).scalars())
    if there - set(names):
        tx.execute(delete(_look).where(condition, _look.c.vantage.in_(there - set(names))))
    new = sorted(set(names) - there)
    if new:
        rows = [
            {"stack_id": shard[0], "number": shard[1], "vantage": each, "due_at": now, "whole_at": now, "found": {}}
            for each in new
        ]
        tx.execute(db.insert(_look).on_conflict_do_nothing(), rows)


def of_shards(tx: Connection, these: Sequence[Shard]) -> dict[Shard, dict[str, VantageLook]]:
    """Return what was found, by shard and place."""
    found: dict[Shard, dict[str, VantageLook]] = {}
    chosen = select(_look).where(tuple_(_look.c.stack_id, _look.c.number).in_(list(these)))
    for row in typed.rows(VantageLookRow, tx.execute(chosen)):
        found.setdefault((row.stack_id, row.number), {})[row.vantage] = _look_of(row)
    return found


class _TakenRow(NamedTuple):
    """The columns of `schema.vantage_look`, with the project of the shard."""

    stack_id: str
    number: int
    vantage: str
    due_at: float
    whole_at: float
    looked_at: float | None
    found: Any
    project: str


def take(tx: Connection, vantage: str, now: float, limit: int) -> list[TakenLook]:
    """Take shards whose URLs are due to be asked from a place, for `TAKEN_S` seconds."""
    found = [
        TakenLook(row.stack_id, row.number, row.project, row.whole_at <= now, row.whole_at, _look_of(row))
        for row in typed.rows(_TakenRow, _due(tx, vantage, now, limit))
    ]
    for each in found:
        tx.execute(update(_look).where(*_this(vantage, (each.stack_id, each.number))).values(due_at=now + TAKEN_S))
    return found


@prepared
def _due(vantage: str, now: float, limit: int) -> Select[Any]:
    same = (_shard.c.stack_id == _look.c.stack_id, _shard.c.number == _look.c.number)
    # Not joined, so that no shard is locked: MariaDB locks the rows of all tables of a query.
    project = select(_shard.c.project).where(*same).scalar_subquery().label("project")
    conditions = (_look.c.vantage == vantage, _look.c.due_at <= now)
    chosen = select(_look, project).where(*conditions).order_by(_look.c.due_at).limit(limit)
    return chosen.with_for_update(skip_locked=True)


def store(
    tx: Connection, vantage: str, shard: Shard, until: float, due_at: float, whole_at: float, look: VantageLook
) -> None:
    """Store what was found, and give the shard back.

    One that others have taken meanwhile stays with them. What was found of it is stored all the same, unless something
    newer is: where asking takes longer than a shard is taken for, the place would be blind for ever. Nothing is stored
    of a shard whose policy has changed meanwhile: then nothing was found of it yet.

    Args:
        tx: The transaction.
        vantage: The place.
        shard: The shard.
        until: Until when it was taken.
        due_at: When it is due next.
        whole_at: When its next whole look is due.
        look: What was found.
    """
    found = {
        key: {str(number): [each.finding.value, each.evidence, each.attempts] for number, each in still_taken.items()}
        for key, still_taken in look.findings.items()
    }
    still_taken = _look.c.due_at == until
    values = {
        "due_at": case((still_taken, due_at), else_=_look.c.due_at),
        "whole_at": case((still_taken, whole_at), else_=_look.c.whole_at),
        "looked_at": look.looked_at,
        "found": found,
    }
    tx.execute(
        update(_look)
        .where(*_this(vantage, shard), or_(still_taken, _look.c.looked_at <= look.looked_at))
        .values(**values)
    )


def forget(tx: Connection, vantage: str, shard: Shard, until: float) -> None:
    """Have a shard asked no more from a place."""
    tx.execute(delete(_look).where(*_this(vantage, shard), _look.c.due_at == until))


def _this(vantage: str, shard: Shard) -> tuple[Any, ...]:
    return (_look.c.vantage == vantage, _look.c.stack_id == shard[0], _look.c.number == shard[1])


def _look_of(row: VantageLookRow | _TakenRow) -> VantageLook:
    stored: Mapping[str, Mapping[str, Sequence[Any]]] = row.found
    return VantageLook(
        row.looked_at,
        {
            key: {int(number): Seen(Finding(one[0]), one[1], one[2]) for number, one in cells.items()}
            for key, cells in stored.items()
        },
    )
