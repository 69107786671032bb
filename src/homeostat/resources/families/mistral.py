"""Types of workflows: their definitions, their schedules, and external objects managed by workflows."""

from typing import Any

from homeostat.model.observed import READY, Presence, Verdict
from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing, passed_on, payload
from homeostat.resources.constraints import CRON_EXPRESSION
from homeostat.resources.rules import conflict, is_set, maps, missing, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    Schema,
    ValueType,
    boolean,
    integer,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support

FLOW: Schema = {
    "on_success": listing("Tasks to go on with when it succeeded."),
    "on_error": listing("Tasks to go on with when it failed."),
    "on_complete": listing("Tasks to go on with in any case."),
    "requires": listing("Tasks that must be done before; in reverse workflows."),
    "retry": mapping("How it is tried again."),
    "wait_before": integer("Seconds to wait before it."),
    "wait_after": integer("Seconds to wait after it."),
    "pause_before": boolean("Hold the workflow before it."),
    "timeout": integer("Seconds after which it has failed."),
    "concurrency": integer("Most actions at once, with with_items."),
}
TASK: Schema = {
    "name": text("Name of the task.", required=True),
    "description": text("Description of the task."),
    "input": mapping("Input of the action or workflow."),
    "action": text("Action to run."),
    "workflow": link("Workflow to run instead of an action.", "mistral.workflow"),
    "publish": mapping("Variables to give to the workflow."),
    "policies": mapping("Policies; write each of them in the task itself.", hidden=True),
    "with_items": text("Run it for each item of a list."),
    "keep_result": boolean("Keep the results of its actions."),
    "target": text("Executor to run it on."),
    "join": text("How many of the tasks before it to wait for: all, one or a number."),
    **FLOW,
}


def _task(task: Props) -> dict[str, Any]:
    """Return a task as the cloud expects it, with its policies in the task itself."""
    policies = {name.replace("-", "_"): value for name, value in (task.get("policies") or {}).items()}
    fields: dict[str, Any] = payload({**policies, **{name: task[name] for name in task if task[name] is not None}})
    return {name: value for name, value in fields.items() if name != "policies" and value not in ({}, [])}


class Workflow(ResourceType):
    """A workflow; its id is its name."""

    name = "OS::Mistral::Workflow"
    kind = "workflow"
    support = Support(version="2015.1")
    description = "A workflow: tasks and their order."
    properties = {
        "name": text("Name of the workflow."),
        "type": text(
            "direct goes from task to task, reverse takes what a task requires first.",
            required=True,
            update=True,
            constraints=(one_of("direct", "reverse"),),
        ),
        "use_request_body_as_input": boolean("The body of a signal is the input.", update=True, drift=False),
        "tags": listing("Tags.", update=True, same=comparison.includes),
        "description": text("Description of the workflow.", update=True),
        "input": mapping("Input of the workflow, with its defaults.", update=True),
        "output": mapping("Output of the workflow.", update=True),
        "params": mapping("Parameters of executions; task_name for a reverse workflow.", update=True),
        "task_defaults": mapping("What holds for all tasks.", update=True, fields=FLOW),
        "tasks": listing("The tasks.", required=True, update=True, items=mapping(fields=TASK)),
    }
    attributes = {
        "data": Attribute("Its name and input.", ValueType.MAP),
        "alarm_url": Attribute("Signed URL that runs it.", secret=True),
        "executions": Attribute("Its executions.", ValueType.LIST),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        kind = values.get("type")
        params = values.get("params")
        named = params is UNKNOWN or bool((params or {}).get("task_name"))
        require(kind != "reverse" or named, "task_name is needed when type is reverse", (*path, "params"))
        for index, task in maps(values, "tasks"):
            place = (*path, "tasks", index)
            if is_set(task, "workflow") and is_set(task, "action"):
                raise conflict(place, "workflow", "action")
            if not (is_set(task, "workflow") or is_set(task, "action")):
                raise missing(place, "workflow", "action")
            reverse = kind in ("reverse", UNKNOWN)
            require(reverse or not is_set(task, "requires"), "requires is for reverse workflows only", place)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec["tasks"] = [_task(task) for task in spec["tasks"]]
        if "task_defaults" in spec:
            spec["task_defaults"] = payload(spec["task_defaults"])
        return spec

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "data":
            return super().attribute(thing, name)
        return {"name": thing.seen.properties.get("name"), "input": thing.properties["input"]}


class CronTrigger(ResourceType):
    """A schedule of a workflow; its id is its name."""

    name = "OS::Mistral::CronTrigger"
    kind = "cron_trigger"
    support = Support(version="5.0.0")
    description = "Runs a workflow at set times."
    properties = {
        "name": text("Name of the trigger."),
        "pattern": text("When it runs, as a cron expression.", constraints=(CRON_EXPRESSION,)),
        "workflow": mapping(
            "The workflow.",
            required=True,
            fields={
                "name": link("The workflow.", "mistral.workflow", required=True),
                "input": mapping("Its input."),
            },
        ),
        "first_time": text("When it runs first, as YYYY-MM-DD HH:MM."),
        "count": integer("How often it runs."),
    }
    unsent = {"workflow"}
    attributes = {
        "next_execution_time": Attribute("When it runs next."),
        "remaining_executions": Attribute("How often it will still run.", ValueType.INTEGER),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if not (is_set(values, "pattern") or is_set(values, "first_time")):
            raise missing(path, "pattern", "first_time")

    def judge(self, thing: Thing, now: float) -> Verdict:
        """Judge a trigger; one with an end may be absent, as the cloud removes it after its last run."""
        ends = thing.properties.get("count") or not thing.properties.get("pattern")
        if ends and thing.seen.presence is Presence.ABSENT and thing.action != "DELETE":
            return READY
        return super().judge(thing, now)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        workflow = spec.pop("workflow")
        return {**spec, "workflow_name": workflow["name"], "workflow_input": workflow.get("input") or {}}


def _action(when: str) -> Property:
    return mapping(
        f"Workflow that runs when {when}.",
        fields={
            "workflow": link("The workflow.", "mistral.workflow", required=True),
            "params": mapping("Parameters of the execution.", default={}),
        },
    )


class ExternalResource(ResourceType):
    """An object that workflows create, update and delete; the output of the last workflow describes it."""

    name = "OS::Mistral::ExternalResource"
    kind = "external_resource"
    support = Support(version="9.0.0")
    description = "A thing that workflows manage."
    properties = {
        "actions": mapping(
            "Workflow for each action.",
            required=True,
            fields={
                "CREATE": _action("it is made"),
                "UPDATE": _action("its input changes"),
                "SUSPEND": _action("the stack is suspended"),
                "RESUME": _action("the stack is resumed"),
                "DELETE": _action("it is removed"),
            },
        ),
        "input": mapping("Input of the workflows.", default={}, update=True),
        "description": text("Description of the executions.", default="Heat managed"),
        "replace_on_change_inputs": listing("Inputs that a change of replaces the thing.", default=[]),
        "always_update": boolean("Run the workflow for updates also when its input is as before.", default=False),
    }
    attributes = {"output": Attribute("Output of the last workflow.", ValueType.MAP)}
    maintenance_methods = passed_on("SUSPEND", "RESUME")

    def always_updates(self, values: Props) -> bool:
        return bool(values.get("always_update"))

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        old, new = before["input"] or {}, after["input"] or {}
        fatal = [name for name in after["replace_on_change_inputs"] or () if old.get(name) != new.get(name)]
        if fatal:
            return f"input {', '.join(map(str, fatal))} changed, of which replace_on_change_inputs tells"
        return super().replacement_reason(before, after, changed)


TYPES: list[type[ResourceType]] = [Workflow, CronTrigger, ExternalResource]
