"""Software configs and deployments, and signals, as the genuine clients and plain requests see them."""

import json
from typing import Any

import httpx
import pytest
from heatclient import exc
from heatclient.v1.client import Client as HeatClient
from sqlalchemy import select, update

from homeostat.store import schema
from homeostat.store.shards import shards
from tests.waiting import until
from tests.wire.running import Running, settled

WAITING = """
heat_template_version: 2018-08-31
resources:
  handle: {type: OS::Heat::WaitConditionHandle, properties: {signal_transport: %s}}
  wait:
    type: OS::Heat::WaitCondition
    properties: {handle: {get_resource: handle}, timeout: 600, count: 2}
outputs:
  curl: {value: {get_attr: [handle, curl_cli]}}
  signal: {value: {get_attr: [handle, signal]}}
  data: {value: {get_attr: [wait, data]}}
"""


def outputs(heat: HeatClient, stack_id: str) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in heat.stacks.get(stack_id).outputs}


def begun(heat: HeatClient, transport: str) -> str:
    """Id of a stack whose condition waits."""
    stack_id: str = heat.stacks.create(stack_name="waiting", template=WAITING % transport)["stack"]["id"]

    def waits() -> bool:
        return [each.resource_status for each in heat.resources.list(stack_id) if each.resource_name == "wait"] == [
            "CREATE_IN_PROGRESS"
        ]

    until(waits, "the condition to wait")
    return stack_id


def test_the_client_signals(heat: HeatClient, http: httpx.Client) -> None:
    stack_id = begun(heat, "TOKEN_SIGNAL")
    heat.resources.signal("waiting", "handle", {"id": "a", "data": "one"})
    metadata = heat.resources.metadata("waiting", "handle")
    assert metadata == {"a": {"status": "SUCCESS", "reason": "Signal 1 received", "data": "one"}}
    heat.resources.signal("waiting", "handle")
    settled(http, stack_id, status="CREATE_COMPLETE")
    assert json.loads(outputs(heat, stack_id)["data"]) == {"a": "one", "2": None}
    reasons = [each.resource_status_reason for each in heat.events.list("waiting", "handle")]
    assert "Signal: status:SUCCESS reason:Signal 1 received" in reasons


def test_what_takes_no_signals_says_so(heat: HeatClient) -> None:
    begun(heat, "NO_SIGNAL")
    with pytest.raises(exc.HTTPBadRequest, match="not supported for this type"):
        heat.resources.signal("waiting", "wait")
    with pytest.raises(exc.HTTPNotFound):
        heat.resources.signal("waiting", "nothing")
    with pytest.raises(exc.HTTPBadRequest, match="Metadata format invalid"):
        heat.resources.signal("waiting", "handle", {"status": "FINE"})


@pytest.mark.parametrize(("transport", "method"), [("CFN_SIGNAL", "POST"), ("TEMP_URL_SIGNAL", "PUT")])
def test_a_signed_address(heat: HeatClient, http: httpx.Client, transport: str, method: str) -> None:
    stack_id = begun(heat, transport)
    url = json.loads(outputs(heat, stack_id)["signal"])["alarm_url"]
    first = httpx.request(method, url, json={"id": "a"})
    assert first.status_code == 200, first.text
    wrong = httpx.request(method, url.replace("handle?", "wait?"), json={"id": "a"})
    assert (wrong.status_code, "<Code>AccessDenied</Code>" in wrong.text) == (403, True)
    for body in (b'{"status": "FINE"}', b'{"colour": "red"}', b'{"status"'):
        strange = httpx.request(method, f"{url}&ContentType=JSON", content=body)
        assert (strange.status_code, strange.json()["ErrorResponse"]["Error"]["Code"]) == (400, "InvalidParameterValue")
    again = httpx.request(method, url, content=b'{"id": "b"}', headers={"content-type": ""})
    if method == "PUT":
        assert first.text == "<resource>handle</resource>"
        both = httpx.put(f"{url}&ContentType=JSON", json={"id": "b"}).json()
        assert both["resource"] == "handle"
        assert both["metadata"].keys() == {"a", "b"}
    assert again.status_code == 200
    settled(http, stack_id, status="CREATE_COMPLETE")


# -- configs -----------------------------------------------------------------------------------------------------------


def test_configs_of_the_client(heat: HeatClient) -> None:
    made = heat.software_configs.create(
        name="greet",
        group="script",
        config="#!/bin/sh\necho $word\n",
        inputs=[{"name": "word", "default": "hi", "replace_on_change": False}],
        outputs=[{"name": "said", "error_output": True}],
        options={"a": 1},
    )
    shown = heat.software_configs.get(made.id).to_dict()
    assert shown["inputs"] == [{"name": "word", "type": "String", "default": "hi"}]
    assert shown["outputs"] == [{"name": "said", "type": "String", "error_output": True}]
    assert (shown["name"], shown["group"], shown["options"]) == ("greet", "script", {"a": 1})
    assert shown["creation_time"].endswith("Z")
    second = heat.software_configs.create(name="second", config={"a": [1]})
    assert second.group == "Heat::Ungrouped"
    listed = list(heat.software_configs.list())
    assert [each.name for each in listed] == ["greet", "second"]
    assert [each.name for each in heat.software_configs.list(limit=1, marker=made.id)] == ["second"]
    heat.software_configs.delete(second.id)
    with pytest.raises(exc.HTTPNotFound):
        heat.software_configs.get(second.id)
    with pytest.raises(exc.HTTPBadRequest, match="inputs"):
        heat.software_configs.create(name="bad", inputs=[{"type": "Colour", "name": "x"}])
    with pytest.raises(exc.HTTPBadRequest, match="Value 'abc' is not a number"):
        heat.software_configs.create(name="bad", inputs=[{"type": "Number", "name": "x", "default": "abc"}])


def test_deployments_of_the_client(heat: HeatClient) -> None:
    config = heat.software_configs.create(name="greet", config="x")
    made = heat.software_deployments.create(
        config_id=config.id, server_id="srv", action="CREATE", status="IN_PROGRESS", input_values={"word": "ho"}
    )
    assert (made.status, made.input_values, made.output_values) == ("IN_PROGRESS", {"word": "ho"}, {})
    assert [each.id for each in heat.software_deployments.list(server_id="srv")] == [made.id]
    assert list(heat.software_deployments.list(server_id="other")) == []
    (applied,) = heat.software_deployments.metadata(server_id="srv")
    assert (applied["id"], applied["config"]) == (config.id, "x")
    heat.software_deployments.update(made.id, status="COMPLETE", output_values={"said": "ho"}, status_reason=None)
    assert heat.software_deployments.get(made.id).output_values == {"said": "ho"}
    with pytest.raises(exc.HTTPBadRequest, match="used by deployment"):
        heat.software_configs.delete(config.id)
    with pytest.raises(exc.HTTPBadRequest, match="could not be found"):
        heat.software_deployments.create(config_id="none", server_id="srv")
    heat.software_deployments.delete(made.id)
    assert list(heat.software_deployments.list()) == []
    heat.software_configs.delete(config.id)


DEPLOYING = """
heat_template_version: 2018-08-31
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {config: x}}
  alone:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: srv-1}
  group:
    type: OS::Heat::SoftwareDeploymentGroup
    properties: {config: {get_resource: config}, servers: {one: srv-2, two: srv-3}}
"""


def test_deployments_of_a_stack_whose_time_is_over_have_failed(
    heat: HeatClient, http: httpx.Client, service: Running, project: str
) -> None:
    def deployments() -> dict[str, Any]:
        return {each.server_id: each for each in heat.software_deployments.list()}

    stack_id = heat.stacks.create(stack_name="late", template=DEPLOYING)["stack"]["id"]
    until(lambda: len(deployments()) == 3, "all to wait for their outputs")
    assert {each.status for each in deployments().values()} == {"IN_PROGRESS"}
    heat.software_deployments.update(deployments()["srv-3"].id, status="COMPLETE")
    out_of_time(service, project)
    settled(http, stack_id, status="CREATE_FAILED")
    until(lambda: deployments()["srv-2"].status != "IN_PROGRESS", "the group's stack to end too")
    states = {server: each.status for server, each in deployments().items()}
    assert states == {"srv-1": "FAILED", "srv-2": "FAILED", "srv-3": "COMPLETE"}
    alone = heat.software_deployments.get(deployments()["srv-1"].id)
    assert (alone.status, alone.status_reason) == ("FAILED", "ResourceInError: resources.alone: CREATE timed out")


def out_of_time(service: Running, project: str) -> None:
    """The time of the project's stacks is over."""
    with service.db.write() as tx:
        now = tx.now()
        mine = schema.stack.c.project == project
        tx.execute(update(schema.stack).where(mine).values(deadline=now))
        for stack_id in tx.execute(select(schema.stack.c.id).where(mine)).scalars().all():
            shards.wake(tx, stack_id, now, shards.USER)


def test_other_projects_see_none_of_it(heat: HeatClient, endpoint: str) -> None:
    config = heat.software_configs.create(name="mine", config="x")
    other = endpoint.rsplit("/", 1)[0] + "/another"
    assert httpx.get(f"{other}/software_configs").json() == {"software_configs": []}
    assert httpx.get(f"{other}/software_configs/{config.id}").status_code == 404
    assert httpx.delete(f"{other}/software_configs/{config.id}").status_code == 404
