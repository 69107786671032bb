"""Creations given up without an answer (CV18): a request still on its way may make a thing that nobody waits for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from homeostat.store import schema
from homeostat.store.database import Database

LOOK_S = 5.0
"""Time between looks."""
PATIENCE_S = 600.0
"""How long after giving up a request may still turn up."""

_forsaken = schema.forsaken
_resource = schema.resource
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Forsaken:
    """token — of the creation, `<row key>-<stamp>`; kind — of the cloud port."""

    token: str
    kind: str
    project: str


def add(db: Database, tx: Connection, given_up: Sequence[Forsaken], now: float) -> None:
    """Remember them; one that is known already is watched anew."""
    if not given_up:
        return
    times = {"look_at": now + LOOK_S, "until": now + PATIENCE_S}
    rows = [{"token": each.token, "kind": each.kind, "project": each.project, **times} for each in given_up]
    insert = db.insert(_forsaken)
    later = {name: insert.excluded[name] for name in times}
    tx.execute(insert.on_conflict_do_update(index_elements=["token"], set_=later), rows)


def any_due(tx: Connection, now: float) -> bool:
    """Is there any to look for now?"""
    return tx.execute(select(_forsaken.c.token).where(_forsaken.c.look_at <= now).limit(1)).first() is not None


def take_due(tx: Connection, now: float, limit: int) -> list[Forsaken]:
    """Those to look for now; the next look is set."""
    chosen = select(_forsaken).where(_forsaken.c.look_at <= now).order_by(_forsaken.c.look_at).limit(limit)
    rows = list(tx.execute(chosen))
    tokens = [row.token for row in rows]
    if tokens:
        tx.execute(update(_forsaken).where(_forsaken.c.token.in_(tokens)).values(look_at=now + LOOK_S))
    return [Forsaken(row.token, row.kind, row.project) for row in rows]


def has_given_up(tx: Connection, key: str) -> bool:
    """May a creation for the row with this key still turn up that was given up?"""
    mine = select(_forsaken.c.token).where(_forsaken.c.token.startswith(f"{key}-", autoescape=True))
    return tx.execute(mine.limit(1)).first() is not None


def drop(tx: Connection, tokens: Sequence[str]) -> None:
    """Forget them: they belong to somebody."""
    tx.execute(delete(_forsaken).where(_forsaken.c.token.in_(tokens)))


def removable(tx: Connection, project: str, found: Mapping[str, str]) -> set[str]:
    """Those of these tokens whose things are nobody's, the moment before they are removed. found — token -> handle."""
    watched = set(tx.execute(select(_forsaken.c.token).where(_forsaken.c.token.in_(found))).scalars())
    mine = (_resource.c.handle.in_(set(found.values())), _stack.c.project == project)
    joined = select(_resource.c.handle).join(_stack, _stack.c.id == _resource.c.stack_id)
    held = set(tx.execute(joined.where(*mine)).scalars())
    return {token for token in watched - owned(tx, list(found)) if found[token] not in held}


def drop_expired(tx: Connection, tokens: Sequence[str], now: float) -> None:
    """Forget those of them whose time is over; a look for them has just succeeded."""
    tx.execute(delete(_forsaken).where(_forsaken.c.token.in_(tokens), _forsaken.c.until <= now))


def owned(tx: Connection, tokens: Sequence[str]) -> set[str]:
    """Those of the tokens that a row stands for after all: their things are to stay."""
    keys = {token.rpartition("-")[0] for token in tokens}
    rows = tx.execute(select(_resource.c.token).where(_resource.c.key.in_(keys)))
    return {row.token for row in rows} & set(tokens)
