"""Software configs and deployments from end to end: derived, told, told twice, changed, failed, deleted."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from homeostat.builtin.kinds.deployments import deployed
from homeostat.clouds.port import Creation
from homeostat.convergence.nested_stacks.attributes import WeightBudget, members_and_outputs
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.resources import mime
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan
from tests.component.running import PROJECT, Service

SERVER = "99999999-9999-4999-8999-999999999999"


def config(kind: str = "SoftwareConfig", **properties: Any) -> dict[str, Any]:
    return {"type": f"OS::Heat::{kind}", "properties": properties}


def deployment(kind: str = "SoftwareDeployment", **properties: Any) -> dict[str, Any]:
    deployed_configs = {"config": {"get_resource": "config"}, "server": SERVER, **properties}
    return {"type": f"OS::Heat::{kind}", "properties": deployed_configs}


def greeting(**properties: Any) -> dict[str, Any]:
    """A config with inputs and outputs, and its deployment."""
    inputs = [{"name": "word", "default": "hi"}, {"name": "size", "type": "Number", "replace_on_change": True}]
    outputs = [{"name": "said"}, {"name": "problem", "error_output": True}]
    return {
        "config": config(group="script", config="echo $word", inputs=inputs, outputs=outputs, options={"o": 1}),
        "deploy": deployment(**properties),
    }


def deployed_configs(service: Service) -> list[Any]:
    """Configs that the server reads."""
    with service.db.read() as tx:
        return [each.object for each in deployed(tx, PROJECT, SERVER)]


def inputs(service: Service) -> dict[str, Any]:
    (only,) = deployed_configs(service)
    return {each["name"]: each["value"] for each in only["inputs"]}


def answer(service: Service, body: dict[str, Any] | None = None, url: str = "") -> Any:
    """What a server does that has applied its config."""
    reported = inputs(service)
    return service.put(url or reported["deploy_signal_id"], body, reported["deploy_signal_verb"])


def test_a_deployment_derives_a_config_and_waits_for_its_outputs() -> None:
    service = Service()
    stack_id = service.create(greeting(input_values={"word": "ho", "more": [1]}, name="mine"))
    assert service.states(stack_id) == {"config": "CREATE_COMPLETE", "deploy": "CREATE_IN_PROGRESS"}
    (derived,) = deployed_configs(service)
    assert {name: derived[name] for name in ("name", "group", "config", "options")} == {
        "name": "mine",
        "group": "script",
        "config": "echo $word",
        "options": {"o": 1},
    }
    reported = inputs(service)
    assert (reported["word"], reported["size"], reported["more"]) == ("ho", None, [1])
    assert reported["deploy_action"] == "CREATE"
    assert reported["deploy_server_id"] == SERVER
    assert reported["deploy_stack_id"] == f"web/{stack_id}"
    assert reported["deploy_resource_name"] == "deploy"
    assert reported["deploy_signal_transport"] == "CFN_SIGNAL"
    service.live(30)
    answer(service, {"said": "ho!", "unknown": 1, "deploy_stdout": "out", "deploy_status_code": 0})
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.attribute(stack_id, "deploy", "said") == "ho!"
    assert service.attribute(stack_id, "deploy", "deploy_stdout") == "out"
    assert service.attribute(stack_id, "deploy", "deploy_status_code") == 0
    with pytest.raises(Rejected, match="The Referenced Attribute \\(deploy unknown\\) is incorrect"):
        service.attribute(stack_id, "deploy", "unknown")
    assert service.attribute(stack_id, "config", "config") == "echo $word"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"deploy_status_code": 3}, "deploy_status_code : Deployment exited with non-zero status code: 3"),
        ({"deploy_status_code": "1"}, "deploy_status_code : Deployment exited with non-zero status code: 1"),
        ({"problem": "no disk"}, "problem : no disk"),
    ],
)
def test_a_deployment_fails_as_the_server_says(body: dict[str, Any], reason: str) -> None:
    service = Service()
    stack_id = service.create(greeting())
    service.live(1)
    answer(service, body)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.row(stack_id, "deploy").reason.endswith(f"Deployment to server failed: {reason}")


def test_a_signal_sent_twice_or_for_an_earlier_action_changes_nothing() -> None:
    service = Service()
    stack_id = service.create(greeting(input_values={"word": "a"}))
    service.live(1)
    early = inputs(service)["deploy_signal_id"]
    answer(service)
    answer(service, {"deploy_status_code": 9})
    assert service.state(stack_id) == "CREATE_COMPLETE"
    service.update(stack_id, greeting(input_values={"word": "b"}))
    service.live(1)
    assert service.states(stack_id)["deploy"] == "UPDATE_IN_PROGRESS"
    assert (inputs(service)["deploy_action"], inputs(service)["word"]) == ("UPDATE", "b")
    answer(service, {"deploy_status_code": 9}, early)
    service.live(5)
    assert service.states(stack_id)["deploy"] == "UPDATE_IN_PROGRESS"
    answer(service)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_an_address_of_one_part_cannot_be_made_into_another() -> None:
    service = Service()
    service.create(greeting())
    url = inputs(service)["deploy_signal_id"]
    part = dict(parse_qsl(urlsplit(url).query))["Part"]
    with pytest.raises(Rejected, match="signature does not fit"):
        answer(service, None, url.replace(part, "0" * 32))


def test_no_signal_completes_at_once_and_the_server_has_the_config() -> None:
    service = Service()
    stack_id = service.create(greeting(signal_transport="NO_SIGNAL"))
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert inputs(service)["deploy_signal_transport"] == "NO_SIGNAL"
    assert "deploy_signal_id" not in inputs(service)


def test_an_action_that_it_is_not_for_has_nothing_to_do() -> None:
    service = Service()
    stack_id = service.create(greeting(actions=["UPDATE"]))
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert deployed_configs(service) == []
    service.update(stack_id, greeting(actions=["UPDATE"], input_values={"word": "b"}))
    service.live(1)
    assert inputs(service)["deploy_action"] == "UPDATE"
    answer(service)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_deleting_waits_for_the_server_where_there_is_something_to_do() -> None:
    service = Service()
    stack_id = service.create(greeting(actions=["CREATE", "DELETE"]))
    service.live(1)
    answer(service)
    service.delete(stack_id)
    service.live(5)
    assert service.states(stack_id)["deploy"] == "DELETE_IN_PROGRESS"
    assert inputs(service)["deploy_action"] == "DELETE"
    answer(service, {"deploy_status_code": 1})
    assert service.state(stack_id) == "DELETE_FAILED"
    service.delete(stack_id)
    service.live(5)
    answer(service)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.records_of("software_config") == service.records_of("software_deployment") == []


def test_what_was_deployed_by_a_creation_given_up_is_swept_without_a_server_that_answers() -> None:
    service = Service()
    stack_id = service.create(greeting(actions=["CREATE", "DELETE"], signal_transport="CFN_SIGNAL"))
    service.live(1)
    answer(service)
    (mine,), row = service.records_of(DEPLOYMENT), service.row(stack_id, "deploy")
    token = f"{row.key}-999"
    service.clouds(PROJECT).create(DEPLOYMENT, [Creation(token, mine.object["spec"])])
    with service.db.write() as tx:
        orphans.add(tx, [Orphan(token, DEPLOYMENT, PROJECT)], service.clock.now())
    assert len(service.records_of(DEPLOYMENT)) == 2
    service.clock.time += orphans.LOOK_S
    assert service.observer.sweep() == 1
    assert [each.id for each in service.records_of(DEPLOYMENT)] == [row.handle], (
        "the one that the resource stands for stays"
    )


def test_deleting_without_an_action_leaves_nothing() -> None:
    service = Service()
    stack_id = service.create(greeting())
    service.live(1)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.records_of("software_config") == service.records_of("software_deployment") == []


def test_an_input_that_is_replaced_on_change_makes_another_deployment() -> None:
    service = Service()
    stack_id = service.create(greeting(input_values={"size": 1}))
    service.live(1)
    answer(service)
    before = service.row(stack_id, "deploy").handle
    service.update(stack_id, greeting(input_values={"size": 1, "word": "x"}))
    service.live(1)
    answer(service)
    service.rest()
    assert service.row(stack_id, "deploy").handle == before
    service.update(stack_id, greeting(input_values={"size": 2, "word": "x"}))
    service.live(1)
    (new,) = [each for each in service.rows(stack_id) if each.name == "deploy" and each.handle != before]
    assert (new.action, new.status) == ("CREATE", "IN_PROGRESS")


def test_a_change_of_the_config_is_deployed() -> None:
    service = Service()
    resources = greeting()
    stack_id = service.create(resources)
    service.live(1)
    answer(service)
    resources["config"] = config(config="echo other")
    service.update(stack_id, resources)
    service.live(1)
    assert deployed_configs(service)[0]["config"] == "echo other"
    answer(service)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


# -- kinds of configs --------------------------------------------------------------------------------------------------


def test_a_structured_deployment_puts_its_inputs_in() -> None:
    service = Service()
    tree = {"a": {"get_input": "x"}, "b": [{"get_input": "y"}, "plain"], "c": {"get_input": "x", "d": 1}}
    structured = {"config": config("StructuredConfig", config=tree, inputs=[{"name": "x"}])}
    service.create({**structured, "deploy": deployment("StructuredDeployment", input_values={"x": 1})})
    (derived,) = deployed_configs(service)
    assert derived["config"] == {"a": 1, "b": [None, "plain"], "c": {"get_input": "x", "d": 1}}


def test_a_strict_structured_deployment_needs_all_its_inputs() -> None:
    service = Service()
    structured = {"config": config("StructuredConfig", config={"a": {"in": "x"}})}
    wanted = {"input_key": "in", "input_values_validate": "STRICT"}
    stack_id = service.create({**structured, "deploy": deployment("StructuredDeployment", **wanted)})
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "The Parameter (x) was not provided" in service.row(stack_id, "deploy").reason


def test_a_component_says_for_which_actions_it_is() -> None:
    service = Service()
    configs = [{"actions": ["UPDATE"], "tool": "script", "config": "u"}]
    component = {"config": config("SoftwareComponent", configs=configs), "deploy": deployment()}
    stack_id = service.create(component)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    component["deploy"] = deployment(input_values={"a": 1})
    service.update(stack_id, component)
    (derived,) = deployed_configs(service)
    assert (derived["group"], derived["config"]["configs"][0]["config"]) == ("component", "u")


def test_an_action_is_in_one_config_of_a_component_only() -> None:
    twice = [{"actions": ["CREATE"], "tool": "a"}, {"tool": "b"}]
    with pytest.raises(Rejected, match=r"configs\[1\]: the action CREATE is in more than one config"):
        Service().create({"config": config("SoftwareComponent", configs=twice)})


def test_cloud_config_is_a_document_of_cloud_init() -> None:
    service = Service()
    stack_id = service.create({"config": config("CloudConfig", cloud_config={"packages": ["nginx"]})})
    assert service.attribute(stack_id, "config", "config") == "#cloud-config\npackages:\n- nginx\n"


def test_multipart_takes_texts_and_configs_and_parts_of_parts() -> None:
    service = Service()
    inner = config("MultipartMime", parts=[{"config": "#!/bin/sh\ntrue\n", "filename": "one.x-shellscript"}])
    parts = [
        {"config": {"get_resource": "script"}, "subtype": "x-shellscript"},
        {"config": {"get_resource": "inner"}, "type": "multipart"},
        {"config": "plain ä"},
    ]
    stack_id = service.create(
        {"script": config(config="#!/bin/sh\necho\n"), "inner": inner, "whole": config("MultipartMime", parts=parts)}
    )
    document = service.attribute(stack_id, "whole", "config")
    found = [(part.subtype, part.filename, part.content) for part in mime.split(document) or []]
    assert found == [
        ("x-shellscript", "", "#!/bin/sh\necho\n"),
        ("x-shellscript", "one.x-shellscript", "#!/bin/sh\ntrue\n"),
        ("plain", "", "plain ä"),
    ]


def test_a_server_that_reads_no_configs_is_refused() -> None:
    wrong = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f"}}
    with pytest.raises(Rejected, match=r"resources.deploy.properties.server: srv does not read deployments"):
        Service().create({"srv": wrong, "deploy": deployment(config="", server={"get_resource": "srv"})})


def test_a_deployment_of_a_config_that_is_not_there_fails() -> None:
    service = Service()
    stack_id = service.create({"deploy": deployment(config="nothing")})
    assert "The Software Config (nothing) could not be found" in service.row(stack_id, "deploy").reason


def test_a_deployment_whose_outputs_come_too_late_is_well_and_not_applied_again() -> None:
    service = Service()
    resources = {
        "config": config(group="script", config="echo", outputs=[{"name": "said"}]),
        "deploy": deployment(server=A),
    }
    stack_id = service.create(resources, timeout_mins=1)
    service.live(100.0)
    assert (service.state(stack_id), service.states(stack_id)["deploy"]) == ("CREATE_FAILED", "CREATE_FAILED")
    signal_done(service, A, "late")
    before = [each.id for each in service.records_of("software_deployment")]
    service.update(stack_id, resources, timeout_mins=1)
    service.rest()
    assert (service.state(stack_id), reached(service)) == ("UPDATE_COMPLETE", set())
    assert [each.id for each in service.records_of("software_deployment")] == before


# -- groups ------------------------------------------------------------------------------------------------------------

A, B, C = (f"{letter * 8}-9999-4999-8999-999999999999" for letter in "abc")


def fleet(servers: dict[str, str], policy: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    group = deployment("SoftwareDeploymentGroup", **properties)
    group["properties"].pop("server")
    group["properties"]["servers"] = servers
    outputs = [{"name": "said"}]
    return {
        "config": config(group="script", config="echo", outputs=outputs),
        "fleet": {**group, "update_policy": policy} if policy else group,
    }


def signal_done(service: Service, server: str, said: str = "") -> None:
    with service.db.read() as tx:
        (derived,) = deployed(tx, PROJECT, server)
    values = {each["name"]: each["value"] for each in derived.object["inputs"]}
    service.live(1)
    service.put(values["deploy_signal_id"], {"said": said, "deploy_stdout": f"out of {said}"}, "POST")


def reached(service: Service) -> set[str]:
    """Servers that have a config to apply whose outputs are waited for."""
    waits = [
        each.object for each in service.records_of("software_deployment") if each.object["status"] == "IN_PROGRESS"
    ]
    return {each["server_id"] for each in waits}


@pytest.mark.parametrize("by_registry", [False, True])
def test_a_group_goes_by_its_new_name_and_back_as_it_is(by_registry: bool) -> None:
    service = Service()
    old, new = "OS::Heat::SoftwareDeployments", "OS::Heat::SoftwareDeploymentGroup"
    before, after = fleet({"a": A}), fleet({"a": A})
    before["fleet"]["type"] = old
    stack_id = service.create(before)
    signal_done(service, A)
    service.rest()
    child, kept = service.child().id, [each.id for each in service.records_of("software_deployment")]
    options = {"environment": {"resource_registry": {old: new}}} if by_registry else {}
    for resources, type_name in ((before if by_registry else after, new), (before, old)):
        service.update(stack_id, resources, **(options if type_name == new else {}))
        service.rest()
        assert service.state(stack_id) == "UPDATE_COMPLETE"
        row = service.row(stack_id, "fleet")
        assert (row.template_type or row.type) == (old if by_registry else type_name)
        assert service.child().id == child
        assert [each.id for each in service.records_of("software_deployment")] == kept


def test_a_group_deploys_to_each_of_its_servers() -> None:
    service = Service()
    stack_id = service.create(fleet({"a": A, "b": B}))
    assert reached(service) == {A, B}
    signal_done(service, A, "one")
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"
    signal_done(service, B, "two")
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    child = service.child()
    assert service.states(child.id) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    with service.db.read() as tx:
        found = members_and_outputs(tx, child, WeightBudget())["members"]
    assert {name: each["attributes"]["said"] for name, each in found.items()} == {"a": "one", "b": "two"}
    service.update(stack_id, fleet({"b": B, "c": C}))
    assert reached(service) == {C}
    signal_done(service, C)
    service.rest()
    assert service.states(child.id).keys() == {"b", "c"}
    service.delete(stack_id)
    service.rest()
    assert service.records_of("software_deployment") == service.records_of("software_config") == []


def test_a_group_goes_on_in_batches() -> None:
    service = Service()
    policy = {"batch_create": {"max_batch_size": 2}, "rolling_update": {"max_batch_size": 1}}
    stack_id = service.create(fleet({"a": A, "b": B, "c": C}, policy))
    assert reached(service) == {A, B}
    signal_done(service, A)
    signal_done(service, B)
    assert reached(service) == {C}
    signal_done(service, C)
    service.rest()
    service.update(stack_id, fleet({"a": A, "b": B, "c": C}, policy, input_values={"word": "new"}))
    for server in (A, B, C):
        assert reached(service) == {server}
        signal_done(service, server)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_outputs_of_a_group_are_maps_by_server() -> None:
    service = Service()
    resources = fleet({"a": A})
    resources["read"] = {
        "type": "OS::Heat::Value",
        "properties": {"value": [{"get_attr": ["fleet", "deploy_stdouts"]}, {"get_attr": ["fleet", "said"]}]},
    }
    stack_id = service.create(resources)
    signal_done(service, A, "one")
    service.rest()
    assert service.row(stack_id, "read").properties["value"] == [{"a": "out of one"}, {"a": "one"}]


def test_it_is_applied_when_its_stack_is_suspended_and_resumed_where_it_is_for_that() -> None:
    service = Service()
    stack_id = service.create(greeting(actions=["SUSPEND"]))
    assert (service.state(stack_id), deployed_configs(service)) == ("CREATE_COMPLETE", [])
    service.actions.begin(stack_id, Action.SUSPEND)
    service.live(30)
    assert service.states(stack_id)["deploy"] == "SUSPEND_IN_PROGRESS"
    assert inputs(service)["deploy_action"] == "SUSPEND"
    answer(service, {"said": "good night"})
    service.rest()
    assert service.state(stack_id) == "SUSPEND_COMPLETE"
    assert service.attribute(stack_id, "deploy", "said") == "good night"
    service.actions.begin(stack_id, Action.RESUME)
    service.rest()
    assert service.state(stack_id) == "RESUME_COMPLETE"


def test_a_stack_whose_deployment_fails_to_suspend_is_suspended_once_more() -> None:
    service = Service()
    stack_id = service.create(greeting(actions=["SUSPEND"]))
    service.actions.begin(stack_id, Action.SUSPEND)
    service.live(5)
    answer(service, {"deploy_status_code": 1})
    service.rest()
    assert service.state(stack_id) == "SUSPEND_FAILED"
    assert "non-zero status code: 1" in service.stack(stack_id).reason
    service.actions.begin(stack_id, Action.SUSPEND)
    service.live(5)
    answer(service, {"said": "good night"})
    service.rest()
    assert service.state(stack_id) == "SUSPEND_COMPLETE"


def test_a_group_made_in_batches_moves_as_it_is_and_nothing_is_applied_again() -> None:
    service = Service()
    stack_id = service.create(fleet({"a": A, "b": B}, {"batch_create": {"max_batch_size": 1}}))
    for server in (A, B):
        signal_done(service, server)
        service.live(5.0)
    service.rest()
    before = {each.id: each.object for each in service.records_of("software_deployment")}
    assert len(before) == 2
    document = service.moving.abandon(stack_id)
    service.rest()
    stack_id = service.adopt(document)
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert {each.id: each.object for each in service.records_of("software_deployment")} == before
    assert reached(service) == set()
