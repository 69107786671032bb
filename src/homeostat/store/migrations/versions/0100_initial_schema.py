"""Initial schema: stacks"""

import sqlalchemy as sa
from alembic import op

from homeostat.store.migrations.columns import (
    SEQUENCE,
    counts,
    doubles,
    empty,
    flags,
    foreign,
    integers,
    primary,
    texts,
    where,
    zero,
)

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _stacks()
    _snapshots()
    _shards()
    _resources()
    _records()
    _events()
    _rollouts()
    _service()


def _stacks() -> None:
    """Stacks and their desired state."""
    op.create_table("file", *texts("hash", "content"), primary("file", "hash"))
    op.create_table(
        "stack",
        *texts("id", "project", "name"),
        *texts("owner", "parent_id", "parent_name", "parent_key", nullable=True),
        *integers("parent_shard", nullable=True),
        *texts("root_id"),
        *integers("depth", "revision"),
        *integers("complete_revision", "rollback_to", nullable=True),
        *texts("action", "status", "reason"),
        *flags("disable_rollback"),
        *integers("timeout_mins", nullable=True),
        *doubles("deadline", nullable=True),
        *flags("converge"),
        *doubles("observe_s", nullable=True),
        *texts("exceptions", nullable=True),
        *doubles("look_from", "step_at", nullable=True),
        *texts("tags", "template_source", nullable=True),
        *integers("shards"),
        *doubles("created_at"),
        *doubles("updated_at", "deleted_at", nullable=True),
        *texts("lock", nullable=True),
        sa.Column("suspended", sa.Boolean(), server_default=sa.false(), nullable=False),
        *texts("user_project", "spares", "snapshot", nullable=True),
        *flags("secret", nullable=True),
        zero("size"),
        *texts("healing", "cooldown", nullable=True),
        primary("stack", "id"),
    )
    op.create_index("ix_stack_listing", "stack", ["project", "created_at", "id"])
    op.create_index("ix_stack_parent", "stack", ["parent_id"])
    op.create_index("ix_stack_parent_key", "stack", ["parent_key"])
    op.create_index("ix_stack_root", "stack", ["root_id"])
    op.create_index("ix_stack_user_project", "stack", ["user_project"], **where("user_project IS NOT NULL"))
    op.create_index("uq_stack_live_name", "stack", ["project", "name"], unique=True, **where("deleted_at IS NULL"))
    op.create_table(
        "revision",
        *texts("stack_id"),
        *integers("number"),
        *texts("kind", "template", "parameters", "environment", "files", "intent"),
        *doubles("created_at"),
        empty("action"),
        empty("requested_by"),
        empty("request_id"),
        primary("revision", "stack_id", "number"),
        foreign("fk_revision_stack_id", ["stack_id"], ["stack.id"]),
    )


def _snapshots() -> None:
    """Snapshots, retained things and delegations."""
    op.create_table(
        "snapshot",
        *texts("id", "stack_id"),
        *texts("name", nullable=True),
        *texts("action", "status"),
        empty("reason"),
        *integers("revision"),
        *texts("data", nullable=True),
        *doubles("created_at"),
        *doubles("due_at", nullable=True),
        primary("snapshot", "id"),
        foreign("fk_snapshot_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_snapshot_due_at", "snapshot", ["due_at"])
    op.create_index("ix_snapshot_stack", "snapshot", ["stack_id", "created_at"])
    op.create_table(
        "snapshot_part",
        *texts("token", "snapshot_id", "place", "name", "kind", "made"),
        primary("snapshot_part", "token"),
        foreign("fk_snapshot_part_snapshot_id", ["snapshot_id"], ["snapshot.id"]),
    )
    op.create_index("ix_snapshot_part_snapshot", "snapshot_part", ["snapshot_id"])
    op.create_table(
        "retained",
        *texts("project", "kind", "handle", "stack_id", "stack", "name", "reason"),
        *doubles("at"),
        primary("retained", "project", "kind", "handle"),
    )
    op.create_table(
        "delegation",
        *texts("id", "stack_id", "project", "user_id", "trust_id", "state", "object"),
        *doubles("created_at"),
        *doubles("due_at", nullable=True),
        primary("delegation", "id"),
    )
    op.create_index("ix_delegation_project", "delegation", ["project", "state"])
    op.create_index("ix_delegation_stack", "delegation", ["stack_id"])
    op.create_index("ix_delegation_state", "delegation", ["state", "due_at"])
    op.create_index("ix_delegation_trust", "delegation", ["trust_id"])


def _shards() -> None:
    """Units of ownership."""
    op.create_table(
        "shard",
        *texts("stack_id"),
        *integers("number"),
        *texts("project"),
        *integers("epoch"),
        *texts("owner", nullable=True),
        *doubles("lease_until"),
        *doubles("wake_at", nullable=True),
        *integers("wakes", "priority"),
        *doubles("observe_at", nullable=True),
        *integers("settled_revision", "failures"),
        zero("planned"),
        zero("done"),
        *doubles("look_from", "looked_at", nullable=True),
        empty("blind"),
        *texts("reason"),
        zero("crashes"),
        zero("stored"),
        zero("healing"),
        *doubles("health_at", "health_from", "health_looked_at", nullable=True),
        primary("shard", "stack_id", "number"),
        foreign("fk_shard_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_shard_health", "shard", ["health_at"])
    op.create_index("ix_shard_observe", "shard", ["observe_at"])
    op.create_index("ix_shard_wake", "shard", ["wake_at"], **where("wake_at IS NOT NULL"))


def _resources() -> None:
    """Resources and their observations."""
    op.create_table(
        "resource",
        *texts("key", "stack_id"),
        *integers("shard"),
        *texts("name", "type"),
        *integers("version"),
        *texts("handle"),
        *integers("revision"),
        *texts("action", "status", "reason", "requires", "properties"),
        *texts("metadata", nullable=True),
        *texts("deletion_policy"),
        *texts("replaces", "replaced_by", nullable=True),
        *texts("token"),
        *doubles("acted_at", "due_at", "converge_requested_at", nullable=True),
        *integers("attempts", "retries"),
        *texts("intent", nullable=True),
        *integers("born", "changed", "resolved", "judged_observation"),
        *doubles("created_at", "updated_at"),
        *texts("template_type", "external_id", "hooks", "marks", "new_metadata", nullable=True),
        *doubles("drains_until", nullable=True),
        primary("resource", "key"),
        foreign("fk_resource_shard", ["stack_id", "shard"], ["shard.stack_id", "shard.number"]),
    )
    op.create_index("ix_resource_handle", "resource", ["handle"])
    op.create_index("ix_resource_shard", "resource", ["stack_id", "shard"])
    op.create_table(
        "resource_observed",
        *texts("key", "stack_id", "resource_name", "handle", "presence", "object", "reason"),
        *integers("number"),
        *doubles("seen_at"),
        primary("resource_observed", "key"),
        foreign("fk_resource_observed_key", ["key"], ["resource.key"]),
    )
    op.create_table(
        "resource_properties_observed",
        *texts("id", "prop_name", "stack_id", "resource_name"),
        *texts("prop_value", nullable=True),
        sa.Column("since", sa.Double(), server_default="0", nullable=False),
        primary("resource_properties_observed", "id", "prop_name"),
        foreign("fk_resource_properties_observed_id", ["id"], ["resource.key"]),
    )
    op.create_index("ix_resource_properties_observed_stack", "resource_properties_observed", ["stack_id"])
    op.create_table(
        "forsaken",
        *texts("token", "kind", "project"),
        *doubles("look_at", "until"),
        *doubles("looked_at", nullable=True),
        primary("forsaken", "token"),
    )
    op.create_index("ix_forsaken_look_at", "forsaken", ["look_at"])
    op.create_table(
        "changed_server", *texts("project", "handle"), *doubles("at"), primary("changed_server", "project", "handle")
    )


def _records() -> None:
    """Records of the service itself, and their signals."""
    op.create_table(
        "record",
        *texts("id", "kind", "project", "token", "link", "object"),
        *texts("secret", nullable=True),
        *doubles("created_at"),
        *doubles("updated_at", nullable=True),
        *counts("size", nullable=True),
        primary("record", "id"),
    )
    op.create_index("ix_record_link", "record", ["link", "kind"])
    op.create_index("ix_record_listing", "record", ["kind", "project", "created_at", "id"])
    op.create_index("ix_record_size", "record", ["kind", "project", "size"])
    op.create_index("uq_record_token", "record", ["kind", "token"], unique=True)
    op.create_table(
        "signal",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        *texts("record_id", "object"),
        *doubles("at"),
        primary("signal", "seq"),
        foreign("fk_signal_record_id", ["record_id"], ["record.id"]),
    )
    op.create_index("ix_signal_record", "signal", ["record_id", "seq"])
    op.create_table(
        "signal_tally",
        *texts("record_id"),
        *counts("seq"),
        *integers("signals"),
        *counts("size"),
        *integers("senders"),
        *doubles("failed_at", nullable=True),
        *integers("failed_after", nullable=True),
        *texts("failure"),
        primary("signal_tally", "record_id"),
        foreign("fk_signal_tally_record_id", ["record_id"], ["record.id"]),
    )
    op.create_table(
        "signal_sender",
        *texts("record_id", "digest"),
        *integers("number"),
        *doubles("at"),
        *texts("reason"),
        primary("signal_sender", "record_id", "digest"),
        foreign("fk_signal_sender_record_id", ["record_id"], ["record.id"]),
    )
    op.create_index("ix_signal_sender_number", "signal_sender", ["record_id", "number"])
    op.create_table(
        "deferred_signal",
        sa.Column("id", SEQUENCE, autoincrement=True, nullable=False),
        *texts("stack_id", "record_id", "reason"),
        *doubles("due_at"),
        primary("deferred_signal", "id"),
        foreign("fk_deferred_signal_record_id", ["record_id"], ["record.id"]),
        foreign("fk_deferred_signal_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_deferred_signal_due_at", "deferred_signal", ["due_at"])
    op.create_index("ix_deferred_signal_stack", "deferred_signal", ["stack_id"])


def _events() -> None:
    """Events, and their receivers."""
    op.create_table(
        "event",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        *texts("stack_id", "name", "key", "handle", "type", "action", "status", "reason"),
        *doubles("at"),
        empty("requested_by"),
        empty("request_id"),
        primary("event", "seq"),
        foreign("fk_event_stack_id", ["stack_id"], ["stack.id"]),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_stack", "event", ["stack_id", "seq"])
    op.create_table(
        "event_sink",
        *texts("stack_id", "digest", "settings"),
        *counts("cursor"),
        *integers("epoch"),
        *doubles("due_at"),
        *integers("failures"),
        *doubles("failing_since", nullable=True),
        *texts("reason"),
        primary("event_sink", "stack_id", "digest"),
        foreign("fk_event_sink_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_event_sink_due_at", "event_sink", ["due_at"])
    op.create_table(
        "message_bus",
        *texts("name"),
        *counts("cursor"),
        zero("epoch"),
        sa.Column("due_at", sa.Double(), server_default="0", nullable=False),
        zero("failures"),
        *doubles("failing_since", nullable=True),
        empty("reason"),
        primary("message_bus", "name"),
    )
    op.create_table(
        "resize",
        sa.Column("event", SEQUENCE, autoincrement=False, nullable=False),
        *texts("stack_id"),
        *doubles("adjustment"),
        *texts("adjustment_type"),
        *integers("before", "after"),
        primary("resize", "event"),
        foreign("fk_resize_event", ["event"], ["event.seq"]),
        foreign("fk_resize_stack_id", ["stack_id"], ["stack.id"]),
    )
    op.create_index("ix_resize_stack", "resize", ["stack_id", "event"])


def _rollouts() -> None:
    """Changes of members in steps."""
    op.create_table(
        "rollout",
        *texts("key", "stack_id"),
        *integers("shard"),
        *texts("name", "members", "state", "settings"),
        *integers("step", "total", "active", "target"),
        *doubles("started_at", "step_at"),
        *doubles("reported_at", nullable=True),
        *integers("approved", "forgiven"),
        *texts("alarm"),
        *doubles("due_at", nullable=True),
        *texts("reason"),
        *integers("place"),
        *texts("first"),
        *texts("zones", nullable=True),
        *integers("subject", "giving", nullable=True),
        primary("rollout", "key"),
        foreign("fk_rollout_key", ["key"], ["resource.key"]),
    )
    op.create_index("ix_rollout_due_at", "rollout", ["due_at"], **where("due_at IS NOT NULL"))
    op.create_index("ix_rollout_stack", "rollout", ["stack_id"])
    op.create_table(
        "rollout_gate",
        *texts("handle", "key"),
        *integers("bit", "gates"),
        primary("rollout_gate", "handle", "key", "bit"),
        foreign("fk_rollout_gate_handle", ["handle"], ["record.id"]),
        foreign("fk_rollout_gate_key", ["key"], ["rollout.key"]),
    )
    op.create_table(
        "active_metadata_updates",
        *texts("resource_id", "instance_id"),
        *integers("step", "reported"),
        *texts("status", "said"),
        *doubles("reported_at", nullable=True),
        primary("active_metadata_updates", "resource_id", "instance_id"),
        foreign("fk_active_metadata_updates_resource_id", ["resource_id"], ["resource.key"]),
    )
    op.create_index(
        "ix_active_metadata_updates_failed", "active_metadata_updates", ["resource_id"], **where("status = 'FAILURE'")
    )
    op.create_index("ix_active_metadata_updates_step", "active_metadata_updates", ["resource_id", "step", "status"])
    op.create_table(
        "member_report",
        *texts("key", "member"),
        *doubles("succeeded_at", "failed_at", nullable=True),
        *texts("said"),
        primary("member_report", "key", "member"),
        foreign("fk_member_report_key", ["key"], ["resource.key"]),
    )


def _service() -> None:
    """The service itself; rows for features that MariaDB and MySQL lack."""
    op.create_table(
        "worker",
        *texts("name", "host"),
        *integers("pid"),
        *texts("version", "board"),
        *doubles("started_at", "seen_at"),
        primary("worker", "name"),
    )
    op.create_table(
        "timeline",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        *integers("generation"),
        *doubles("anchor", "offset_s", "kept_at", "step_s"),
        primary("timeline", "id"),
    )
    op.create_table("request_turn", *texts("service"), *doubles("free_at"), primary("request_turn", "service"))
    if op.get_bind().dialect.name == "mysql":
        op.create_table("latch", *texts("name"), *counts("turns"), primary("latch", "name"))
        op.create_table(
            "transaction_mark",
            sa.Column("id", SEQUENCE, autoincrement=True, nullable=False),
            primary("transaction_mark", "id"),
        )
