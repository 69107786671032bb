"""The tables: one schema for SQLite, PostgreSQL, and MariaDB and MySQL. All times are seconds since the epoch, UTC.

- `cells`: types of columns; `base`: the metadata of all tables
- `stacks`, `resources`, `events`, `records`, `rollouts`, `clusters`, `health`: the tables, by subject
- `rows`: the types of their rows, for mypy
"""

from homeostat.store.schema.base import Sequence, metadata
from homeostat.store.schema.cells import (
    Cell,
    EncryptedJson,
    EncryptedText,
    Json,
    SafeText,
    as_stored,
    cell_of,
    json_size,
    to_json,
    without_nul,
)
from homeostat.store.schema.clusters import action, cluster, cluster_policy, node, policy, profile, receiver
from homeostat.store.schema.events import event, event_sink, message_bus, resize
from homeostat.store.schema.health import declared_host, health_check, node_health, recovery, vantage_look
from homeostat.store.schema.records import (
    changed_server,
    deferred_signal,
    latch,
    record,
    request_turn,
    signal,
    signal_sender,
    signal_tally,
    timeline,
    transaction_mark,
    trust,
    worker,
)
from homeostat.store.schema.resources import (
    orphan,
    resource,
    resource_observed,
    resource_properties_observed,
    retained,
    shard,
)
from homeostat.store.schema.rollouts import active_metadata_updates, member_report, rollout, rollout_gate
from homeostat.store.schema.stacks import file, revision, snapshot, snapshot_part, stack

__all__ = [
    "Cell",
    "EncryptedJson",
    "EncryptedText",
    "Json",
    "SafeText",
    "Sequence",
    "action",
    "active_metadata_updates",
    "as_stored",
    "cell_of",
    "changed_server",
    "cluster",
    "cluster_policy",
    "declared_host",
    "deferred_signal",
    "event",
    "event_sink",
    "file",
    "health_check",
    "json_size",
    "latch",
    "member_report",
    "message_bus",
    "metadata",
    "node",
    "node_health",
    "orphan",
    "policy",
    "profile",
    "receiver",
    "record",
    "recovery",
    "request_turn",
    "resize",
    "resource",
    "resource_observed",
    "resource_properties_observed",
    "retained",
    "revision",
    "rollout",
    "rollout_gate",
    "shard",
    "signal",
    "signal_sender",
    "signal_tally",
    "snapshot",
    "snapshot_part",
    "stack",
    "timeline",
    "to_json",
    "transaction_mark",
    "trust",
    "vantage_look",
    "without_nul",
    "worker",
]
