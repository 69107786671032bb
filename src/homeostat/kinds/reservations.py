"""Reservations and bare metal."""

from homeostat.kinds.base import ANY, BOOLEAN, INTEGER, MAP, TEXT, Kind, Statuses
from homeostat.model.observed import Remedy

KINDS = (
    Kind(
        "reservable_host",
        "A host of the cloud that can be reserved.",
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
    ),
    Kind(
        "lease",
        "A lease: reservations for a time.",
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
    ),
    Kind("baremetal_port", "A network port of a machine.", reported={"internal_info": MAP}),
)
