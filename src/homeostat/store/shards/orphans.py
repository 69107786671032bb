"""Tokens that no row has any more, and whose things may turn up (CV18): of creations given up without an answer, whose
requests may still be on their way, and of what a cloud did not find when it was to delete it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, UpdateBase, delete, select, update

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.sql.prepared import prepared

LOOK_S = 5.0
"""Time between looks."""
PATIENCE_S = 600.0
"""How long after giving up a request may still turn up; time in which nobody looks is no part of it."""

_forsaken = schema.forsaken
_resource = schema.resource
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Orphan:
    """token — of the creation, `<row key>-<stamp>`; kind — of the cloud port."""

    token: str
    kind: str
    project: str


def add(db: Database, tx: Connection, given_up: Sequence[Orphan], now: float) -> None:
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
    return _any_due(tx, now).first() is not None


@prepared
def _any_due(now: float) -> Select[Any]:
    return select(_forsaken.c.token).where(_forsaken.c.look_at <= now).limit(1)


def take_due(tx: Connection, now: float, limit: int) -> list[Orphan]:
    """Those to look for now; the next look is set. What nobody has looked for in time is watched for so much longer."""
    rows = list(_due(tx, now, limit))
    if rows:
        _put_off(tx, [row.token for row in rows], now)
    return [Orphan(row.token, row.kind, row.project) for row in rows]


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    return select(_forsaken).where(_forsaken.c.look_at <= now).order_by(_forsaken.c.look_at).limit(limit)


@prepared
def _put_off(tokens: Sequence[str], now: float) -> UpdateBase:
    table = _forsaken.c
    due = (table.token.in_(tokens), table.look_at <= now)  # not what another worker has put off meanwhile
    return update(_forsaken).where(*due).values(look_at=now + LOOK_S, until=table.until + (now - table.look_at))


def has_given_up(tx: Connection, key: str) -> bool:
    """May a creation for the row with this key still turn up that was given up?"""
    mine = select(_forsaken.c.token).where(_forsaken.c.token.startswith(f"{key}-", autoescape=True))
    return tx.execute(mine.limit(1)).first() is not None


def drop(tx: Connection, tokens: Sequence[str]) -> None:
    """Forget them: they belong to somebody."""
    if tokens:
        _drop(tx, tokens)


@prepared
def _drop(tokens: Sequence[str]) -> UpdateBase:
    return delete(_forsaken).where(_forsaken.c.token.in_(tokens))


def removable(tx: Connection, project: str, found: Mapping[str, str]) -> set[str]:
    """Those of these tokens whose things are nobody's, the moment before they are removed. found — token -> handle."""
    watched = set(tx.execute(select(_forsaken.c.token).where(_forsaken.c.token.in_(found))).scalars())
    mine = (_resource.c.handle.in_(set(found.values())), _stack.c.project == project)
    joined = select(_resource.c.handle).join(_stack, _stack.c.id == _resource.c.stack_id)
    held = set(tx.execute(joined.where(*mine)).scalars())
    return {token for token in watched - owned(tx, list(found)) if found[token] not in held}


def drop_expired(tx: Connection, tokens: Sequence[str], looked_at: float) -> None:
    """Forget those of them whose time was over when a look began that has found none of them."""
    if tokens:
        _drop_expired(tx, tokens, looked_at)


@prepared
def _drop_expired(tokens: Sequence[str], looked_at: float) -> UpdateBase:
    return delete(_forsaken).where(_forsaken.c.token.in_(tokens), _forsaken.c.until <= looked_at)


def watch_on(tx: Connection, tokens: Sequence[str], now: float) -> None:
    """Their things are there, or nobody can tell: the time in which they may turn up begins anew."""
    if tokens:
        tx.execute(update(_forsaken).where(_forsaken.c.token.in_(tokens)).values(until=now + PATIENCE_S))


def owned(tx: Connection, tokens: Sequence[str]) -> set[str]:
    """Those of the tokens that a row stands for after all: their things are to stay."""
    keys = {token.rpartition("-")[0] for token in tokens}
    return set(_tokens_of(tx, sorted(keys)).scalars()) & set(tokens)


@prepared
def _tokens_of(keys: Sequence[str]) -> Select[Any]:
    return select(_resource.c.token).where(_resource.c.key.in_(keys))
