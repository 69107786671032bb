"""Findings of workers in several places about the URLs of members, by shard and place (ADR 0080).

As with all looks, no lease is needed: a worker takes a shard for its place by moving `due_at`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, case, delete, or_, select, tuple_, update

from homeostat.model.node_health import Finding
from homeostat.model.vantage import Seen, VantageLook
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards.health import TAKEN_S, Shard
from homeostat.store.sql.prepared import prepared

_look, _shard = schema.vantage_look, schema.shard


@dataclass(frozen=True, slots=True)
class TakenLook:
    """A shard whose URLs are to be requested from a place.

    Attributes:
        whole: Whether all URLs are due; otherwise only URLs that are retried.
        before: The previous findings from this place.
    """

    stack_id: str
    number: int
    project: str
    whole: bool
    whole_at: float
    before: VantageLook


def set_vantages(tx: Transaction, shard: Shard, names: Collection[str], now: float) -> None:
    """Set the places from which the URLs of a shard are requested."""
    condition = and_(_look.c.stack_id == shard[0], _look.c.number == shard[1])
    present = set(tx.execute(select(_look.c.vantage).where(condition)).scalars())
    if present - set(names):
        tx.execute(delete(_look).where(condition, _look.c.vantage.in_(present - set(names))))
    new = sorted(set(names) - present)
    if new:
        rows = [
            {"stack_id": shard[0], "number": shard[1], "vantage": name, "due_at": now, "whole_at": now, "found": {}}
            for name in new
        ]
        tx.execute(tx.insert(_look).on_conflict_do_nothing(), rows)


def of_shards(tx: Transaction, these: Sequence[Shard]) -> dict[Shard, dict[str, VantageLook]]:
    """Return the findings, by shard and place."""
    looks: dict[Shard, dict[str, VantageLook]] = {}
    columns = (_look.c.stack_id, _look.c.number, _look.c.vantage, _look.c.looked_at, _look.c.found)
    chosen = select(*columns).where(tuple_(_look.c.stack_id, _look.c.number).in_(list(these)))
    for stack_id, number, vantage, looked_at, findings in tx.execute(chosen):
        looks.setdefault((stack_id, number), {})[vantage] = _look_of(looked_at, findings)
    return looks


def take(tx: Transaction, vantage: str, now: float, limit: int) -> list[TakenLook]:
    """Take shards whose URLs are due from a place, for `TAKEN_S` seconds."""
    taken = [
        TakenLook(stack_id, number, project, whole_at <= now, whole_at, _look_of(looked_at, findings))
        for stack_id, number, whole_at, looked_at, findings, project in _due(tx, vantage, now, limit)
    ]
    for look in taken:
        tx.execute(update(_look).where(*_this(vantage, (look.stack_id, look.number))).values(due_at=now + TAKEN_S))
    return taken


@prepared
def _due(vantage: str, now: float, limit: int) -> Select[Any]:
    same = (_shard.c.stack_id == _look.c.stack_id, _shard.c.number == _look.c.number)
    # A subquery instead of a join, to lock no shard: MariaDB locks the rows of all tables of a query.
    project = select(_shard.c.project).where(*same).scalar_subquery().label("project")
    columns = (_look.c.stack_id, _look.c.number, _look.c.whole_at, _look.c.looked_at, _look.c.found)
    conditions = (_look.c.vantage == vantage, _look.c.due_at <= now)
    chosen = select(*columns, project).where(*conditions).order_by(_look.c.due_at).limit(limit)
    return chosen.with_for_update(skip_locked=True)


def store(
    tx: Transaction, vantage: str, shard: Shard, until: float, due_at: float, whole_at: float, look: VantageLook
) -> None:
    """Store findings, and give the shard back.

    A shard that another worker has taken meanwhile stays taken. The findings are stored all the same, unless newer ones
    are: otherwise a place whose requests take longer than a shard is taken for would be blind for ever. Nothing is
    stored for a shard whose policy has changed meanwhile, since the findings are results of the old policy.
    """
    findings = {
        key: {str(number): [seen.finding.value, seen.evidence, seen.attempts] for number, seen in urls.items()}
        for key, urls in look.findings.items()
    }
    still_taken = _look.c.due_at == until
    values = {
        "due_at": case((still_taken, due_at), else_=_look.c.due_at),
        "whole_at": case((still_taken, whole_at), else_=_look.c.whole_at),
        "looked_at": look.looked_at,
        "found": findings,
    }
    tx.execute(
        update(_look)
        .where(*_this(vantage, shard), or_(still_taken, _look.c.looked_at <= look.looked_at))
        .values(**values)
    )


def forget(tx: Transaction, vantage: str, shard: Shard, until: float) -> None:
    """Stop requesting the URLs of a shard from a place."""
    tx.execute(delete(_look).where(*_this(vantage, shard), _look.c.due_at == until))


def _this(vantage: str, shard: Shard) -> tuple[Any, ...]:
    return (_look.c.vantage == vantage, _look.c.stack_id == shard[0], _look.c.number == shard[1])


def _look_of(looked_at: float | None, findings: Mapping[str, Mapping[str, Sequence[Any]]]) -> VantageLook:
    return VantageLook(
        looked_at,
        {
            key: {int(number): Seen(Finding(cell[0]), cell[1], cell[2]) for number, cell in cells.items()}
            for key, cells in findings.items()
        },
    )
