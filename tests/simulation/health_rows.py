"""What the invariants of health policies read of the database after each commit, without its layers."""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from homeostat.clustering.decisions.policies import stored_health_policy
from homeostat.model.health_policy import HealthPolicy
from homeostat.model.status import Action, Status
from homeostat.planner.lifecycle.recovery_state import REPORTER

_MEMBERS = """SELECT key, stack_id, shard, name, action, status, reason, handle, token, replaces, replaced_by, marks,
    converge_requested_at, properties, intent FROM resource"""
_GROUPS = """SELECT s.id, s.status, s.reason, s.size, c.spec, c.created_at FROM health_check c
    JOIN stack s ON s.parent_id = c.stack_id AND s.parent_name = c.name
    WHERE c.enabled AND s.deleted_at IS NULL"""
_UNHEALTHY = """SELECT n.stack_id, count(*) FROM node_health n JOIN resource r ON r.key = n.key
    WHERE n.finding = 'unhealthy' AND r.replaced_by IS NULL AND r.action <> 'DELETE' GROUP BY n.stack_id"""
_OBSERVED = "SELECT presence, object FROM resource_observed WHERE key = ?"
_LOOKS = "SELECT stack_id, number, vantage, looked_at FROM vantage_look"
_RECOVERIES = "SELECT id, stack_id, name, at, what FROM recovery WHERE id > ? ORDER BY id"


class Member(NamedTuple):
    """The row of a resource; marks, properties and intent are JSON."""

    key: str
    stack_id: str
    shard: int
    name: str
    action: str
    status: str
    reason: str
    handle: str
    token: str
    replaces: str | None
    replaced_by: str | None
    marks: str | None
    converge_requested_at: float | None
    properties: str
    intent: str | None

    @property
    def stands(self) -> bool:
        """Does it stand for its name?"""
        return self.replaced_by is None and self.action != Action.DELETE

    @property
    def busy(self) -> bool:
        return self.status == Status.IN_PROGRESS

    @property
    def is_sick(self) -> bool:
        """Has a health policy marked it?"""
        mark = read(self.marks).get("unhealthy")
        return mark is not None and mark["reporter"] == REPORTER

    @property
    def is_ill(self) -> bool:
        """Has a health policy, or a person, marked it?"""
        return read(self.marks).get("unhealthy") is not None

    @property
    def recovery(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = read(self.marks).get("recovery")
        return found


@lru_cache(maxsize=2000)
def read(stored: str | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(stored) if stored else {}
    return found or {}


class Known(NamedTuple):
    """What the service knows of a group for which a policy holds: unhealthy — members; since — when the policy was
    attached."""

    status: str
    reason: str
    size: int
    spec: str
    since: float
    unhealthy: int

    @property
    def policy(self) -> HealthPolicy:
        return stored_health_policy(read(self.spec))

    @property
    def most(self) -> float:
        """So many unhealthy members are recovered; with more, none is."""
        return self.policy.most_recovered(self.size) if self.policy.max_unhealthy else math.inf


class Recovery(NamedTuple):
    """An action of a policy that has begun; what — its name."""

    id: int
    stack_id: str
    name: str
    at: float
    what: str


class Reader:
    """Reads from the connection of a world."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._last = 0

    def members(self) -> dict[str, Member]:
        return {row[0]: Member._make(row) for row in self._raw.execute(_MEMBERS)}

    def groups(self) -> dict[str, Known]:
        unhealthy: dict[str, int] = dict(self._raw.execute(_UNHEALTHY).fetchall())
        return {row[0]: Known._make([*row[1:], unhealthy.get(row[0], 0)]) for row in self._raw.execute(_GROUPS)}

    def timed_out(self) -> set[str]:
        """Ids of the stacks whose last action took too long."""
        return {id for (id,) in self._raw.execute("SELECT id FROM stack WHERE reason = 'Timed out'")}

    def recoveries(self) -> Iterator[Recovery]:
        """Those that were not read yet."""
        for row in self._raw.execute(_RECOVERIES, (self._last,)).fetchall():
            self._last = row[0]
            yield Recovery._make(row)

    def turns(self, key: str) -> int:
        """How often a member became unhealthy lately."""
        found = self._raw.execute("SELECT health FROM node_health WHERE key = ?", (key,)).fetchone()
        return len(json.loads(found[0])["turns"]) if found is not None else 0

    def findings(self) -> dict[str, str]:
        """Key of a row -> what was found of it."""
        return dict(self._raw.execute("SELECT key, finding FROM node_health").fetchall())

    def shards(self) -> list[tuple[str, int, float | None, float | None]]:
        """Stack and number of each shard, when it is looked at next, and when it was."""
        return self._raw.execute("SELECT stack_id, number, health_at, health_looked_at FROM shard").fetchall()

    def observed(self, key: str) -> tuple[str, Mapping[str, Any]]:
        """Whether a thing was seen when it was looked at last, and what was seen of it."""
        presence, stored = self._raw.execute(_OBSERVED, (key,)).fetchone() or ("", None)
        return presence, json.loads(stored) if stored else {}

    def vantage_looks(self) -> list[tuple[str, int, str, float | None]]:
        """Stack, number of a shard, and place: when it was looked at from there."""
        return self._raw.execute(_LOOKS).fetchall()
