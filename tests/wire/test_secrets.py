"""What is hidden stays hidden in every answer but those that ask for it."""

import httpx

from tests.wire.running import settled

CANARY = "canary-1c9e"
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"pw": {"type": "string", "hidden": True}},
    "resources": {
        "a": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "pw"}}},
        "v": {"type": "OS::Cinder::Volume", "properties": {"size": 1, "name": {"get_param": "pw"}}},
    },
}


def test_hidden_values_are_not_shown(http: httpx.Client) -> None:
    body = {"stack_name": "web", "template": TEMPLATE, "parameters": {"pw": CANARY}}
    stack_id = http.post("stacks", json=body).json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    here = f"stacks/web/{stack_id}"
    events = http.get(f"{here}/events").json()["events"]
    shown = [f"{here}/resources/{each['resource_name']}/events/{each['id']}" for each in events]
    paths = [here, "stacks", f"{here}/resources", f"{here}/events", f"{here}/template", f"{here}/environment", *shown]
    answers = [http.get(path) for path in paths]
    assert {each.status_code for each in answers} == {200}
    assert [each.url.path for each in answers if CANARY in each.text] == []
