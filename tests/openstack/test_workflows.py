"""Workflows with a real Mistral: what is written of them, triggers, and things that they manage."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.model.errors import Terminal, Transient, Uncertain
from homeostat.model.observed import Observation
from homeostat.resources.kind_fields import fields_of
from tests.openstack import lives
from tests.openstack.lives import Life, Spec, accepted, check_life, check_lost, check_never, make, ready, remove
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = pytest.mark.services("mistral")
NIGHTLY = "0 4 * * *"
TASKS = [
    {
        "name": "greet",
        "action": "std.echo",
        "input": {"output": "<% $.word %>"},
        "publish": {"said": "<% task().result %>"},
        "on_success": ["rest"],
        "retry": {"count": 2, "delay": 1},
        "wait_before": 0,
        "timeout": 60,
    },
    {"name": "rest", "description": "ü", "action": "std.noop", "join": "1", "policies": {"wait-after": 0}},
]
REVERSED = [{"name": "rest", "action": "std.noop", "requires": ["greet"]}, {"name": "greet", "action": "std.noop"}]
GREETING: Spec = {
    "type": "direct",
    "description": "says a word",
    "tags": ["a", "b"],
    "input": {"word": "hello", "other": None},
    "output": {"said": "<% $.said %>"},
    "task_defaults": {"on_error": ["fail"]},
    "tasks": TASKS,
}
WORKFLOW_CHANGES: tuple[Spec, ...] = (
    {"description": "another", "tags": ["c"]},
    {"input": {"word": "bye"}, "output": None, "task_defaults": {"timeout": 9}},
    {"type": "reverse", "params": {"task_name": "rest"}, "tasks": REVERSED, "task_defaults": None},
)


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def workflow(cloud: OpenStackCloud) -> Iterator[str]:
    """What says the word that it is given, two times."""
    said = {"type": "direct", "input": {"word": "x"}, "output": {"said": "<% $.word + $.word %>"}}
    made = make(cloud, "OS::Mistral::Workflow", {**said, "tasks": [{"name": "rest", "action": "std.noop"}]})
    yield made
    remove(cloud, "workflow", made)


@pytest.fixture(scope="module")
def failing(cloud: OpenStackCloud) -> Iterator[str]:
    made = make(
        cloud,
        "OS::Mistral::Workflow",
        {"type": "direct", "input": {"word": "x"}, "tasks": [{"name": "no", "action": "std.fail"}]},
    )
    yield made
    remove(cloud, "workflow", made)


@pytest.fixture(scope="module")
def slow(cloud: OpenStackCloud) -> Iterator[str]:
    """What takes some seconds."""
    rest = {"name": "rest", "action": "std.noop", "wait_before": 5}
    made = make(cloud, "OS::Mistral::Workflow", {"type": "direct", "input": {"word": "x"}, "tasks": [rest]})
    yield made
    remove(cloud, "workflow", made)


def life_of(kind: str, workflow: str) -> Life:
    if kind == "workflow":
        return Life("OS::Mistral::Workflow", GREETING, WORKFLOW_CHANGES, "never-was")
    if kind == "cron_trigger":
        named = {"name": workflow, "input": {"word": "w"}}
        return Life("OS::Mistral::CronTrigger", {"pattern": NIGHTLY, "workflow": named, "count": 3}, (), "never-was")
    begun = {"workflow": workflow, "params": {"env": {"a": 1}}}
    return Life(
        "OS::Mistral::ExternalResource",
        {"actions": {"CREATE": begun, "UPDATE": begun, "DELETE": begun}, "input": {"word": "a"}},
        ({"input": {"word": "b"}}, {"input": {"word": "a"}}, {"input": {}}),
    )


KINDS_HERE = ("workflow", "cron_trigger", "external_resource")


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_it_lives_and_dies(kind: str, cloud: OpenStackCloud, workflow: str) -> None:
    life = life_of(kind, workflow)
    check_never(cloud, kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("workflow", "/workflows"),
        ("cron_trigger", "/cron_triggers"),
        ("external_resource", "/executions"),
    ],
)
def test_a_lost_answer_has_made_one(
    kind: str, path: str, cloud: OpenStackCloud, project: Project, workflow: str
) -> None:
    check_lost(cloud, project, life_of(kind, workflow), "mistral-api", f"/v2{path}$")


def run(cloud: OpenStackCloud, name: str, token: str, **more: Any) -> Answer:
    arguments = {"token": token, "input": {"word": "w"}, **more}
    return cloud.operate("workflow", [Operation(name, "run", arguments)])[0]


def executions(cloud: OpenStackCloud, name: str) -> set[str]:
    """Ids of those of a workflow."""
    return {each["id"] for each in cloud.observe("workflow", [name])[0].properties["executions"]}


def ended(cloud: OpenStackCloud, name: str, token: str) -> Answer:
    answers: list[Answer] = []

    def has_ended() -> bool:
        answers.append(run(cloud, name, token))
        return not isinstance(answers[-1], Transient)

    until(has_ended, "the execution to end", lives.rest)
    return answers[-1]


@pytest.mark.shows("HS15")
def test_a_workflow_is_run_once_for_a_token(
    cloud: OpenStackCloud, project: Project, workflow: str, failing: str, slow: str
) -> None:
    token, before = str(uuid.uuid4()), executions(cloud, workflow)
    lost = {"service": "mistral-api", "method": "^POST$", "path": "/v2/executions$", "status": 502}
    with project.cloud.fault("http", **lost, after=True, times=1):
        assert isinstance(run(cloud, workflow, token), Uncertain)
    done = ended(cloud, workflow, token)
    assert isinstance(done, Observation)
    assert done.present
    assert len(executions(cloud, workflow) - before) == 1
    assert isinstance(ended(cloud, failing, token), Terminal)
    assert isinstance(run(cloud, slow, token), Transient)
    assert isinstance(run(cloud, slow, token, cancel=True), Terminal)
    assert isinstance(run(cloud, slow, token), Terminal)
    nowhere = run(cloud, "never-was", token)
    assert isinstance(nowhere, Observation)
    assert not nowhere.present
    refused = cloud.operate("workflow", [Operation(workflow, "run", {"token": "another", "input": {"no": 1}})])[0]
    assert isinstance(refused, Terminal), refused


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_many_are_one_list(kind: str, cloud: OpenStackCloud, workflow: str) -> None:
    life = life_of(kind, workflow)
    tokens = [f"many-{uuid.uuid4()}" for _ in range(5)]
    made = cloud.create(kind, [Creation(each, life.spec(f"m{each}")) for each in tokens])
    handles = [each.handle for each in made if isinstance(each, Observation)]
    assert [each.handle for each in cloud.find(kind, tokens)] == handles
    assert [each.present for each in cloud.observe(kind, [*handles, life.handle])] == [True] * 5 + [False]
    for handle in handles:
        ready(cloud, kind, handle)
        remove(cloud, kind, handle)


def test_two_triggers_that_are_alike_are_two(cloud: OpenStackCloud, workflow: str) -> None:
    """The service takes no second one with the same times and input; the token makes the difference."""
    properties = life_of("cron_trigger", workflow).properties
    made = [make(cloud, "OS::Mistral::CronTrigger", properties) for _ in range(2)]
    for each in made:
        seen = cloud.observe("cron_trigger", [each])[0].properties
        assert seen["remaining_executions"] == 3
        assert seen["next_execution_time"].endswith("04:00:00")
        remove(cloud, "cron_trigger", each)


@pytest.mark.slow
def test_a_trigger_that_has_run_as_often_as_it_was_to_is_gone(cloud: OpenStackCloud, workflow: str) -> None:
    properties = {"pattern": "* * * * *", "count": 1, "workflow": {"name": workflow, "input": {"word": "timely"}}}
    before = cloud.observe("workflow", [workflow])[0].properties["executions"]
    made = make(cloud, "OS::Mistral::CronTrigger", properties)
    until(lambda: not cloud.observe("cron_trigger", [made])[0].present, "the trigger to go", lives.rest, 180)

    def has_run() -> bool:
        after = cloud.observe("workflow", [workflow])[0].properties["executions"]
        return len(after) == len(before) + 1 and after[0]["state"] == "SUCCESS"

    until(has_run, "the workflow to run", lives.rest)


def test_what_the_service_refuses_does_not_spoil_the_others(cloud: OpenStackCloud, workflow: str) -> None:
    life = life_of("workflow", "")
    good = life.spec(f"good-{uuid.uuid4()}")
    bad = {**good, "name": "bad", "tasks": [{"name": "t", "action": "std.noop", "on_success": ["nowhere"]}]}
    taken = {**good, "name": workflow}
    specs = (bad, taken, good)
    refused, exists, made = cloud.create("workflow", [Creation(f"w-{uuid.uuid4()}", spec) for spec in specs])
    assert isinstance(refused, Terminal)
    assert "nowhere" in str(refused)
    assert isinstance(exists, Terminal)
    assert isinstance(made, Observation)
    remove(cloud, "workflow", made.handle)


def test_a_workflow_that_was_written_by_hand_is_read(cloud: OpenStackCloud, workflow: str) -> None:
    tasks = "  tasks:\n    t:\n      action: std.noop\n      wait-before: 1\n"
    text = f"version: '2.0'\n{workflow}:\n  input: [a, b: 2]\n{tasks}"
    before = cloud.observe("workflow", [workflow])[0].properties
    headers = {"Content-Type": "text/plain"}
    cloud.service("workflow").request("PUT", "/workflows", data=text.encode(), headers=headers)
    seen = cloud.observe("workflow", [workflow])[0].properties
    assert seen["input"] == {"a": None, "b": 2}
    assert seen["tasks"] == [{"name": "t", "action": "std.noop", "wait_before": 1}]
    spec = {name: before[name] for name in fields_of("workflow").mutable if name in before}
    change = Change(workflow, spec, ("tasks",))
    accepted(lambda: cloud.update("workflow", [change]))
    assert cloud.observe("workflow", [workflow])[0].properties == before


def test_the_executions_of_a_workflow_are_shown(cloud: OpenStackCloud, slow: str) -> None:
    def executions() -> dict[str, Any]:
        return {each["id"]: each for each in cloud.observe("workflow", [slow])[0].properties["executions"]}

    before = executions()
    started = cloud.service("workflow").request("POST", "/executions", {"workflow_name": slow})["id"]
    shown = executions()
    assert shown.keys() == {*before, started}
    assert (shown[started]["workflow_name"], shown[started]["state"]) == (slow, "RUNNING")


def _external(cloud: OpenStackCloud, word: str = "a", **actions: str) -> str:
    properties = {"actions": {name: {"workflow": each} for name, each in actions.items()}, "input": {"word": word}}
    return make(cloud, "OS::Mistral::ExternalResource", properties)


def _seen(cloud: OpenStackCloud, handle: str) -> dict[str, Any]:
    return dict(ready(cloud, "external_resource", handle).properties)


def test_each_call_runs_the_workflow_of_its_action(cloud: OpenStackCloud, workflow: str) -> None:
    made = _external(cloud, CREATE=workflow, UPDATE=workflow, SUSPEND=workflow)
    assert _seen(cloud, made)["output"] == {"said": "aa"}
    spec = {"input": {"word": "b"}}
    accepted(lambda: cloud.update("external_resource", [Change(made, spec, ("input",))]))
    assert _seen(cloud, made)["output"] == {"said": "bb"}
    for verb in ("suspend", "resume"):
        accepted(lambda verb=verb: cloud.operate("external_resource", [Operation(made, verb)]))  # type: ignore[misc]
        assert _seen(cloud, made)["action"] == verb.upper()
    started = cloud.observe("workflow", [workflow])[0].properties["executions"]
    again = cloud.operate("external_resource", [Operation(made, "resume")])[0]
    assert isinstance(again, Observation)
    assert cloud.observe("workflow", [workflow])[0].properties["executions"] == started
    remove(cloud, "external_resource", made)


def test_without_workflows_it_only_is_there(cloud: OpenStackCloud) -> None:
    made = _external(cloud)
    assert _seen(cloud, made)["output"] == {}
    remove(cloud, "external_resource", made)


def test_a_request_that_is_sent_again_starts_nothing(cloud: OpenStackCloud, project: Project, workflow: str) -> None:
    made = _external(cloud, UPDATE=workflow)
    before = cloud.observe("workflow", [workflow])[0].properties["executions"]
    change = Change(made, {"input": {"word": "z"}}, ("input",))
    fault = project.cloud.fault(
        "http", service="mistral-api", method="POST", path="/v2/executions$", status=502, after=True, times=1
    )
    with fault:
        assert isinstance(cloud.update("external_resource", [change])[0], Uncertain)
    assert _seen(cloud, made)["input"] == {"word": "a"}
    accepted(lambda: cloud.update("external_resource", [change]))
    assert _seen(cloud, made)["input"] == {"word": "z"}
    after = cloud.observe("workflow", [workflow])[0].properties["executions"]
    assert len(after) == len(before) + 1
    remove(cloud, "external_resource", made)


def test_what_cannot_be_started_leaves_nothing(cloud: OpenStackCloud) -> None:
    life = Life("OS::Mistral::ExternalResource", {"actions": {"CREATE": {"workflow": "no-such-workflow"}}})
    token = f"x-{uuid.uuid4()}"
    answer = cloud.create("external_resource", [Creation(token, life.spec("x"))])[0]
    assert isinstance(answer, Terminal)
    assert "no-such-workflow" in str(answer)
    assert not cloud.find("external_resource", [token])[0].present


def test_what_was_never_started_is_broken(cloud: OpenStackCloud, project: Project, workflow: str) -> None:
    """As after a worker that died between the two requests."""
    life = life_of("external_resource", workflow)
    token = f"x-{uuid.uuid4()}"
    fault = project.cloud.fault(
        "http", service="mistral-api", method="POST", path="/v2/environments$", status=502, after=True, times=1
    )
    with fault:
        assert isinstance(cloud.create("external_resource", [Creation(token, life.spec("x"))])[0], Uncertain)
    seen = cloud.find("external_resource", [token])[0]
    assert seen.properties["status"] == "error"
    remove(cloud, "external_resource", seen.handle)


def test_a_workflow_that_fails_says_so(cloud: OpenStackCloud, failing: str, workflow: str) -> None:
    life = Life("OS::Mistral::ExternalResource", {"actions": {"CREATE": {"workflow": failing}}})
    made = accepted(lambda: cloud.create("external_resource", [Creation(f"x-{uuid.uuid4()}", life.spec("x"))]))

    def broken() -> bool:
        seen = cloud.observe("external_resource", [made.handle])[0].properties
        return seen["status"] == "error" and "no" in seen["fault"]

    until(broken, "the workflow to fail", rest=lives.rest)
    remove(cloud, "external_resource", made.handle)


def test_a_deletion_waits_for_its_workflow(cloud: OpenStackCloud, slow: str) -> None:
    made = _external(cloud, DELETE=slow)
    answer = cloud.delete("external_resource", [made])[0]
    assert isinstance(answer, Transient)
    assert cloud.observe("external_resource", [made])[0].properties["status"] == "deleting"
    remove(cloud, "external_resource", made)
    assert len(cloud.observe("workflow", [slow])[0].properties["executions"]) > 0


def test_a_deletion_whose_workflow_fails_fails_and_runs_once_more_when_asked(
    cloud: OpenStackCloud, failing: str
) -> None:
    made = _external(cloud, DELETE=failing)

    def failed() -> bool:
        answer = cloud.delete("external_resource", [made])[0]
        return isinstance(answer, Terminal) and "error" in str(answer)

    before = len(cloud.observe("workflow", [failing])[0].properties["executions"])
    until(failed, "the deletion to fail", rest=lives.rest)
    until(failed, "the deletion to fail once more", rest=lives.rest)
    after = len(cloud.observe("workflow", [failing])[0].properties["executions"])
    assert after == before + 2
    cloud.service("workflow").request("DELETE", f"/environments/{made}")


def test_an_execution_that_the_service_has_removed_is_no_harm(cloud: OpenStackCloud, workflow: str) -> None:
    made = _external(cloud, CREATE=workflow)
    assert _seen(cloud, made)["output"] == {"said": "aa"}
    api = cloud.service("workflow")
    known = cloud.collections["external_resource"].get(made)["variables"]
    api.request("DELETE", f"/executions/{known['execution']}", params={"force": "true"})
    assert _seen(cloud, made)["output"] == {}
    remove(cloud, "external_resource", made)
