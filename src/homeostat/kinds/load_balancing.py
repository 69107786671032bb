"""Load balancing."""

from dataclasses import replace

from homeostat.kinds.base import INTEGER, LIST, TEXT, Field, FieldType, Kind, Statuses
from homeostat.model.observed import Remedy

PENDING = frozenset({"building", "deleting", "pending_create", "pending_delete", "pending_update"})
STATUSES = Statuses(ready=frozenset({"active", "online"}), busy=PENDING)

KINDS = (
    Kind(
        "load_balancer",
        "A load balancer with an address of its own.",
        extra_fixed={"vip_network": TEXT},
        reported={"status": TEXT, "vip_port_id": TEXT, "pools": LIST},
        statuses=replace(STATUSES, operations={"error": "start", "stopped": "start"}),
        operations={
            "start": "Only where it has a process that can die; its status is then `stopped`.",
            "delete_with_parts": (
                "Its argument `parts` ({kind: [handle]}) lists the parts that may be deleted with it. If it has "
                "others, it is refused for good and nothing is deleted."
            ),
        },
        parts=("listener", "pool", "pool_member", "health_monitor", "l7_policy", "l7_rule"),
        notes=(
            "It may be created without vip_subnet: the cloud chooses one, of the network vip_network if that is given.",
            "`delete` is refused as long as it has parts.",
        ),
    ),
    Kind(
        "listener",
        "A port on which a load balancer takes connections.",
        reported={"status": TEXT},
        statuses=replace(STATUSES, busy=PENDING | {"stopped"}, broken={"error": Remedy.UPDATE}),
    ),
    Kind(
        "pool",
        "A pool of servers that share the connections of a load balancer.",
        reported={"status": TEXT, "members": LIST, "healthmonitor_id": TEXT},
        statuses=replace(STATUSES, broken={"error": Remedy.UPDATE}),
    ),
    Kind(
        "pool_member",
        "One server of a pool.",
        reported={
            "status": TEXT,
            "operating_status": Field(FieldType.TEXT, "online|error|offline|no_monitor|draining"),
        },
        statuses=replace(STATUSES, broken={"error": Remedy.RECREATE}),
        notes=(
            "It may be created with `server` in place of address: "
            "the server's first address, on its subnet if it has one.",
        ),
    ),
    Kind(
        "health_monitor",
        "A check of which members of a pool are healthy.",
        reported={"status": TEXT},
        statuses=replace(STATUSES, broken={"error": Remedy.RECREATE}),
    ),
    Kind(
        "l7_policy",
        "A layer 7 policy: what a listener does with requests that match its rules.",
        extra_mutable={"position": INTEGER},
        reported={"status": TEXT, "rules": LIST},
        statuses=STATUSES,
    ),
    Kind(
        "l7_rule",
        "A layer 7 rule; a request must match all rules of the policy.",
        reported={"status": TEXT},
        statuses=STATUSES,
    ),
    Kind("load_balancer_flavor", "A flavor of load balancers that users may choose."),
    Kind("load_balancer_flavor_profile", "A flavor profile: what a provider makes of a flavor of load balancers."),
    Kind("load_balancer_zone", "An availability zone of load balancers that users may choose."),
    Kind(
        "load_balancer_zone_profile",
        "An availability zone profile: what a provider makes of an availability zone of load balancers.",
    ),
    Kind(
        "load_balancer_quota",
        "The load balancing quota of a project.",
        notes=("Deleting one restores the defaults of the cloud.",),
    ),
)
