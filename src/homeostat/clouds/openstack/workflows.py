"""Workflows, cron triggers, and external resources managed by workflows."""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import NAMESPACE, AsId, InMetadata, InTags
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain
from homeostat.resources.kind_fields import fields_of
from homeostat.templates.yaml_parser import parse_yaml

TEXT = {"Content-Type": "text/plain; charset=utf-8"}
EXECUTIONS_MAX = 100
"""Maximum number of executions that an observation of a workflow shows, newest first."""
EXECUTION_FIELDS = ("id", "workflow_name", "created_at", "updated_at", "state")
EMPTY: tuple[Any, ...] = (None, "", {}, [])
"""Values that are left out of a workflow's definition."""
BUSY = {"waiting": "running", "delayed": "running"}
ENDED = frozenset({"success", "error", "cancelled"})
DELETE_LOOK_S = 1.0
"""Seconds between looks at the workflow that deletes an external resource."""
RUN_LOOK_S = 1.0
"""Seconds between looks at a running workflow."""


class Workflows(Collection):
    """Workflows, whose name is their id. The service stores them as text."""

    kind = "workflow"
    service = "workflow"
    path, keys = "/workflows", "workflows"
    further_looks = "one for each, for its executions"
    token = InTags(query="")

    def list(self, **filters: Any) -> Iterator[Wire]:
        return map(_read, super().list(**filters))

    def get(self, handle: str) -> Wire:
        return _read(super().get(handle))

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def object_of(self, thing: Wire) -> Wire:
        known = fields_of(self.kind).all
        fields = {name: value for name, value in thing.items() if name in known}
        return {**self.token.hide(fields), "id": thing["name"], "project_id": thing.get("project_id")}

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        names = list(things)
        executions = self.cloud.side_by_side(lambda name: self._executions(things[name]), names) if names else []
        return {name: {**things[name], "executions": runs} for name, runs in zip(names, executions, strict=True)}

    def _executions(self, thing: Wire) -> Sequence[Wire]:
        newest = {"sort_keys": "created_at", "sort_dirs": "desc", "limit": EXECUTIONS_MAX}
        answer = self.api.get("/executions", workflow_id=thing["uuid"], fields=",".join(EXECUTION_FIELDS), **newest)
        return [{name: run.get(name) for name in EXECUTION_FIELDS} for run in answer["executions"]]

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        thing = self._send("POST", self.token.write(dict(spec), token), token)
        return {**thing, "executions": []}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        present = self.get(handle)
        token = self.token.read(present)
        # Adopted workflows have no token.
        whole = self.token.write(dict(spec), token) if token else spec
        if _text_of(handle, whole) == _text_of(handle, present):
            return present
        return self._send("PUT", {**whole, "name": handle}, handle, scope=present["scope"])

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"run": self._run}

    def _run(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Run a workflow once per token, or check this run.

        Raises:
            Missing: The workflow does not exist.
            Terminal: The run failed, or was cancelled.
            Transient: The workflow is running.
        """
        self.get(handle)
        # A request with the id of an existing execution starts no second run.
        id = str(uuid.uuid5(NAMESPACE, f"{handle} {arguments['token']}"))
        body = {"id": id, "workflow_name": handle, "input": arguments.get("input") or {}}
        run = self.api.request("POST", "/executions", body, of=handle)
        state = str(run["state"]).lower()
        if state not in ENDED and arguments.get("cancel"):
            run = self.api.request("PUT", f"/executions/{id}", {"state": "CANCELLED"}, of=handle)
            state = str(run["state"]).lower()
        if state not in ENDED:
            raise Transient(f"workflow {handle} is {state}", RUN_LOOK_S)
        if state != "success":
            raise Terminal(
                f"workflow {handle} went to {state}: {(run.get('state_info') or 'it does not say why').strip()}"
            )

    def _send(self, method: str, spec: Mapping[str, Any], of: str, **params: Any) -> Wire:
        text = _text_of(str(spec["name"]), spec).encode()
        answer = self.api.request(method, self.path, of=of, params=params, data=text, headers=TEXT)
        return _read(answer[self.keys][0])


def _text_of(name: str, spec: Mapping[str, Any]) -> str:
    """Return the definition of a workflow in the language of the service."""
    parts = {
        "type": spec.get("type"),
        "description": spec.get("description"),
        "tags": spec.get("tags"),
        "input": [key if value is None else {key: value} for key, value in (spec.get("input") or {}).items()],
        "output": spec.get("output"),
        "task-defaults": _task_text(spec.get("task_defaults") or {}),
        "tasks": {task["name"]: _task_text(task) for task in spec.get("tasks") or ()},
    }
    body = {key: value for key, value in parts.items() if value not in EMPTY}
    return json.dumps({"version": "2.0", name: body}, ensure_ascii=False)


def _task_text(task: Mapping[str, Any]) -> Wire:
    text = {key.replace("_", "-"): value for key, value in task.items() if key != "name" and value not in EMPTY}
    if str(text.get("join", "")).isdigit():
        text["join"] = int(text["join"])
    return text


def _read(thing: Wire) -> Wire:
    """Return a workflow with the fields of its kind, as far as its text can be parsed."""
    known = {name: thing.get(name) for name in ("name", "tags", "scope", "project_id")}
    known["uuid"] = thing["id"]
    try:
        written = parse_yaml(thing.get("definition") or "")[thing["name"]]
        return {
            **known,
            "type": written.get("type", "direct"),
            "description": written.get("description", ""),
            "input": _input_of(written.get("input") or ()),
            "output": written.get("output") or {},
            "task_defaults": _task_of(written.get("task-defaults") or {}),
            "tasks": [{"name": name, **_task_of(task)} for name, task in written["tasks"].items()],
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        return known


def _input_of(entries: Sequence[Any]) -> Wire:
    pairs = (entry.items() if isinstance(entry, Mapping) else [(entry, None)] for entry in entries)
    return {name: default for entry_pairs in pairs for name, default in entry_pairs}


def _task_of(written: Mapping[str, Any]) -> Wire:
    task = {name.replace("-", "_"): value for name, value in written.items()}
    return {**task, "join": str(task["join"])} if "join" in task else task


class CronTriggers(Collection):
    """Triggers, whose name is their id. The service removes a trigger after its last run."""

    kind = "cron_trigger"
    service = "workflow"
    path, keys = "/cron_triggers", "cron_triggers"
    token = InMetadata("workflow_params")
    renamed = {"first_time": "first_execution_time"}

    def list(self, **filters: Any) -> Iterator[Wire]:
        return (_decoded(trigger, "workflow_input", "workflow_params") for trigger in super().list(**filters))

    def get(self, handle: str) -> Wire:
        return _decoded(super().get(handle), "workflow_input", "workflow_params")

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        fields = {name: value for name, value in spec.items() if value not in EMPTY and name != "count"}
        trigger = super().create(token, {**fields, **_given(remaining_executions=spec.get("count"))})
        return _decoded(trigger, "workflow_input", "workflow_params")

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return self.get(handle)


class ExternalResources(Collection):
    """External resources: an environment with the resource's workflows and input, and its last execution.

    The environment is created first, since executions cannot be searched by their purpose. The id of an execution is
    derived from the environment, so a repeated request starts no second run. The environment counts the started
    executions: if the count is 0 and the first execution does not exist, the creation was interrupted before its start.
    """

    kind = "external_resource"
    service = "workflow"
    path, keys = "/environments", "environments"
    further_looks = "one for each, for its last execution"
    token = AsId("name")
    statuses = BUSY

    def list(self, **filters: Any) -> Iterator[Wire]:
        environments = map(_environment, super().list(**filters))
        return (environment for environment in environments if "actions" in environment["variables"])

    def get(self, handle: str) -> Wire:
        environment = _environment(super().get(handle))
        if "actions" not in environment["variables"]:
            raise Missing(f"the environment {handle} is no external resource")
        return environment

    def resolve(self, name: str) -> str | None:
        return self.handle_of(self.get(name))

    def handle_of(self, thing: Wire) -> str:
        return str(thing["name"])

    def object_of(self, thing: Wire) -> Wire:
        known = thing["variables"]
        run = thing["execution"] if "execution" in thing else self._execution(thing)
        kind = fields_of(self.kind)
        fields = {name: known.get(name) for name in (*kind.fixed, *kind.mutable, "action")}
        return super().object_of({**fields, **_state_of(known, run), "name": thing["name"]})

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        names = list(things)
        runs = self.cloud.side_by_side(lambda name: self._execution(things[name]), names) if names else []
        return {name: {**things[name], "execution": run} for name, run in zip(names, runs, strict=True)}

    def _execution(self, thing: Wire) -> Wire | None:
        """Return the last execution of an external resource; None if never started, or purged by the service."""
        known = thing["variables"]
        id = known.get("execution") or ("CREATE" in known["actions"] and _execution_id(thing, "CREATE", known["input"]))
        try:
            return _decoded(self.api.get(f"/executions/{id}"), "output") if id else None
        except Missing:
            return None

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        known = {
            "actions": {name: action for name, action in spec["actions"].items() if action},
            "input": spec.get("input") or {},
            "description": spec.get("description"),
            "replace_on_change_inputs": spec.get("replace_on_change_inputs") or [],
            "always_update": bool(spec.get("always_update")),
            "action": "CREATE",
            "count": 0,
        }
        thing: Wire = self.token.write({"variables": known}, token)
        try:
            self.api.request("POST", self.path, thing, of=token)
        except Terminal as error:
            # A duplicate is the effect of an earlier request with this token.
            if "uplicate" not in str(error):
                raise
        try:
            return self._act(thing, "CREATE", {}, token)
        except Uncertain:
            raise
        except HomeostatError:
            self._forget(thing["name"], token)
            raise

    def _act(self, thing: Wire, action: str, changed: Mapping[str, Any], of: str) -> Wire:
        """Start the workflow of an action, if any, and count the start in the environment."""
        known = {**thing["variables"], **changed, "action": action}
        begun = known["actions"].get(action)
        if begun:
            known["execution"] = _execution_id(thing, action, known["input"])
            body = {
                "id": known["execution"],
                "workflow_name": begun["workflow"],
                "input": known["input"],
                "params": begun.get("params") or {},
                "description": known.get("description") or "",
            }
            self.api.request("POST", "/executions", body, of=of)
        known["count"] = known["count"] + 1
        self.api.request("PUT", self.path, {"name": thing["name"], "variables": known}, of=of)
        return {**thing, "variables": known}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = self.get(handle)
        if "input" not in changed and not thing["variables"]["always_update"]:
            return thing
        return self._act(thing, "UPDATE", {"input": spec.get("input") or {}}, handle)

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        def operation(action: str) -> Callable[[str, Mapping[str, Any]], None]:
            return lambda handle, _: self._pass_on(handle, action)

        return {"suspend": operation("SUSPEND"), "resume": operation("RESUME")}

    def _pass_on(self, handle: str, action: str) -> None:
        thing = self.get(handle)
        if thing["variables"]["action"] != action:
            self._act(thing, action, {}, handle)

    def delete(self, handle: str) -> None:
        """Delete an external resource once its DELETE workflow has ended.

        Raises:
            Missing: The resource does not exist.
            Terminal: The workflow failed.
            Transient: The workflow is running.
        """
        thing = self.get(handle)
        known = thing["variables"]
        if known["action"] != "DELETE" and "DELETE" in known["actions"] and self._was_made(thing):
            thing = self._act(thing, "DELETE", {}, handle)
        if thing["variables"]["action"] == "DELETE":
            self._await(thing)
        self._forget(handle, handle)

    def _was_made(self, thing: Wire) -> bool:
        return thing["variables"]["count"] > 0 or self._execution(thing) is not None

    def _await(self, thing: Wire) -> None:
        run = self._execution(thing)
        state = str((run or {}).get("state", "success")).lower()
        if state not in ENDED:
            raise Transient(f"the workflow that deletes {thing['name']} is {state}", DELETE_LOOK_S)
        if state != "success":
            # With this action the next deletion runs the workflow again.
            known = {**thing["variables"], "action": "DELETE_FAILED"}
            self.api.request("PUT", self.path, {"name": thing["name"], "variables": known}, of=thing["name"])
            raise Terminal(f"the workflow that deletes it went to {state}: {(run or {}).get('state_info')}")

    def _forget(self, handle: str, of: str) -> None:
        self.api.request("DELETE", self.path_of(handle), of=of)


def _environment(thing: Wire) -> Wire:
    return _decoded(thing, "variables")


def _execution_id(thing: Wire, action: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of the next execution of an external resource: the same for the same request."""
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
    return str(uuid.uuid5(NAMESPACE, f"{thing['name']} {thing['variables']['count']} {action} {digest}"))


def _state_of(known: Wire, run: Wire | None) -> Wire:
    """Return the state of an external resource, by its last execution.

    The service purges old executions, so a missing execution counts as successful.
    """
    if run is None:
        begun = known["count"] > 0 or "CREATE" not in known["actions"]
        status = {"status": "success"} if begun else {"status": "error", "fault": "its workflow was not started"}
        return {**status, "output": {}}
    fault = {"fault": run["state_info"]} if run.get("state_info") else {}
    return {"status": "deleting" if known["action"] == "DELETE" else run["state"], "output": run["output"], **fault}


def _decoded(thing: Wire, *fields: str) -> Wire:
    """Return an object whose JSON texts in these fields are decoded."""
    texts = {name: thing[name] for name in fields if isinstance(thing.get(name), str)}
    return {**thing, **{name: json.loads(text or "{}") or {} for name, text in texts.items()}}


def _given(**fields: Any) -> Wire:
    return {name: value for name, value in fields.items() if value is not None}


COLLECTIONS: tuple[type[Collection], ...] = (Workflows, CronTriggers, ExternalResources)
