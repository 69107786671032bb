"""Tables of rollouts: changes of the members of groups in steps, and members' reports on batches."""

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, Table, Text, text

from homeostat.model import rollout as model
from homeostat.store.schema.base import metadata
from homeostat.store.schema.cells import Codec, Json, SafeText

ALARM = -1
"""In place of the bit of a wait condition: the handle takes alarms."""

rollout = Table(
    "rollout",
    metadata,
    Column("key", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("stack_id", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("members", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("settings", Json(Codec(model.load, model.dump)), nullable=False),
    Column("step", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("active", Integer, nullable=False),
    Column("target", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("step_at", Double, nullable=False),
    Column("reported_at", Double),
    Column("approved", Integer, nullable=False),
    Column("forgiven", Integer, nullable=False),
    Column("alarm", SafeText, nullable=False),
    Column("due_at", Double),
    Column("reason", SafeText, nullable=False),
    Column("place", Integer, nullable=False),
    Column("first", Json, nullable=False),
    Column("zones", Json),
    Column("subject", Integer),
    Column("giving", Integer),
    Index("ix_rollout_stack", "stack_id"),
    Index(
        "ix_rollout_due_at",
        "due_at",
        sqlite_where=text("due_at IS NOT NULL"),
        postgresql_where=text("due_at IS NOT NULL"),
    ),
)
"""Rollouts, one for each group whose row has `new_metadata`, or whose stack is `staged` (`resources.groups`).

For the columns see `model.rollout.Rollout`. Every step of a rollout locks its row first.
"""

active_metadata_updates = Table(
    "active_metadata_updates",
    metadata,
    Column("resource_id", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("instance_id", Text, primary_key=True),
    Column("step", Integer, nullable=False),
    Column("reported", Integer, nullable=False, default=0),
    Column("status", Text, nullable=False, default=""),
    Column("said", SafeText, nullable=False, default=""),
    Column("reported_at", Double),
    Index("ix_active_metadata_updates_step", "resource_id", "step", "status"),
    Index(
        "ix_active_metadata_updates_failed",
        "resource_id",
        sqlite_where=text("status = 'FAILURE'"),
        postgresql_where=text("status = 'FAILURE'"),
    ),
)
"""Members of groups that have `new_metadata` of the group's row instead of `metadata` (RU5).

Columns:
    resource_id: Key of the row of the group.
    instance_id: Handle of the member.
    step: The step of the rollout in which the member got the metadata.
    reported: Bits of the wait conditions to which the member has signalled success.
    status: `SUCCESS`, `FAILURE`, or "" while reports to wait conditions are missing.
    said: The reason in its signal.
"""

rollout_gate = Table(
    "rollout_gate",
    metadata,
    Column("handle", Text, ForeignKey("record.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, ForeignKey("rollout.key", ondelete="CASCADE"), primary_key=True),
    Column("bit", Integer, primary_key=True),
    Column("gates", Integer, nullable=False),
)
"""Handles of wait conditions whose signals rollouts wait for.

Columns:
    bit: Number of the wait condition in the rollout; `ALARM` for a handle that takes alarms.
    gates: The number of wait conditions of the rollout.
"""

member_report = Table(
    "member_report",
    metadata,
    Column("key", Text, ForeignKey("resource.key", ondelete="CASCADE"), primary_key=True),
    Column("member", Text, primary_key=True),
    Column("succeeded_at", Double),
    Column("failed_at", Double),
    Column("said", SafeText, nullable=False, default=""),
)
"""Reports of members to groups that wait for reports before their next batch (`planner.members.member_reports`).

Columns:
    key: Key of the row of the group.
    member: Handle of the member, or of a server in it, as sent.
    succeeded_at: Time of the last report of success; NULL for never.
    failed_at: Time of the last report of a failure; NULL for never.
    said: The reason of the failure.
"""
