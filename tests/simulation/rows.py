"""Rows of the database as the watcher reads them."""

from typing import NamedTuple

from homeostat.model.status import Action, State, Status

NOT_THERE = (Action.INIT, Action.DELETE)


class Row(NamedTuple):
    key: str
    stack_id: str
    shard: int
    name: str
    type: str
    action: str
    status: str
    handle: str
    version: int
    revision: int
    deletion_policy: str
    changed: int
    replaces: str | None
    replaced_by: str | None
    marks: str | None
    converge_requested_at: float | None
    token: str = ""

    @property
    def state(self) -> State:
        return self.action, self.status

    @property
    def marked(self) -> bool:
        return '"unhealthy"' in (self.marks or "")

    @property
    def lost(self) -> bool:
        return '"lost"' in (self.marks or "")

    @property
    def lets_go(self) -> bool:
        return '"let_go"' in (self.marks or "")

    @property
    def being_healed(self) -> bool:
        busy = self.status == Status.IN_PROGRESS or self.action == Action.INIT
        return '"healing"' in (self.marks or "") and busy and self.action != Action.DELETE

    @property
    def done(self) -> bool:
        return self.action not in NOT_THERE and self.status == Status.COMPLETE


class Stack(NamedTuple):
    id: str
    name: str
    project: str
    action: str
    status: str
    reason: str
    revision: int
    complete_revision: int | None
    shards: int
    deleted_at: float | None
    root_id: str
    look_from: float | None
    healing: str | None
    exceptions: str | None
    spares: str | None

    @property
    def state(self) -> State:
        return self.action, self.status


class Shard(NamedTuple):
    stack_id: str
    number: int
    epoch: int
    settled_revision: int
    failures: int
    reason: str


class Event(NamedTuple):
    seq: int
    stack_id: str
    key: str
    handle: str
    action: str
    status: str
    reason: str

    @property
    def state(self) -> State:
        return self.action, self.status


class Committed(NamedTuple):
    """What is stored: rows by key, stacks by id, shards by `stack_id/number`."""

    rows: dict[str, Row]
    stacks: dict[str, Stack]
    shards: dict[str, Shard]
