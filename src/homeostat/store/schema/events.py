"""Tables of events, of the sinks that receive them, and of the message bus."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, Table, Text

from homeostat.store.schema.base import Sequence, metadata
from homeostat.store.schema.cells import EncryptedJson, SafeText

event = Table(
    "event",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("handle", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("at", Double, nullable=False),
    Column("requested_by", Text, nullable=False, default="", server_default=""),
    Column("request_id", Text, nullable=False, default="", server_default=""),
    Index("ix_event_stack", "stack_id", "seq"),
    # Readers continue after the last number they have seen: the number of a purged event must not be reused.
    sqlite_autoincrement=True,
)
"""Changes of state of stacks and resources, each stored in the transaction that makes the change.

Columns:
    key: Key of the resource row; "" for an event of the stack itself.
    requested_by: The sender of the request that made the change; "" for actions of the service itself.
    request_id: Id of this request.
"""

resize = Table(
    "resize",
    metadata,
    Column("event", Sequence, ForeignKey("event.seq", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), nullable=False),
    Column("adjustment", Double, nullable=False),
    Column("adjustment_type", Text, nullable=False),
    Column("before", Integer, nullable=False),
    Column("after", Integer, nullable=False),
    Index("ix_resize_stack", "stack_id", "event"),
)
"""The effect of a signal to a scaling policy on the size of a group, in addition to the event of the signal.

Columns:
    event: `seq` of the event, which belongs to the policy.
    stack_id: The group's stack.
    adjustment: The amount, as defined by the policy.
    adjustment_type: The unit of the amount, in the policy's own word.
    before: The number of healthy members before.
    after: The new number of members.
"""

event_sink = Table(
    "event_sink",
    metadata,
    Column("stack_id", Text, ForeignKey("stack.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("settings", EncryptedJson("event_sink.settings"), nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False, default=0),
    Column("due_at", Double, nullable=False, default=0.0),
    Column("failures", Integer, nullable=False, default=0),
    Column("failing_since", Double),
    Column("reason", SafeText, nullable=False, default=""),
    Index("ix_event_sink_due_at", "due_at"),
)
"""Event sinks of root stacks: each receives the events of its stack and all nested stacks.

Columns:
    digest: Hash of the settings.
    cursor: `seq` of the last event that was delivered.
    epoch: The fencing token of the worker that delivers now.
    due_at: Nothing more is delivered before this time.
    failures: Failed deliveries in a row, since failing_since; `reason` is the reason of the last failure.
"""

message_bus = Table(
    "message_bus",
    metadata,
    Column("name", Text, primary_key=True),
    Column("cursor", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False, default=0, server_default="0"),
    Column("due_at", Double, nullable=False, default=0.0, server_default="0"),
    Column("failures", Integer, nullable=False, default=0, server_default="0"),
    Column("failing_since", Double),
    Column("reason", SafeText, nullable=False, default="", server_default=""),
)
"""The message bus to which the events of all stacks are sent; see `operation.message_bus`.

Columns:
    name: Always `stacks`.
    cursor: `seq` of the last event that was sent.
    epoch: The fencing token of the worker that sends now.
    due_at: Nothing more is sent before this time.
    failures: Failed attempts in a row, since failing_since; `reason` is the reason of the last failure.
"""
