"""python-heatclient, as scripts use it."""

import socket
import time
from typing import Any

import httpx
import pytest
from heatclient import exc
from heatclient.v1.client import Client

from homeostat.store.operation import workers
from tests.waiting import until
from tests.wire import templates
from tests.wire.running import Running, settled

HEAD = "heat_template_version: 2018-08-31\n"


@pytest.fixture
def hello(heat: Client, http: httpx.Client) -> str:
    """Id of a complete stack called `hello`."""
    stack_id = heat.stacks.create(stack_name="hello", template=templates.HELLO)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return str(stack_id)


def test_a_stack_lives_and_dies(heat: Client, http: httpx.Client, hello: str) -> None:
    stack = heat.stacks.get("hello")
    assert (stack.id, stack.action, stack.status) == (hello, "CREATE", "COMPLETE")
    assert stack.stack_status_reason == "Stack CREATE completed successfully"
    assert stack.description == stack.template_description == "One thing, and what it says"
    assert stack.parameters == {
        "OS::project_id": stack.stack_user_project_id,
        "OS::stack_id": hello,
        "OS::stack_name": "hello",
        "password": "******",
        "word": "hello",
    }
    assert [each.stack_name for each in heat.stacks.list()] == ["hello"]
    heat.stacks.delete("hello")
    settled(http, hello, status="DELETE_COMPLETE")
    assert list(heat.stacks.list()) == []
    assert [each.id for each in heat.stacks.list(show_deleted=True)] == [hello]
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.get("hello")
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.delete(f"hello/{hello}")


def test_updates(heat: Client, http: httpx.Client, hello: str) -> None:
    """PUT forgets what it does not say, PATCH keeps it."""

    def output() -> str:
        return str(heat.stacks.output_show("hello", "said")["output"]["output_value"])

    heat.stacks.update("hello", template=templates.HELLO, parameters={"word": "one"}, tags="red,blue")
    assert settled(http, hello, status="UPDATE_COMPLETE")["tags"] == ["red", "blue"]
    assert output() == "one"
    heat.stacks.update("hello", existing=True)
    assert settled(http, hello, status="UPDATE_COMPLETE")["tags"] == ["red", "blue"]
    assert output() == "one"
    heat.stacks.update("hello", existing=True, parameters={"word": "two"})
    settled(http, hello, status="UPDATE_COMPLETE")
    assert output() == "two"
    heat.stacks.update("hello", existing=True, clear_parameters=["word"])
    settled(http, hello, status="UPDATE_COMPLETE")
    assert output() == "hello"
    heat.stacks.update("hello", template=templates.HELLO)
    assert settled(http, hello, status="UPDATE_COMPLETE")["tags"] == []


def test_the_newest_value_wins(heat: Client, http: httpx.Client) -> None:
    """Wherever it was given: apart, or in an environment."""
    created = heat.stacks.create(stack_name="hello", template=templates.HELLO, parameters={"word": "apart"})
    stack_id = created["stack"]["id"]
    for given, expected in (
        ({"environment": {"parameters": {"word": "in the environment"}}}, "in the environment"),
        ({"environment": {"parameter_defaults": {"word": "by default"}}}, "in the environment"),
        ({"clear_parameters": ["word"]}, "by default"),
        ({"parameters": {"word": "apart"}, "environment": {"parameters": {"word": "lost"}}}, "apart"),
    ):
        heat.stacks.update("hello", existing=True, **given)
        assert heat.stacks.get(stack_id).parameters["word"] == expected, given
    settled(http, stack_id, status="UPDATE_COMPLETE")


def test_what_was_given_is_given_back(heat: Client, http: httpx.Client) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"key": {"type": "string", "hidden": True}, "size": {"type": "number", "default": 1}},
        "resources": {"it": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_file": "note.txt"}}}},
    }
    environment = {
        "parameters": {"key": "secret"},
        "parameter_defaults": {"size": 2},
        "encrypted_param_names": ["key"],
    }
    heat.stacks.create(
        stack_name="given", template=template, environment=environment, files={"note.txt": "a note"}, timeout_mins=5
    )
    assert heat.stacks.template("given") == template
    assert heat.stacks.files("given") == {"note.txt": "a note"}
    shown = heat.stacks.environment("given")
    assert shown["parameters"] == {"key": "******"}
    assert shown["parameter_defaults"] == {"size": 2}
    assert set(shown) == {
        "parameters",
        "parameter_defaults",
        "resource_registry",
        "event_sinks",
        "encrypted_param_names",
    }
    heat.stacks.update("given", existing=True, environment={"parameter_defaults": {"other": 1}})
    kept = heat.stacks.environment("given")
    assert kept["encrypted_param_names"] == ["key"]
    assert kept["parameter_defaults"] == {"size": 2, "other": 1}
    stack = heat.stacks.get("given")
    assert (stack.parameters["size"], stack.timeout_mins, stack.disable_rollback) == ("2", 5, True)


def test_outputs(heat: Client, hello: str) -> None:
    assert heat.stacks.output_list("hello") == {
        "outputs": [
            {"output_key": "said", "description": "What it says"},
            {"output_key": "name", "description": "No description given"},
        ]
    }
    output = heat.stacks.output_show("hello", "said")["output"]
    assert output == {"output_key": "said", "description": "What it says", "output_value": "hello"}
    assert len(heat.stacks.output_show("hello", "name")["output"]["output_value"]) == 8
    with pytest.raises(exc.HTTPNotFound, match="nothing"):
        heat.stacks.output_show("hello", "nothing")
    assert not hasattr(heat.stacks.get("hello", resolve_outputs=False), "outputs")


def test_a_wrong_value_in_an_output_is_reported_by_that_output(heat: Client, http: httpx.Client) -> None:
    """A wrong form of a call is refused at the door."""
    outputs = "outputs: {wrong: {value: {list_join: [x, 5]}}, right: {value: {list_join: [x, [a, b]]}}}\n"
    stack_id = heat.stacks.create(stack_name="s", template=HEAD + outputs)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    wrong, right = heat.stacks.get("s").outputs
    assert wrong["output_error"] == 'outputs.wrong.value.list_join: "list_join" joins lists, not 5'
    assert (wrong["output_value"], right["output_value"]) == (None, "axb")
    assert heat.stacks.output_show("s", "wrong")["output"] == wrong
    assert heat.stacks.validate(template=HEAD + outputs)
    form = HEAD + "outputs: {wrong: {value: {list_join: [x]}}}\n"
    with pytest.raises(exc.HTTPBadRequest, match=r"outputs\.wrong\.value\.list_join: "):
        heat.stacks.create(stack_name="t", template=form)


def test_resources(heat: Client, hello: str) -> None:
    listed = {each.resource_name: each for each in heat.resources.list("hello")}
    assert list(listed) == ["speaker", "name"]
    assert listed["speaker"].resource_type == "OS::Heat::TestResource"
    assert listed["speaker"].resource_status == "CREATE_COMPLETE"
    assert listed["speaker"].required_by == ["name"]
    shown = heat.resources.get("hello", "speaker", with_attr=["output"])
    assert shown.attributes["output"] == "hello"
    assert shown.observed["presence"] == "present"
    assert heat.resources.metadata("hello", "name") == {"colour": "blue"}
    assert heat.resources.metadata("hello", "speaker") == {}
    with pytest.raises(exc.HTTPNotFound, match=r"The Resource \(nobody\) could not be found in Stack hello\."):
        heat.resources.get("hello", "nobody")


def test_filters_of_the_resource_list(heat: Client, hello: str) -> None:
    cases: tuple[tuple[dict[str, Any], list[str], str], ...] = (
        ({"type": "RandomString"}, ["name"], "part of a type"),
        ({"name": "speaker"}, ["speaker"], "a name"),
        ({"status": "COMPLETE"}, ["speaker", "name"], "a bare status"),
        ({"status": "CREATE_COMPLETE"}, ["speaker", "name"], "action and status"),
        ({"status": "UPDATE_COMPLETE"}, [], "another action"),
        ({"action": "DELETE"}, [], "an action alone"),
    )
    for filters, expected, reason in cases:
        found = [each.resource_name for each in heat.resources.list("hello", filters=filters)]
        assert found == expected, reason
    with pytest.raises(exc.HTTPBadRequest, match="Invalid filter parameters"):
        heat.resources.list("hello", filters={"colour": "blue"})


def test_nested_stacks(heat: Client, http: httpx.Client) -> None:
    stack_id = heat.stacks.create(stack_name="group", template=templates.GROUP)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    listed = list(heat.resources.list("group", nested_depth=2, with_detail=True))
    assert [each.resource_name for each in listed] == ["crowd", "0", "1"]
    assert [each.attributes.get("output") for each in listed[1:]] == ["member 0", "member 1"]
    assert {each.parent_resource for each in listed[1:]} == {"crowd"}
    nested = next(each["href"] for each in listed[0].links if each["rel"] == "nested")
    child_id = nested.rpartition("/")[2]
    assert listed[0].physical_resource_id == child_id
    child = heat.stacks.get(child_id)
    assert child.parent == stack_id
    assert set(heat.stacks.template(child_id)["resources"]) == {"0", "1"}
    assert heat.stacks.output_show("group", "said")["output"]["output_value"] == ["member 0", "member 1"]
    with pytest.raises(exc.HTTPBadRequest, match="A group keeps the values that its members have"):
        heat.stacks.update(child_id, template=templates.HELLO)
    assert [each.stack_name for each in heat.stacks.list()] == ["group"]
    assert len(list(heat.stacks.list(show_nested=True))) == 2
    heat.stacks.delete("group")
    settled(http, stack_id, status="DELETE_COMPLETE")
    assert heat.stacks.get(child_id).stack_status == "DELETE_COMPLETE"


def test_events(heat: Client, hello: str) -> None:
    everything = heat.events.list("hello", sort_dir="asc")
    assert (everything[0].resource_name, everything[0].resource_status_reason) == ("hello", "Stack CREATE started")
    assert (everything[-1].physical_resource_id, everything[-1].resource_status) == (hello, "CREATE_COMPLETE")
    states = [each.resource_status for each in everything if each.resource_name == "speaker"]
    assert states == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    newest_first = heat.events.list("hello")
    assert [each.id for each in newest_first] == [each.id for each in reversed(everything)]
    page = heat.events.list("hello", sort_dir="asc", marker=everything[1].id, limit=2)
    assert [each.id for each in page] == [each.id for each in everything[2:4]]
    by_type = {"sort_keys": ["resource_type"], "sort_dir": "asc"}
    types = [each.resource_name for each in heat.events.list("hello", **by_type)]
    assert types == ["name", "name", "hello", "hello", "speaker", "speaker"]
    third = heat.events.list("hello", **by_type)[2]
    assert [each.resource_name for each in heat.events.list("hello", **by_type, marker=third.id)] == types[3:]
    of_one = heat.events.list("hello", resource_name="speaker")
    one = heat.events.get("hello", "speaker", of_one[0].id)
    assert (one.resource_type, one.resource_properties) == ("OS::Heat::TestResource", {"value": "hello"})
    with pytest.raises(exc.HTTPNotFound):
        heat.events.get("hello", "speaker", everything[0].id)
    with pytest.raises(exc.HTTPNotFound):
        heat.events.list("hello", resource_name="nobody")


def test_events_of_nested_stacks(heat: Client, http: httpx.Client) -> None:
    stack_id = heat.stacks.create(stack_name="group", template=templates.GROUP)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    found = heat.events.list("group", nested_depth=1, sort_dir="asc")
    assert {"group", "crowd", "0", "1"} <= {each.resource_name for each in found}
    roots = {link["href"].rpartition("/")[2] for each in found for link in each.links if link["rel"] == "root_stack"}
    assert roots == {stack_id}


def test_a_failure_is_reported(heat: Client, http: httpx.Client) -> None:
    stack_id = heat.stacks.create(stack_name="failing", template=templates.FAILING)["stack"]["id"]
    stack = settled(http, stack_id, status="CREATE_FAILED")
    assert "resources.bad" in stack["stack_status_reason"]
    states = {each.resource_name: each.resource_status for each in heat.resources.list("failing")}
    assert states == {"good": "CREATE_COMPLETE", "bad": "CREATE_FAILED", "never": "INIT_COMPLETE"}
    assert heat.stacks.get("failing").stack_status == "CREATE_FAILED"


def test_a_failed_creation_is_rolled_back(heat: Client, http: httpx.Client) -> None:
    created = heat.stacks.create(stack_name="failing", template=templates.FAILING, disable_rollback=False)
    stack_id = created["stack"]["id"]
    until(lambda: heat.stacks.get(stack_id).stack_status == "ROLLBACK_COMPLETE", "the rollback")
    assert list(heat.resources.list(stack_id)) == []
    heat.stacks.update(stack_id, template=templates.HELLO)
    settled(http, stack_id, status="UPDATE_COMPLETE")


def test_what_was_rolled_back_can_be_mended(heat: Client, http: httpx.Client) -> None:
    """There is nothing to go back to, and yet a way on: the template that failed, with other values."""
    template = """
heat_template_version: 2018-08-31
parameters: {fail: {type: boolean, default: true, immutable: true}}
resources: {it: {type: OS::Heat::TestResource, properties: {fail: {get_param: fail}}}}
"""
    created = heat.stacks.create(stack_name="mended", template=template, disable_rollback=False)
    stack_id = created["stack"]["id"]
    until(lambda: heat.stacks.get(stack_id).stack_status == "ROLLBACK_COMPLETE", "the rollback")
    heat.stacks.update(stack_id, existing=True, parameters={"fail": False})
    settled(http, stack_id, status="UPDATE_COMPLETE")
    with pytest.raises(exc.HTTPBadRequest, match="immutable"):
        heat.stacks.update(stack_id, existing=True, parameters={"fail": True})


def test_what_waits_says_why(heat: Client) -> None:
    heat.stacks.create(stack_name="endless", template=templates.ENDLESS)

    def begun() -> bool:
        return bool(heat.resources.get("endless", "slow").resource_status == "CREATE_IN_PROGRESS")

    until(begun, "the slow resource to begin")
    until(lambda: "for ever" in heat.resources.get("endless", "slow").waiting, "a reason")
    later = heat.resources.get("endless", "later")
    assert (later.resource_status, later.physical_resource_id) == ("INIT_COMPLETE", "")
    assert later.waiting == "the resources it requires: slow"


def test_what_was_seen_stands_next_to_what_is_wanted(heat: Client, http: httpx.Client, service: Running) -> None:
    stack_id = heat.stacks.create(stack_name="server", template=templates.SERVER)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    server = heat.resources.get("server", "server")
    assert server.attributes["status"] == "active"
    assert server.observed["presence"] == "present"
    assert server.observed["properties"]["flavor"] == "m1.small"
    service.cloud.vanish(server.physical_resource_id)

    def healed() -> bool:
        now = heat.resources.get("server", "server")
        return now.physical_resource_id not in ("", server.physical_resource_id) and now.resource_status.endswith(
            "COMPLETE"
        )

    until(healed, "a new server in the place of the one that is gone")
    reasons = [each.resource_status for each in heat.events.list("server", resource_name="server", sort_dir="asc")]
    assert "CHECK_FAILED" in reasons


def test_what_is_on_its_way_out_is_shown(heat: Client) -> None:
    """A replaced resource whose old one takes its time, and one that is no longer wanted at all."""
    template = """
heat_template_version: 2018-08-31
parameters: {mark: {type: string}}
resources:
  replaced:
    type: OS::Heat::TestResource
    properties: {update_replace_value: {get_param: mark}, action_wait_secs: {delete: 3600}}
"""
    removed = "  removed: {type: OS::Heat::TestResource, properties: {action_wait_secs: {delete: 3600}}}"
    heat.stacks.create(stack_name="leaving", template=template + removed, parameters={"mark": "a"})
    until(lambda: heat.stacks.get("leaving").stack_status == "CREATE_COMPLETE", "the stack")
    before = {each.resource_name: each.physical_resource_id for each in heat.resources.list("leaving")}
    heat.stacks.update("leaving", template=template, parameters={"mark": "b"})

    def leaving() -> dict[str, Any] | None:
        found = {each.resource_name: each for each in heat.resources.list("leaving")}
        gone = found["removed"].resource_status == "DELETE_IN_PROGRESS"
        return found if gone and hasattr(found["replaced"], "leftovers") else None

    found = until(leaving, "both to be on their way out")
    assert found["replaced"].resource_status == "CREATE_COMPLETE"
    (leftover,) = found["replaced"].leftovers
    assert leftover["physical_resource_id"] == before["replaced"] != found["replaced"].physical_resource_id
    assert leftover["resource_status"] == "DELETE_IN_PROGRESS"
    assert found["removed"].waiting
    assert heat.stacks.get("leaving").stack_status == "UPDATE_IN_PROGRESS"


def test_an_update_is_cancelled(heat: Client, http: httpx.Client, hello: str) -> None:
    slow = templates.HELLO.replace("{value: {get_param: word}}", "{value: changed, wait_secs: 3600}")
    with pytest.raises(exc.HTTPBadRequest, match="Cancelling update when stack is CREATE_COMPLETE is not supported"):
        heat.actions.cancel_update("hello")
    heat.stacks.update("hello", template=slow)
    heat.actions.cancel_without_rollback("hello")
    stack = settled(http, hello, status="UPDATE_FAILED")
    assert stack["stack_status_reason"] == "Stack UPDATE cancelled"
    heat.stacks.update("hello", template=slow)
    heat.actions.cancel_update("hello")
    settled(http, hello, status="ROLLBACK_COMPLETE")
    assert heat.stacks.output_show("hello", "said")["output"]["output_value"] == "hello"


def test_a_stack_is_checked(heat: Client, http: httpx.Client, hello: str) -> None:
    heat.actions.check("hello")
    settled(http, hello, status="CHECK_COMPLETE")
    assert {each.resource_status for each in heat.resources.list("hello")} == {"CHECK_COMPLETE"}


def test_a_stack_is_suspended_and_resumed(heat: Client, http: httpx.Client, hello: str) -> None:
    heat.actions.suspend("hello")
    settled(http, hello, status="SUSPEND_COMPLETE")
    assert {each.resource_status for each in heat.resources.list("hello")} == {"SUSPEND_COMPLETE"}
    heat.actions.suspend("hello")
    with pytest.raises(exc.HTTPBadRequest, match="Updating a stack when it is suspended is not supported"):
        heat.stacks.update("hello", template={"heat_template_version": "2018-08-31"})
    heat.actions.resume("hello")
    settled(http, hello, status="RESUME_COMPLETE")
    assert {each.resource_status for each in heat.resources.list("hello")} == {"RESUME_COMPLETE"}


def test_types_and_templates(heat: Client) -> None:
    names = [each.resource_type for each in heat.resource_types.list()]
    assert "OS::Heat::TestResource" in names
    assert names == sorted(names)
    described = heat.resource_types.list(filters={"name": "OS::Nova::Server$"}, with_description=True)
    assert [each.resource_type for each in described] == ["OS::Nova::Server"]
    shown = heat.resource_types.get("OS::Heat::RandomString")
    assert shown["properties"]["length"]["constraints"] == [{"range": {"min": 1, "max": 512}}]
    assert shown["attributes"]["value"]["type"] == "string"
    with pytest.raises(exc.HTTPNotFound, match=r"The Resource Type \(OS::No::Thing\) could not be found"):
        heat.resource_types.get("OS::No::Thing")
    versions = {each.version: each for each in heat.template_versions.list()}
    assert versions["heat_template_version.2021-04-16"].aliases == ["heat_template_version.wallaby"]
    functions = [each.functions for each in heat.template_versions.get("heat_template_version.2018-08-31")]
    assert "get_attr" in functions
    assert "equals" not in functions
    more = heat.template_versions.get("heat_template_version.2018-08-31", with_condition_func=True)
    assert "equals" in [each.functions for each in more]
    with pytest.raises(exc.HTTPNotFound):
        heat.template_versions.get("heat_template_version.1999-01-01")


@pytest.mark.parametrize(("template_type", "resources"), [("hot", "resources"), ("cfn", "Resources")])
def test_a_template_of_a_type(heat: Client, template_type: str, resources: str) -> None:
    made = heat.resource_types.generate_template("OS::Heat::RandomString", template_type)
    assert list(made[resources]) == ["RandomString"]
    if template_type == "hot":
        assert heat.stacks.validate(template=made)["Parameters"]["length"]["Default"] == 32


def test_validation(heat: Client) -> None:
    answer = heat.stacks.validate(template=templates.HELLO, environment={"parameters": {"password": "x"}})
    assert answer["Description"] == "One thing, and what it says"
    assert answer["Parameters"]["password"]["NoEcho"] == "true"
    assert answer["Environment"]["parameters"] == {"password": "******"}
    missing = "heat_template_version: 2018-08-31\nparameters: {p: {type: string}}"
    assert heat.stacks.validate(template=missing, show_nested=True)["NestedParameters"] == {}


def test_about_the_service(heat: Client) -> None:
    info = heat.build_info.build_info()
    assert info["engine"]["revision"] == info["api"]["revision"] != ""


def test_workers_are_listed_idle_and_dead(heat: Client, service: Running) -> None:
    long_ago = time.time() - 60
    with service.db.write() as tx:
        workers.report(tx, workers.Worker("gone:1:a", "gone", 1, "0", "sql", long_ago - 86_400, long_ago))

    def as_they_are() -> list[Any] | None:
        found = heat.services.list()
        wanted = [("gone", "down"), (socket.gethostname(), "up")]
        return found if [(each.host, each.status) for each in found] == wanted else None

    listed = until(as_they_are, "the worker that runs is up, the other one is down")
    assert listed[0].updated_at < listed[1].updated_at
    with service.db.write() as tx:
        workers.leave(tx, "gone:1:a")


def test_what_has_policy_snapshot_leaves_one_that_its_events_name(
    heat: Client, http: httpx.Client, service: Running
) -> None:
    stack_id = heat.stacks.create(stack_name="hello", template=templates.DISK)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    volume = heat.resources.get("hello", "disk").physical_resource_id
    heat.stacks.delete("hello")
    settled(http, stack_id, status="DELETE_COMPLETE")
    assert volume not in service.cloud.things("volume")
    (snapshot,) = service.cloud.snapshots(volume)
    last = heat.events.list(stack_id, resource_name="disk", sort_dir="desc")[0]
    assert last.resource_status == "DELETE_COMPLETE"
    assert last.resource_status_reason.endswith(f"its snapshot is {snapshot['id']}")


def test_a_snapshot_that_hangs_is_seen_and_freed_by_another_policy(
    heat: Client, http: httpx.Client, service: Running
) -> None:
    stack_id = heat.stacks.create(stack_name="hello", template=templates.DISK)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    volume = heat.resources.get("hello", "disk").physical_resource_id
    service.cloud.behaviour.snapshot_s = 1e9
    try:
        heat.stacks.update("hello", template=templates.HELLO)
        until(lambda: service.cloud.snapshots(volume), "the snapshot to be asked for")
    finally:
        service.cloud.behaviour.snapshot_s = 0.0
    (leaving,) = (each for each in heat.resources.list("hello") if each.physical_resource_id == volume)
    assert leaving.resource_status == "DELETE_IN_PROGRESS"
    assert "snapshot" in leaving.resource_status_reason
    heat.stacks.update("hello", template=templates.DISK.replace("Snapshot", "Retain"))
    settled(http, stack_id, status="UPDATE_COMPLETE")
    assert volume in service.cloud.things("volume")


@pytest.mark.parametrize("existing", [False, True], ids=["PUT", "PATCH"])
def test_a_deletion_that_hangs_ends_with_another_policy(heat: Client, http: httpx.Client, existing: bool) -> None:
    """CV14: what hangs is kept, and the stack is gone."""
    template = templates.HELLO.replace("properties: {value", "properties: {action_wait_secs: {delete: 3600}, value")
    stack_id = heat.stacks.create(stack_name="hanging", template=template)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    heat.stacks.delete("hanging")
    until(lambda: heat.stacks.get(stack_id).stack_status == "DELETE_IN_PROGRESS", "the deletion to begin")
    retained = template.replace("    type: OS::Heat::Test", "    deletion_policy: Retain\n    type: OS::Heat::Test")
    heat.stacks.update("hanging", template=retained, existing=existing)
    settled(http, stack_id, status="DELETE_COMPLETE")


@pytest.mark.parametrize("existing", [False, True], ids=["PUT", "PATCH"])
def test_a_deletion_that_hangs_inside_ends_with_another_policy(
    heat: Client, http: httpx.Client, existing: bool
) -> None:
    """CV14: the policy is in the file of a nested template, of a member of a group."""
    slow = templates.HELLO.replace("properties: {value", "properties: {action_wait_secs: {delete: 3600}, value")
    member = "{type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: one.yaml}}}"
    root = f"heat_template_version: 2018-08-31\nresources: {{g: {member}}}"
    stack_id = heat.stacks.create(stack_name="inside", template=root, files={"one.yaml": slow})["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    heat.stacks.delete("inside")
    until(lambda: heat.resources.get(stack_id, "g").resource_status == "DELETE_IN_PROGRESS", "the deletion to begin")
    retained = slow.replace("    type: OS::Heat::Test", "    deletion_policy: Retain\n    type: OS::Heat::Test")
    heat.stacks.update("inside", template=root, files={"one.yaml": retained}, existing=existing)
    settled(http, stack_id, status="DELETE_COMPLETE")


def test_a_type_that_cannot_be_snapshotted_is_refused(heat: Client) -> None:
    template = templates.DISK.replace("OS::Cinder::Volume", "OS::Neutron::Net").replace("size: 1", "name: n")
    with pytest.raises(exc.HTTPBadRequest, match='"Snapshot" deletion policy not supported'):
        heat.stacks.create(stack_name="hello", template=template)
