"""Container clusters, and containers that run alone."""

from homeostat.kinds.base import TEXT, Kind, Statuses, listing, mapping
from homeostat.model.observed import Remedy

KINDS = (
    Kind("cluster_template", "What container clusters are made from."),
    Kind(
        "container_cluster",
        "A cluster that runs containers.",
        reported={
            "status": TEXT,
            "api_address": TEXT,
            "master_addresses": listing("[address]"),
            "node_addresses": listing("[address]"),
            "stack_id": TEXT,
            "coe_version": TEXT,
            "container_version": TEXT,
            "status_reason": TEXT,
            "fault": TEXT,
        },
        statuses=Statuses(
            ready=frozenset(
                {"adopt_complete", "check_complete", "create_complete", "resume_complete", "update_complete"}
            ),
            busy=frozenset({"create_in_progress", "delete_in_progress", "rollback_in_progress", "update_in_progress"}),
            broken={
                "create_failed": Remedy.RECREATE,
                "delete_complete": Remedy.RECREATE,
                "delete_failed": Remedy.MANUAL,
                "update_failed": Remedy.MANUAL,
            },
        ),
    ),
    Kind(
        "app_container",
        "A container that runs an application.",
        extra_fixed={"restart_policy": mapping("{Name, MaximumRetryCount}")},
        reported={"status": TEXT, "addresses": mapping("{network: [{addr, version, port}]}")},
        statuses=Statuses(
            ready=frozenset({"running", "stopped"}),
            busy=frozenset({"created", "creating", "deleting", "rebuilding", "restarting"}),
            broken={"dead": Remedy.RECREATE, "deleted": Remedy.RECREATE, "error": Remedy.RECREATE},
            operations={"paused": "unpause"},
        ),
        operations={"start": "", "unpause": ""},
    ),
)
