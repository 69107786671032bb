"""Types of the rows of the tables, for mypy: an attribute for each column, in the order of the table.

A row from the database is SQLAlchemy's own `Row`, which behaves like these tuples; `store.sql.typed` assigns the type.
JSON is `Any`: plain data, or `Lost` if it cannot be decrypted.
"""

from typing import Any, NamedTuple

from homeostat.model.snapshot import StackSnapshot


class StackRow(NamedTuple):
    """A row of `stack`."""

    id: str
    project: str
    name: str
    owner: str | None
    parent_id: str | None
    parent_name: str | None
    parent_key: str | None
    parent_shard: int | None
    root_id: str
    depth: int
    revision: int
    complete_revision: int | None
    rollback_to: int | None
    action: str
    status: str
    reason: str
    disable_rollback: bool
    timeout_mins: int | None
    deadline: float | None
    converge: bool
    observe_s: float | None
    exceptions: Any | None
    look_from: float | None
    step_at: float | None
    tags: Any | None
    template_source: str | None
    shards: int
    created_at: float
    updated_at: float | None
    deleted_at: float | None
    lock: Any | None
    suspended: bool
    user_project: str | None
    spares: str | None
    snapshot: StackSnapshot | None
    secret: bool | None
    size: int
    healing: Any | None
    cooldown: Any | None


class SnapshotRow(NamedTuple):
    """A row of `snapshot`."""

    id: str
    stack_id: str
    name: str | None
    action: str
    status: str
    reason: str
    revision: int
    data: Any | None
    created_at: float
    due_at: float | None


class SnapshotPartRow(NamedTuple):
    """A row of `snapshot_part`."""

    token: str
    snapshot_id: str
    place: Any
    name: str
    kind: str
    made: str


class ShardRow(NamedTuple):
    """A row of `shard`."""

    stack_id: str
    number: int
    project: str
    epoch: int
    owner: str | None
    lease_until: float
    wake_at: float | None
    wakes: int
    priority: int
    observe_at: float | None
    settled_revision: int
    failures: int
    planned: int
    done: int
    look_from: float | None
    looked_at: float | None
    blind: str
    reason: str
    crashes: int
    stored: int
    healing: int
    health_at: float | None
    health_from: float | None
    health_looked_at: float | None


class EventRow(NamedTuple):
    """A row of `event`."""

    seq: int
    stack_id: str
    name: str
    key: str
    handle: str
    type: str
    action: str
    status: str
    reason: str
    at: float
    requested_by: str
    request_id: str


class RecordRow(NamedTuple):
    """A row of `record`."""

    id: str
    kind: str
    project: str
    token: str
    link: str
    object: Any
    secret: Any | None
    created_at: float
    updated_at: float | None
    size: int | None


class SignalTallyRow(NamedTuple):
    """A row of `signal_tally`."""

    record_id: str
    seq: int
    signals: int
    size: int
    senders: int
    failed_at: float | None
    failed_after: int | None
    failure: str


class DeferredSignalRow(NamedTuple):
    """A row of `deferred_signal`."""

    id: int
    stack_id: str
    record_id: str
    reason: str
    due_at: float


class TrustRow(NamedTuple):
    """A row of `trust`."""

    id: str
    stack_id: str
    project: str
    user_id: str
    trust_id: str
    state: str
    object: Any
    created_at: float
    due_at: float | None


class MemberReportRow(NamedTuple):
    """A row of `member_report`."""

    key: str
    member: str
    succeeded_at: float | None
    failed_at: float | None
    said: str


class ProfileRow(NamedTuple):
    """A row of `profile`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    type: str
    spec: Any
    metadata: Any
    created_at: float
    updated_at: float | None
    size: int | None


class PolicyRow(NamedTuple):
    """A row of `policy`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    type: str
    spec: Any
    created_at: float
    updated_at: float | None
    size: int | None


class ClusterRow(NamedTuple):
    """A row of `cluster`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    profile_id: str
    min_size: int
    max_size: int
    desired_capacity: int
    next_index: int
    timeout: int
    metadata: Any
    config: Any
    init_at: float
    updated_at: float | None
    size: int | None


class NodeRow(NamedTuple):
    """A row of `node`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    cluster_id: str | None
    stack_id: str
    number: int
    profile_id: str
    role: str | None
    metadata: Any
    data: Any
    own: bool
    tainted: bool
    leaving: bool
    init_at: float
    updated_at: float | None
    size: int | None


class ReceiverRow(NamedTuple):
    """A row of `receiver`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    type: str
    cluster_id: str | None
    action: str | None
    actor: Any
    params: Any
    channel: Any
    created_at: float
    updated_at: float | None


class ActionRow(NamedTuple):
    """A row of `action`."""

    id: str
    project: str
    user: str | None
    domain: str | None
    name: str
    action: str
    target: str
    cluster_id: str | None
    cause: str
    stack_id: str | None
    begun_after: int
    timeout: int
    status: str
    status_reason: str
    inputs: Any
    outputs: Any
    data: Any
    start_time: float | None
    end_time: float | None
    created_at: float
    updated_at: float | None
    due_at: float | None
