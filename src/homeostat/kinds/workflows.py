"""Workflows."""

from homeostat.kinds.base import INTEGER, LIST, MAP, TEXT, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

KINDS = (
    Kind(
        "workflow",
        "A workflow: tasks and their order.",
        reported={"executions": LIST},
        operations={
            "run": "with `token` and `input`: it is run once for a token, and the answer is Transient until it has "
            "ended; with `cancel` it is ended where it still runs"
        },
        id_field="name",
    ),
    Kind(
        "cron_trigger",
        "A trigger that runs a workflow at set times; one that has run `count` times may be gone.",
        extra_fixed={"workflow_name": TEXT, "workflow_input": MAP},
        reported={"next_execution_time": TEXT, "remaining_executions": INTEGER},
        id_field="name",
    ),
    Kind(
        "external_resource",
        "A thing that workflows manage.",
        extra_fixed={"actions": mapping("{CREATE|UPDATE|SUSPEND|RESUME|DELETE: {workflow, params}}")},
        reported={"status": TEXT, "action": TEXT, "output": MAP},
        statuses=Statuses(
            ready=frozenset({"success"}),
            busy=frozenset({"idle", "paused", "running"}),
            broken={"cancelled": Remedy.RECREATE, "error": Remedy.RECREATE},
        ),
        operations={"suspend": "", "resume": ""},
        notes=(
            "Each call runs the workflow of its action, if there is one.",
            "The field `action` reports the last operation, SUSPEND or RESUME.",
        ),
    ),
)
