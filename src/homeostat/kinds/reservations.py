"""Reservations and bare metal."""

from homeostat.kinds.base import ANY, BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

RESERVABLE_HOST = Kind(
    name="reservable_host",
    description="A host of the cloud that can be reserved.",
    fixed={
        "name": TEXT,
        "extra_capability": MAP,
    },
    reported={
        "status": TEXT,
        "hypervisor_hostname": TEXT,
        "vcpus": INTEGER,
        "memory_mb": INTEGER,
        "hypervisor_type": TEXT,
        "hypervisor_version": INTEGER,
        "cpu_info": MAP,
        "local_gb": INTEGER,
        "service_name": TEXT,
        "reservable": BOOLEAN,
        "trust_id": TEXT,
        "created_at": TEXT,
        "updated_at": ANY,
    },
    statuses=Statuses(ready=frozenset({"up"}), broken={"down": Remedy.MANUAL, "error": Remedy.MANUAL}),
)
LEASE = Kind(
    name="lease",
    description="A lease: reservations for a time.",
    fixed={
        "name": TEXT,
        "start_date": TEXT,
        "end_date": TEXT,
        "reservations": LIST,
        "events": LIST,
        "before_end_date": TEXT,
    },
    reported={
        "status": TEXT,
        "created_at": TEXT,
        "updated_at": ANY,
        "degraded": BOOLEAN,
        "user_id": TEXT,
        "project_id": TEXT,
        "trust_id": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"active", "pending", "terminated"}),
        busy=frozenset({"creating", "starting", "terminating", "updating"}),
        broken={"error": Remedy.MANUAL},
    ),
)
BAREMETAL_PORT = Kind(
    name="baremetal_port",
    description="A network port of a machine.",
    mutable={
        "node_uuid": TEXT,
        "address": TEXT,
        "portgroup_uuid": TEXT,
        "local_link_connection": MAP,
        "pxe_enabled": BOOLEAN,
        "physical_network": TEXT,
        "extra": MAP,
        "is_smartnic": BOOLEAN,
    },
    reported={
        "internal_info": MAP,
    },
)

KINDS = (
    RESERVABLE_HOST,
    LEASE,
    BAREMETAL_PORT,
)
