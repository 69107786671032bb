"""Orphans: things that may turn up late under tokens without a row (CV18, ADR 0012).

Such tokens come from creations given up without an answer, whose requests may still be in flight, and from deletions
for which the cloud did not find the thing. Workers look for the tokens, and delete the things that turn up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, UpdateBase, case, delete, or_, select, update

from homeostat.store import schema
from homeostat.store.builtin import stack_users
from homeostat.store.database import Transaction
from homeostat.store.sql.prepared import prepared

LOOK_S = 5.0
"""Time between looks."""
PATIENCE_S = 600.0
"""Time for which a token is looked for; time without a complete look does not count."""
GAP_S = 65.0
"""Maximum time between two looks that counts; with many tokens, looks may be further apart."""

_orphan = schema.orphan
_resource = schema.resource
_stack = schema.stack


@dataclass(frozen=True, slots=True)
class Orphan:
    """A token to look for.

    Attributes:
        token: The token of the creation, `<row key>-<stamp>`.
    """

    token: str
    kind: str
    project: str


def add(tx: Transaction, new: Sequence[Orphan], now: float) -> None:
    """Look for these tokens from now on; the time of a known token restarts."""
    if not new:
        return
    times = {"look_at": now + LOOK_S, "until": now + PATIENCE_S, "looked_at": now}
    rows = [{"token": orphan.token, "kind": orphan.kind, "project": orphan.project, **times} for orphan in new]
    insert = tx.insert(_orphan)
    later = {name: insert.excluded[name] for name in times}
    tx.execute(insert.on_conflict_do_update(index_elements=["token"], set_=later), rows)


def any_due(tx: Transaction, now: float) -> bool:
    """Return whether any token is to be looked for now."""
    return _any_due(tx, now).first() is not None


@prepared
def _any_due(now: float) -> Select[Any]:
    return select(_orphan.c.token).where(_orphan.c.look_at <= now).limit(1)


def take_due(tx: Transaction, now: float, limit: int) -> list[Orphan]:
    """Return the tokens to look for now, and schedule their next look."""
    # Without a lock: a second worker that looks for the same tokens does no harm.
    rows = list(_due(tx, now, limit))
    if rows:
        _put_off(tx, [row.token for row in rows], now)
    return [Orphan(row.token, row.kind, row.project) for row in rows]


@prepared
def _due(now: float, limit: int) -> Select[Any]:
    return select(_orphan).where(_orphan.c.look_at <= now).order_by(_orphan.c.look_at).limit(limit)


@prepared
def _put_off(tokens: Sequence[str], now: float) -> UpdateBase:
    return update(_orphan).where(_orphan.c.token.in_(tokens)).values(look_at=now + LOOK_S)


def may_appear(tx: Transaction, key: str) -> bool:
    """Return whether a creation for this row was given up and its thing may still turn up."""
    tokens = select(_orphan.c.token).where(_orphan.c.token.startswith(f"{key}-", autoescape=True))
    return tx.execute(tokens.limit(1)).first() is not None


def drop(tx: Transaction, tokens: Sequence[str]) -> None:
    """Delete tokens whose things have an owner, or are to stay."""
    if tokens:
        _drop(tx, tokens)


@prepared
def _drop(tokens: Sequence[str]) -> UpdateBase:
    return delete(_orphan).where(_orphan.c.token.in_(tokens))


def removable(tx: Transaction, project: str, handles: Mapping[str, str]) -> set[str]:
    """Return the tokens whose things are still orphans; called right before the things are deleted.

    A thing is no longer an orphan if its token was dropped, if a row has the token, or if a row of the project has its
    handle, as after an adoption.

    Args:
        handles: Token -> handle.
    """
    watched = set(tx.execute(select(_orphan.c.token).where(_orphan.c.token.in_(handles))).scalars())
    conditions = (_resource.c.handle.in_(set(handles.values())), _stack.c.project == project)
    joined = select(_resource.c.handle).join(_stack, _stack.c.id == _resource.c.stack_id)
    held = set(tx.execute(joined.where(*conditions)).scalars())
    return {token for token in watched - owned(tx, list(handles)) if handles[token] not in held}


def record_missing(tx: Transaction, tokens: Sequence[str], looked_at: float) -> None:
    """Record that a look which began at `looked_at` found none of these tokens; delete tokens that had expired by then.

    Only a complete look proves anything: each gap between looks beyond `GAP_S` extends the time of a token as much.
    """
    if tokens:
        _count(tx, tokens, looked_at)
        if expired := list(_expired(tx, tokens, looked_at).scalars()):
            # A user is created before the thing that needs it, so there may be users of things that never were.
            stack_users.mark_departed(tx, *expired)
            _drop_expired(tx, expired, looked_at)


@prepared
def _count(tokens: Sequence[str], looked_at: float) -> UpdateBase:
    table = _orphan.c
    earliest = looked_at - GAP_S
    # A program of the previous version leaves `looked_at` empty.
    until = case((table.looked_at < earliest, table.until + (earliest - table.looked_at)), else_=table.until)
    # Concurrent looks of several workers may end in any order.
    older = or_(table.looked_at.is_(None), table.looked_at < looked_at)
    return update(_orphan).where(table.token.in_(tokens), older).values(looked_at=looked_at, until=until)


@prepared
def _drop_expired(tokens: Sequence[str], looked_at: float) -> UpdateBase:
    return delete(_orphan).where(_orphan.c.token.in_(tokens), _orphan.c.until <= looked_at)


@prepared
def _expired(tokens: Sequence[str], looked_at: float) -> Select[Any]:
    return select(_orphan.c.token).where(_orphan.c.token.in_(tokens), _orphan.c.until <= looked_at)


def extend(tx: Transaction, tokens: Sequence[str], now: float) -> None:
    """Restart the time of tokens whose things exist, or whose presence is unknown."""
    if tokens:
        restarted = {"until": now + PATIENCE_S, "looked_at": now}
        tx.execute(update(_orphan).where(_orphan.c.token.in_(tokens)).values(**restarted))


def owned(tx: Transaction, tokens: Sequence[str]) -> set[str]:
    """Return the tokens that a row has after all: their things must stay."""
    # By row key, which is the primary key; tokens have no index.
    keys = {token.rpartition("-")[0] for token in tokens}
    return set(_tokens_of(tx, sorted(keys)).scalars()) & set(tokens)


@prepared
def _tokens_of(keys: Sequence[str]) -> Select[Any]:
    return select(_resource.c.token).where(_resource.c.key.in_(keys))
