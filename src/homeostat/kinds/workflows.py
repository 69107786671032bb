"""Workflows."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses, mapping
from homeostat.model.observed import Remedy

WORKFLOW = Kind(
    name="workflow",
    description="A workflow: tasks and their order.",
    fixed={
        "name": TEXT,
    },
    mutable={
        "type": TEXT,
        "tasks": LIST,
        "use_request_body_as_input": BOOLEAN,
        "tags": LIST,
        "description": TEXT,
        "input": MAP,
        "output": MAP,
        "params": MAP,
        "task_defaults": MAP,
    },
    reported={
        "executions": LIST,
    },
    operations={
        "run": "with `token` and `input`: it is run once for a token, and the answer is Transient until it has ended; "
        "with `cancel` it is ended where it still runs",
    },
    id_field="name",
)
CRON_TRIGGER = Kind(
    name="cron_trigger",
    description="A trigger that runs a workflow at set times; one that has run `count` times may be gone.",
    fixed={
        "name": TEXT,
        "pattern": TEXT,
        "workflow_name": TEXT,
        "workflow_input": MAP,
        "first_time": TEXT,
        "count": INTEGER,
    },
    reported={
        "next_execution_time": TEXT,
        "remaining_executions": INTEGER,
    },
    id_field="name",
)
EXTERNAL_RESOURCE = Kind(
    name="external_resource",
    description="A thing that workflows manage.",
    fixed={
        "actions": mapping("{CREATE|UPDATE|SUSPEND|RESUME|DELETE: {workflow, params}}"),
        "description": TEXT,
        "replace_on_change_inputs": LIST,
        "always_update": BOOLEAN,
    },
    mutable={
        "input": MAP,
    },
    reported={
        "status": TEXT,
        "action": TEXT,
        "output": MAP,
    },
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
)

KINDS = (
    WORKFLOW,
    CRON_TRIGGER,
    EXTERNAL_RESOURCE,
)
