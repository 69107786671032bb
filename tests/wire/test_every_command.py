"""Every command that python-heatclient gives the `openstack` command works: the genuine command, in this process."""

import json
from collections.abc import Callable
from importlib.metadata import entry_points

import pytest

from tests.waiting import until
from tests.wire import templates
from tests.wire.commands import OpenStack

GROUP = "openstack.orchestration.v1"
HOOKED = """
heat_template_version: 2018-08-31
resources:
  waits: {type: OS::Heat::TestResource}
"""


Proof = Callable[[OpenStack], None]
PROOFS: dict[str, Proof] = {}


def proves(command: str) -> Callable[[Proof], Proof]:
    def keep(proof: Proof) -> Proof:
        PROOFS[command] = proof
        return proof

    return keep


# -- stacks ------------------------------------------------------------------------------------------------------------


@proves("stack create")
def create(openstack: OpenStack) -> None:
    template = openstack.text("more.yaml", templates.HELLO)
    environment = openstack.text("env.yaml", "parameters: {word: said}")
    made = openstack.shown(
        "stack", "create", "-t", template, "-e", environment, "--tags", "a,b", "--timeout", "5", "more"
    )
    assert openstack.status(made["id"]) == "CREATE_COMPLETE"
    again = openstack("stack", "create", "-t", template, "more", code=1)
    assert "already exists" in again
    preview = openstack("stack", "create", "--dry-run", "-t", template, "preview")
    assert "speaker" in preview


@proves("stack update")
def update(openstack: OpenStack) -> None:
    openstack("stack", "update", "--existing", "--parameter", "word=other", "hello")
    assert openstack.status() == "UPDATE_COMPLETE"
    template = openstack.text("hello.yaml", templates.HELLO)
    changes = openstack("stack", "update", "--dry-run", "-t", template, "--parameter", "word=third", "hello")
    assert "updated" in changes


@proves("stack show")
def show(openstack: OpenStack) -> None:
    shown = openstack.shown("stack", "show", "hello")
    assert (shown["id"], shown["parameters"]["password"]) == (openstack.stack, "******")


@proves("stack list")
def listing(openstack: OpenStack) -> None:
    (listed,) = openstack.shown("stack", "list", "--property", "status=COMPLETE", "--sort", "stack_name:desc")
    assert listed["ID"] == openstack.stack
    assert openstack.shown("stack", "list", "--property", "status=FAILED") == []


@proves("stack delete")
def delete(openstack: OpenStack) -> None:
    openstack("stack", "delete", "--yes", "--wait", "hello")
    assert "Stack not found" in openstack("stack", "show", "hello", code=1)


@proves("stack template show")
def template_show(openstack: OpenStack) -> None:
    assert "OS::Heat::RandomString" in openstack("stack", "template", "show", "hello")


@proves("stack environment show")
def environment_show(openstack: OpenStack) -> None:
    assert openstack.shown("stack", "environment", "show", "hello")["parameters"] == {}


@proves("stack file list")
def file_list(openstack: OpenStack) -> None:
    assert openstack("stack", "file", "list", "hello").strip() == "files: {}"


@proves("stack output list")
def output_list(openstack: OpenStack) -> None:
    assert {each["output_key"] for each in openstack.shown("stack", "output", "list", "hello")} == {"said", "name"}


@proves("stack output show")
def output_show(openstack: OpenStack) -> None:
    assert openstack.shown("stack", "output", "show", "hello", "said")["output_value"] == "hello"
    assert openstack.shown("stack", "output", "show", "--all", "hello")["said"]


@proves("stack check")
def check(openstack: OpenStack) -> None:
    openstack("stack", "check", "--wait", "hello")
    assert openstack.status() == "CHECK_COMPLETE"


@proves("stack cancel")
def cancel(openstack: OpenStack) -> None:
    assert "not in cancelable state" in openstack("stack", "cancel", "hello", code=1)
    hooked = {"resource_registry": {"resources": {"speaker": {"hooks": "pre-update"}}}}
    change = {"parameters": {"word": "never"}, "environment": hooked}
    openstack.http.patch(f"stacks/hello/{openstack.stack}", json=change)
    openstack("stack", "cancel", "--wait", "hello")
    assert openstack.status() == "ROLLBACK_COMPLETE"


@proves("stack hook poll")
def hook_poll(openstack: OpenStack) -> None:
    _hooked(openstack)
    (waiting,) = openstack.shown("stack", "hook", "poll", "hooked")
    assert waiting["Resource Name"] == "waits"


@proves("stack hook clear")
def hook_clear(openstack: OpenStack) -> None:
    stack_id = _hooked(openstack)
    openstack("stack", "hook", "clear", "--pre-create", "hooked", "waits")
    assert openstack.status(stack_id) == "CREATE_COMPLETE"


def _hooked(openstack: OpenStack) -> str:
    """A stack that waits at a hook."""
    hooked = {"resource_registry": {"resources": {"waits": {"hooks": "pre-create"}}}}
    made = openstack.http.post("stacks", json={"stack_name": "hooked", "template": HOOKED, "environment": hooked})
    stack_id = str(made.json()["stack"]["id"])
    events = f"stacks/hooked/{stack_id}/events"
    until(lambda: "paused until Hook" in openstack.http.get(events).text, "the hook to be reached")
    return stack_id


@proves("stack failures list")
def failures_list(openstack: OpenStack) -> None:
    made = openstack.http.post("stacks", json={"stack_name": "failing", "template": templates.FAILING})
    assert openstack.status(made.json()["stack"]["id"]) == "CREATE_FAILED"
    assert "failing.bad" in openstack("stack", "failures", "list", "failing")


@proves("stack suspend")
def suspend(openstack: OpenStack) -> None:
    openstack("stack", "suspend", "--wait", "hello")
    assert openstack.status() == "SUSPEND_COMPLETE"


@proves("stack resume")
def resume(openstack: OpenStack) -> None:
    openstack("stack", "suspend", "--wait", "hello")
    openstack("stack", "resume", "--wait", "hello")
    assert openstack.status() == "RESUME_COMPLETE"


@proves("stack export")
def export(openstack: OpenStack) -> None:
    openstack("stack", "export", "--output-file", "hello.json", "hello")
    assert json.loads((openstack.directory / "hello.json").read_text())["name"] == "hello"


@proves("stack abandon")
def abandon(openstack: OpenStack) -> None:
    openstack("stack", "abandon", "--output-file", "hello.json", "hello")
    assert json.loads((openstack.directory / "hello.json").read_text())["id"] == openstack.stack


@proves("stack adopt")
def adopt(openstack: OpenStack) -> None:
    said = openstack.shown("stack", "output", "show", "hello", "name")["output_value"]
    openstack("stack", "abandon", "--output-file", "hello.json", "hello")
    openstack("stack", "adopt", "--adopt-file", "hello.json", "--wait", "again")
    assert openstack.shown("stack", "output", "show", "again", "name")["output_value"] == said


@proves("stack snapshot create")
def snapshot_create(openstack: OpenStack) -> None:
    made = openstack.shown("stack", "snapshot", "create", "--name", "first", "hello")
    assert made["name"] == "first"
    assert openstack.status() == "SNAPSHOT_COMPLETE"


@proves("stack snapshot list")
def snapshot_list(openstack: OpenStack) -> None:
    snapshot = _snapshot(openstack)
    (listed,) = openstack.shown("stack", "snapshot", "list", "hello")
    assert (listed["id"], listed["status"]) == (snapshot, "COMPLETE")


@proves("stack snapshot show")
def snapshot_show(openstack: OpenStack) -> None:
    snapshot = _snapshot(openstack)
    shown = openstack.shown("stack", "snapshot", "show", "hello", snapshot)["snapshot"]
    assert (shown["id"], shown["data"]["resources"].keys()) == (snapshot, {"name", "speaker"})


@proves("stack snapshot restore")
def snapshot_restore(openstack: OpenStack) -> None:
    snapshot = _snapshot(openstack)
    openstack.http.patch(f"stacks/hello/{openstack.stack}", json={"parameters": {"word": "changed"}})
    assert openstack.status() == "UPDATE_COMPLETE"
    openstack("stack", "snapshot", "restore", "hello", snapshot)
    assert openstack.status() == "RESTORE_COMPLETE"
    assert openstack.shown("stack", "output", "show", "hello", "said")["output_value"] == "hello"


@proves("stack snapshot delete")
def snapshot_delete(openstack: OpenStack) -> None:
    openstack("stack", "snapshot", "delete", "hello", _snapshot(openstack))
    assert openstack.shown("stack", "snapshot", "list", "hello") == []


def _snapshot(openstack: OpenStack) -> str:
    made = openstack.http.post(f"stacks/hello/{openstack.stack}/snapshots", json={"name": "first"}).json()
    assert openstack.status() == "SNAPSHOT_COMPLETE"
    return str(made["id"])


# -- resources and events ----------------------------------------------------------------------------------------------


@proves("stack resource list")
def resource_list(openstack: OpenStack) -> None:
    listed = openstack.shown("stack", "resource", "list", "hello", "--filter", "type=Random", "--long")
    assert [each["resource_name"] for each in listed] == ["name"]


@proves("stack resource show")
def resource_show(openstack: OpenStack) -> None:
    shown = openstack.shown("stack", "resource", "show", "--with-attr", "output", "hello", "speaker")
    assert shown["attributes"]["output"] == "hello"


@proves("stack resource metadata")
def resource_metadata(openstack: OpenStack) -> None:
    assert openstack.shown("stack", "resource", "metadata", "hello", "name") == {"colour": "blue"}


@proves("stack resource signal")
def resource_signal(openstack: OpenStack) -> None:
    assert "not supported" in openstack("stack", "resource", "signal", "hello", "name", code=1)
    handle = {"heat_template_version": "2018-08-31", "resources": {"told": {"type": "OS::Heat::WaitConditionHandle"}}}
    made = openstack.http.post("stacks", json={"stack_name": "waiting", "template": handle})
    openstack.status(made.json()["stack"]["id"])
    openstack("stack", "resource", "signal", "--data", '{"status": "SUCCESS", "id": "one"}', "waiting", "told")
    assert "one" in openstack.shown("stack", "resource", "metadata", "waiting", "told")


@proves("stack resource mark unhealthy")
def mark_unhealthy(openstack: OpenStack) -> None:
    openstack("stack", "resource", "mark", "unhealthy", "hello", "speaker", "it does not speak")
    events = openstack.http.get(f"stacks/hello/{openstack.stack}/resources/speaker/events").json()["events"]
    (marked,) = [each for each in events if each["resource_status"] == "CHECK_FAILED"]
    assert marked["resource_status_reason"] == "it does not speak"


@proves("stack event list")
def event_list(openstack: OpenStack) -> None:
    listed = openstack.shown("stack", "event", "list", "hello", "--filter", "resource_name=speaker")
    assert [each["resource_status"] for each in listed] == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]


@proves("stack event show")
def event_show(openstack: OpenStack) -> None:
    event, *_ = openstack.shown("stack", "event", "list", "hello", "--filter", "resource_name=speaker")
    assert openstack.shown("stack", "event", "show", "hello", "speaker", event["id"])["id"] == event["id"]


# -- configs and deployments -------------------------------------------------------------------------------------------


@proves("software config create")
def config_create(openstack: OpenStack) -> None:
    script = openstack.text("script.sh", "echo hello")
    made = openstack.shown("software", "config", "create", "--config-file", script, "--group", "script", "greeting")
    assert (made["name"], made["config"]) == ("greeting", "echo hello")


@proves("software config list")
def config_list(openstack: OpenStack) -> None:
    config = _config(openstack)
    assert [each["id"] for each in openstack.shown("software", "config", "list")] == [config]


@proves("software config show")
def config_show(openstack: OpenStack) -> None:
    assert openstack.shown("software", "config", "show", _config(openstack))["group"] == "script"


@proves("software config delete")
def config_delete(openstack: OpenStack) -> None:
    config = _config(openstack)
    openstack("software", "config", "delete", config)
    assert openstack.shown("software", "config", "list") == []


def _config(openstack: OpenStack) -> str:
    made = openstack.http.post("software_configs", json={"name": "script", "group": "script", "config": "true"})
    return str(made.json()["software_config"]["id"])


@proves("software deployment create")
def deployment_create(openstack: OpenStack) -> None:
    made = openstack.shown(
        "software",
        "deployment",
        "create",
        "--config",
        _config(openstack),
        "--server",
        "s",
        "--signal-transport",
        "NO_SIGNAL",
        "d",
    )
    assert (made["server_id"], made["status"]) == ("s", "IN_PROGRESS")


@proves("software deployment list")
def deployment_list(openstack: OpenStack) -> None:
    deployment = _deployment(openstack)
    assert [each["id"] for each in openstack.shown("software", "deployment", "list", "--server", "s")] == [deployment]


@proves("software deployment show")
def deployment_show(openstack: OpenStack) -> None:
    deployment = _deployment(openstack)
    assert openstack.shown("software", "deployment", "show", deployment)["id"] == deployment


@proves("software deployment output show")
def deployment_output_show(openstack: OpenStack) -> None:
    assert "output_values" in openstack("software", "deployment", "output", "show", "--all", _deployment(openstack))
    openstack("software", "deployment", "output", "show", _deployment(openstack), "no_such_output", code=1)


@proves("software deployment metadata show")
def deployment_metadata_show(openstack: OpenStack) -> None:
    _deployment(openstack)
    assert "script" in openstack("software", "deployment", "metadata", "show", "s")


@proves("software deployment delete")
def deployment_delete(openstack: OpenStack) -> None:
    deployment = _deployment(openstack)
    openstack("software", "deployment", "delete", deployment)
    assert openstack.shown("software", "deployment", "list") == []


def _deployment(openstack: OpenStack) -> str:
    given = {"config_id": _config(openstack), "server_id": "s"}
    made = openstack.http.post("software_deployments", json=given).json()["software_deployment"]
    values = {"output_values": {"deploy_stdout": "hello"}, "status": "COMPLETE"}
    assert openstack.http.put(f"software_deployments/{made['id']}", json=values).status_code == 200
    return str(made["id"])


# -- about types, templates and the service ----------------------------------------------------------------------------


@proves("orchestration resource type list")
def type_list(openstack: OpenStack) -> None:
    listed = openstack.shown("orchestration", "resource", "type", "list", "--filter", "name=OS::Nova", "--long")
    assert "OS::Nova::Server" in {each["Resource Type"] for each in listed}


@proves("orchestration resource type show")
def type_show(openstack: OpenStack) -> None:
    shown = openstack("orchestration", "resource", "type", "show", "--template-type", "hot", "OS::Nova::Server")
    assert "flavor" in shown


@proves("orchestration template function list")
def function_list(openstack: OpenStack) -> None:
    listed = openstack("orchestration", "template", "function", "list", "heat_template_version.2018-08-31")
    assert "get_attr" in listed


@proves("orchestration template version list")
def version_list(openstack: OpenStack) -> None:
    assert "heat_template_version.2018-08-31" in openstack("orchestration", "template", "version", "list")


@proves("orchestration template validate")
def validate(openstack: OpenStack) -> None:
    template = openstack.text("hello.yaml", templates.HELLO)
    assert "word" in openstack("orchestration", "template", "validate", "-t", template, "--show-nested")


@proves("orchestration service list")
def service_list(openstack: OpenStack) -> None:
    assert {each["Status"] for each in openstack.shown("orchestration", "service", "list")} >= {"up"}


@proves("orchestration build info")
def build_info(openstack: OpenStack) -> None:
    assert openstack.shown("orchestration", "build", "info")["api"]


@pytest.mark.parametrize("command", PROOFS)
@pytest.mark.shows("CV16")
def test_a_command_works(openstack: OpenStack, command: str) -> None:
    PROOFS[command](openstack)


def test_every_command_is_tried() -> None:
    there = {each.name.replace("_", " ") for each in entry_points(group=GROUP) if each.value.startswith("heatclient.")}
    assert there == set(PROOFS)
