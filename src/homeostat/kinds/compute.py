"""Compute: servers, key pairs, flavors and their groups."""

from homeostat.kinds.base import (
    BOOLEAN,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    TEXT,
    Field,
    FieldType,
    Kind,
    Statuses,
    listing,
    mapping,
    snapshot_kind,
)
from homeostat.model.observed import Remedy

SERVER = Kind(
    name="server",
    description="A server.",
    fixed={
        "security_groups": LIST,
        "personality": MAP,
        "key_name": TEXT,
        "block_device_mapping": LIST,
        "availability_zone": TEXT,
        "scheduler_hints": MAP,
        "reservation_id": TEXT,
        "config_drive": BOOLEAN,
        "diskConfig": TEXT,
    },
    mutable={
        "name": TEXT,
        "image": TEXT,
        "flavor": TEXT,
        "metadata": MAP,
        "user_data": TEXT,
        "admin_pass": TEXT,
        "tags": LIST,
        "networks": listing("[{network, port, fixed_ip}]"),
        "preserve_ephemeral": BOOLEAN,
        "keeps_user_data": Field(FieldType.BOOLEAN, "", "a change of user_data does not rebuild it"),
    },
    reported={
        "status": TEXT,
        "locked": BOOLEAN,
        "address": TEXT,
        "addresses": mapping("{network: [{addr, version, port, mac}]}"),
        "fault": TEXT,
        "console_log": TEXT,
        "pid": Field(FieldType.INTEGER, "", "of the process, in the local cloud"),
    },
    statuses=Statuses(
        ready=frozenset({"active"}),
        busy=frozenset(
            {
                "building",
                "deleting",
                "migrating",
                "rebooting",
                "rebuilding",
                "resizing",
                "starting",
                "unreachable",
            }
        ),
        broken={"error": Remedy.RECREATE, "soft_deleted": Remedy.RECREATE},
        operations={"lost": "reboot", "stopped": "start", "paused": "unpause", "suspended": "resume"},
        suspended=frozenset({"suspended"}),
    ),
    operations={
        "start": "",
        "stop": "",
        "reboot": "",
        "pause": "",
        "unpause": "",
        "suspend": "Changes nothing if it is suspended.",
        "resume": "",
        "lock": "Changes nothing if it is locked.",
        "unlock": "",
        "rebuild": "",
        "snapshot": "See `Snapshots` of the port.",
        "adopt": "Takes over the `ports` that another service has made for it: they are deleted with it.",
    },
    snapshot_field="image",
    notes=(
        ("A locked server refuses every change, its deletion, and every operation but lock, unlock and snapshot."),
        "A server whose `image` is the id of a snapshot gets the saved disk.",
        "Its `scheduler_hints` name a server group as `{group}`.",
        "A server that is `lost` should run, but its host does not know it.",
        "A server that is `soft_deleted` was deleted, and is kept for a while: deleting it once more removes it.",
        "A server that is `unreachable` goes on, or not, on a host that the cloud cannot ask for the time being.",
    ),
)
KEYPAIR = Kind(
    name="keypair",
    description="A key pair that may log in to servers.",
    fixed={
        "name": TEXT,
        "public_key": TEXT,
        "type": TEXT,
        "user": TEXT,
    },
    reported={
        "private_key": TEXT,
        "fingerprint": TEXT,
    },
    id_field="name",
    creation_only=("private_key",),
)
SERVER_GROUP = Kind(
    name="server_group",
    description="Servers that should share a host, or should not; they name it as the group in scheduler_hints.",
    fixed={
        "name": TEXT,
        "policies": LIST,
        "rules": MAP,
    },
    reported={
        "members": listing("[id]"),
    },
)
FLAVOR = Kind(
    name="flavor",
    description="A size of servers that users may choose.",
    fixed={
        "name": TEXT,
        "ram": INTEGER,
        "vcpus": INTEGER,
        "disk": INTEGER,
        "swap": INTEGER,
        "ephemeral": INTEGER,
        "rxtx_factor": NUMBER,
        "is_public": BOOLEAN,
        "flavorid": TEXT,
    },
    mutable={
        "tenants": LIST,
        "extra_specs": MAP,
    },
)
HOST_AGGREGATE = Kind(
    name="host_aggregate",
    description="Compute hosts that have something in common.",
    mutable={
        "name": TEXT,
        "metadata": MAP,
        "availability_zone": TEXT,
        "hosts": LIST,
    },
)
COMPUTE_QUOTA = Kind(
    name="compute_quota",
    description="The compute quota of a project.",
    fixed={
        "project": TEXT,
    },
    mutable={
        "cores": INTEGER,
        "fixed_ips": INTEGER,
        "floating_ips": INTEGER,
        "instances": INTEGER,
        "injected_files": INTEGER,
        "injected_file_content_bytes": INTEGER,
        "injected_file_path_bytes": INTEGER,
        "key_pairs": INTEGER,
        "metadata_items": INTEGER,
        "ram": INTEGER,
        "security_groups": INTEGER,
        "security_group_rules": INTEGER,
        "server_groups": INTEGER,
        "server_group_members": INTEGER,
    },
    notes=("Deleting one restores the defaults of the cloud.",),
)
SERVER_SNAPSHOT = snapshot_kind(SERVER)

KINDS = (
    SERVER,
    KEYPAIR,
    SERVER_GROUP,
    FLAVOR,
    HOST_AGGREGATE,
    COMPUTE_QUOTA,
    SERVER_SNAPSHOT,
)
