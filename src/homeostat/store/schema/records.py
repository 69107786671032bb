"""Tables of the service's own data: records, signals, trusts, workers."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, Table, Text

from homeostat.store.schema.base import Sequence, metadata
from homeostat.store.schema.cells import EncryptedJson, SafeText

record = Table(
    "record",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("link", Text, nullable=False, default=""),
    Column("object", EncryptedJson("record.object"), nullable=False),
    Column("secret", EncryptedJson("record.secret")),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double),
    Column("size", BigInteger),
    Index("uq_record_token", "kind", "token", unique=True),
    Index("ix_record_listing", "kind", "project", "created_at", "id"),
    Index("ix_record_link", "link", "kind"),
    Index("ix_record_size", "kind", "project", "size"),
)
"""Things stored by the service itself: software configs and deployments, wait conditions, things of plug-ins.

Columns:
    id: The handle.
    kind: The kind of the cloud port.
    token: The token of the creation; unique within the kind, so that a repeated creation finds the first record.
    link: The owner of the record (a deployment's server, a condition's handle); "" for none.
    object: The thing's properties, as `observe` returns them.
    secret: Data that no response shows.
    size: Characters of the cell of the object; NULL if the previous version has stored it.
"""

signal = Table(
    "signal",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), nullable=False),
    Column("object", EncryptedJson("signal.object"), nullable=False),
    Column("at", Double, nullable=False),
    Index("ix_signal_record", "record_id", "seq"),
)
"""Signals that records have received, in order of arrival."""

signal_tally = Table(
    "signal_tally",
    metadata,
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("signals", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("senders", Integer, nullable=False),
    Column("failed_at", Double),
    Column("failed_after", Integer),
    Column("failure", SafeText, nullable=False),
)
"""Counts of the signals of a handle, so that counting reads no signals; see `store.builtin.signal_tallies`.

Columns:
    seq: The newest signal counted.
    size: Bytes of their content as JSON.
    senders: The number of different ids that have signalled.
    failed_at, failed_after, failure: Of the first signal of a failure: when it came, how many ids had signalled before,
        and its reason, shortened.
"""

signal_sender = Table(
    "signal_sender",
    metadata,
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("reason", SafeText, nullable=False),
    Index("ix_signal_sender_number", "record_id", "number"),
)
"""The ids that have signalled to a handle.

Columns:
    digest: Hash of the id, which may be long.
    number: From 1 on, in the order of their first signals.
    at: When the first signal came.
    reason: The reason in the first signal, shortened.
"""

deferred_signal = Table(
    "deferred_signal",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("record_id", Text, ForeignKey("record.id", ondelete="CASCADE"), nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("due_at", Double, nullable=False),
    Index("ix_deferred_signal_stack", "stack_id"),
    Index("ix_deferred_signal_due_at", "due_at"),
)
"""Signals to scaling policies that wait for the end of an action of the group's stack.

Columns:
    stack_id: The group's stack.
    record_id: The policy.
    reason: The reason in the signal.
    due_at: When the signal is retried.
"""

trust = Table(
    "delegation",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("trust_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("object", EncryptedJson("delegation.object"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double),
    Index("ix_delegation_stack", "stack_id"),
    Index("ix_delegation_project", "project", "state"),
    Index("ix_delegation_state", "state", "due_at"),
    Index("ix_delegation_trust", "trust_id"),
)
"""Trusts of users, on whose behalf the service works on a root stack after the token of their request has expired.

Columns:
    trust_id: The id in Keystone; "" while unknown.
    state: `asked` (the intent is stored, the answer is not), `good`, `gone` (Keystone no longer honours it) or
        `leaving` (it has to be deleted).
    object: `end` (the expiry, by which the trust is found again), `user`, and for a `gone` trust the `reason`.
    due_at: The clean-up of an `asked` or `leaving` trust is not attempted before this time.
"""

worker = Table(
    "worker",
    metadata,
    Column("name", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("board", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
)
"""The register of workers; see `operation.workers`. A worker not seen for some seconds counts as dead."""

timeline = Table(
    "timeline",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("generation", Integer, nullable=False),
    Column("anchor", Double, nullable=False),
    Column("offset_s", Double, nullable=False),
    Column("kept_at", Double, nullable=False),
    Column("step_s", Double, nullable=False),
)
"""The offset of the service's time from the database's clock, in a single row of id 1; see `sql.timeline`."""

changed_server = Table(
    "changed_server",
    metadata,
    Column("project", Text, primary_key=True),
    Column("handle", Text, primary_key=True),
    Column("at", Double, nullable=False),
)
"""Servers that a worker has begun to change in ways that the cloud does not list; see `operation.changed_servers`."""

request_turn = Table(
    "request_turn",
    metadata,
    Column("service", Text, primary_key=True),
    Column("free_at", Double, nullable=False),
)
"""Services with a rate limit, and the time of the first turn that is still free; see `operation.request_turns`."""

# -- only for MariaDB and MySQL, in place of features built into PostgreSQL (ADR 0083) ---------------------------------

ONLY_MYSQL = {"only": "mysql"}
"""Marks a table that no other database has."""

latch = Table(
    "latch",
    metadata,
    Column("name", Text, primary_key=True),
    Column("turns", BigInteger, nullable=False),
    info=ONLY_MYSQL,
)
"""Counters: incremented by a transaction to exclude others until its end, and for each notice."""

transaction_mark = Table(
    "transaction_mark",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    info=ONLY_MYSQL,
)
"""A mark of each transaction that stores events, stored before its first event."""
