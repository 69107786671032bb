"""Stacks that move: export, abandon and adopt, by the clients that people use, and by documents of upstream's form."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from heatclient.exc import HTTPBadRequest, HTTPNotFound
from heatclient.v1.client import Client as HeatClient

from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.services.quotas import Quotas
from tests.waiting import until
from tests.wire.running import Running, database, serving, settled, working
from tests.wire.test_openstack_cli import Command, openstack, shown

__all__ = ["openstack"]
WEB = """
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1}
resources:
  web:
    type: OS::Nova::Server
    properties: {image: i, flavor: small}
  disk:
    type: OS::Cinder::Volume
    properties: {size: {get_param: size}}
  members:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Cinder::Volume, properties: {size: 5}}}
outputs:
  web: {value: {get_resource: web}}
"""
UPSTREAM = Path(__file__).with_name("documents") / "heat_abandoned.json"


def begun(heat: HeatClient, http: httpx.Client, name: str, **options: Any) -> str:
    stack_id: str = heat.stacks.create(stack_name=name, template=WEB, **options)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return stack_id


def gone(http: httpx.Client, stack_id: str) -> bool:
    stack = http.get(f"stacks/{stack_id}", follow_redirects=True).json()["stack"]
    return bool(stack["stack_status"] == "DELETE_COMPLETE")


def test_a_stack_is_abandoned_and_adopted_with_the_command_line(
    openstack: Command, service: Running, tmp_path: Path
) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    created = openstack("stack", "create", "--wait", "-t", "web.yaml", "--parameter", "size=3", "web")
    assert created.returncode == 0, created.stderr
    exported = openstack("stack", "export", "--output-file", "export.json", "web")
    assert exported.returncode == 0, exported.stderr
    before = service.cloud.things()

    abandoned = openstack("stack", "abandon", "--output-file", "web.json", "web")
    assert abandoned.returncode == 0, abandoned.stderr
    until(lambda: openstack("stack", "show", "web").returncode == 1, "the stack to be gone")
    document = json.loads((tmp_path / "web.json").read_text())
    assert document == json.loads((tmp_path / "export.json").read_text())
    adopted = openstack("stack", "adopt", "--wait", "--adopt-file", "web.json", "again", "-f", "json")
    assert adopted.returncode == 0, adopted.stderr
    assert '"stack_status": "ADOPT_COMPLETE"' in adopted.stdout

    output = shown(openstack("stack", "output", "show", "again", "web", "-f", "json"))
    assert output["output_value"] == document["resources"]["web"]["resource_id"]
    assert shown(openstack("stack", "show", "again", "-f", "json"))["parameters"]["size"] == "3"
    mine = {each["resource_id"] for each in document["resources"].values() if "resource_id" in each}
    after = service.cloud.things()
    assert {id: after.get(id) for id in mine} == {id: before[id] for id in mine}


def test_export_changes_nothing(heat: HeatClient, http: httpx.Client) -> None:
    stack_id = begun(heat, http, "web")

    document = heat.stacks.export("web")

    assert (document["id"], document["action"], document["status"]) == (stack_id, "CREATE", "COMPLETE")
    assert sorted(document["resources"]["members"]["resources"]) == ["0", "1"]
    assert heat.stacks.get("web").stack_status == "CREATE_COMPLETE"


def test_an_abandoned_stack_is_found_by_its_id_alone(heat: HeatClient, http: httpx.Client) -> None:
    stack_id = begun(heat, http, "web")

    heat.stacks.abandon("web")

    until(lambda: gone(http, stack_id), "the stack to be gone")
    assert heat.stacks.get(stack_id).stack_status == "DELETE_COMPLETE"
    for ask in (heat.stacks.get, heat.stacks.abandon, heat.stacks.export):
        with pytest.raises(HTTPNotFound):
            ask("web")
    with pytest.raises(HTTPNotFound):
        heat.stacks.abandon(stack_id)


def test_a_document_may_be_an_object(heat: HeatClient, http: httpx.Client) -> None:
    old = begun(heat, http, "web")
    document = heat.stacks.abandon("web")
    until(lambda: gone(http, old), "the stack to be gone")

    answer = http.post("stacks", json={"stack_name": "again", "adopt_stack_data": document})

    assert answer.status_code == 201, answer.text
    stack = settled(http, answer.json()["stack"]["id"], status="ADOPT_COMPLETE")
    assert stack["stack_status_reason"] == "Stack ADOPT completed successfully"
    events = [each.resource_status for each in heat.events.list("again")]
    assert {"ADOPT_IN_PROGRESS", "ADOPT_COMPLETE"} == set(events)


@pytest.mark.shows("CV16")
def test_documents_of_upstream_are_adopted(
    heat: HeatClient, http: httpx.Client, service: Running, project: str
) -> None:
    """Servers, ports, volumes, a key pair, a random string, a wait condition; nested, grouped and scaled."""
    text, things = UPSTREAM.read_text(), json.dumps(THINGS)
    for number in range(len(THINGS)):
        mark, kind, spec = json.loads(things)[number]
        (made,) = service.cloud.create(kind, [Creation(f"{project}-{number}", spec)])
        handle: str = made.handle  # type: ignore[union-attr]
        text, things = text.replace(mark, handle), things.replace(mark, handle)
    before = service.cloud.things()

    made_id = heat.stacks.create(stack_name="web", adopt_stack_data=text, files={}, environment={})["stack"]["id"]

    settled(http, made_id, status="ADOPT_COMPLETE")
    states = {each.resource_name: each.resource_status for each in heat.resources.list("web", nested_depth=2)}
    assert set(states.values()) == {"ADOPT_COMPLETE"}, states
    outputs = {each["output_key"]: each["output_value"] for each in heat.stacks.get("web").outputs}
    assert outputs["word"] == "kQ7cUe2wLr"
    assert outputs["told"] == '{"1": "booted"}'
    assert set(service.cloud.things()) == set(before)


THINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("@network@", "network", {"name": "net"}),
    ("@port@", "port", {"name": "port", "network_id": "net"}),
    ("@web@", "server", {"name": "web", "image": "i", "flavor": "small", "networks": [{"port": "@port@"}]}),
    ("@disk@", "volume", {"size": 1}),
    ("@inner@", "volume", {"size": 2}),
    ("@member0@", "server", {"name": "m0", "image": "i", "flavor": "small"}),
    ("@member2@", "server", {"name": "m2", "image": "i", "flavor": "small"}),
    ("@scaled1@", "server", {"name": "s1", "image": "i", "flavor": "small"}),
    ("@scaled2@", "server", {"name": "s2", "image": "i", "flavor": "small"}),
]


def test_refusals_name_the_place(heat: HeatClient, http: httpx.Client) -> None:
    begun(heat, http, "web")
    document = heat.stacks.export("web")

    with pytest.raises(HTTPBadRequest, match=r"is \w+ of stack web already: abandon that first"):
        heat.stacks.create(stack_name="other", adopt_stack_data=json.dumps(document))
    document["resources"]["disk"]["resource_id"] = 7
    with pytest.raises(HTTPBadRequest, match=r"Invalid adopt data: resources.disk.resource_id"):
        heat.stacks.create(stack_name="other", adopt_stack_data=json.dumps(document))
    with pytest.raises(HTTPBadRequest, match="Adopt data not in valid format"):
        heat.stacks.create(stack_name="other", adopt_stack_data="{")
    with pytest.raises(HTTPNotFound):
        heat.stacks.get("other")


def test_things_of_another_project_are_not_adopted(heat: HeatClient, http: httpx.Client, service: Running) -> None:
    begun(heat, http, "web")
    document = heat.stacks.export("web")
    body = {"stack_name": "taken", "adopt_stack_data": json.dumps(document)}
    refused = httpx.post(f"{service.endpoint('thieves')}/stacks", json=body)
    assert refused.status_code == 400
    assert "is not yours to adopt" in refused.json()["error"]["message"]
    assert "web" not in refused.json()["error"]["message"].replace("resources.web", "")


def test_two_services_on_one_cloud(tmp_path: Path) -> None:
    """Nothing is made, changed or deleted on the way; the second goes on where the first has let go."""
    cloud = SimulatedCloud(time.time)
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        place.mkdir()
    with (
        database(places[0]) as one,
        database(places[1]) as two,
        serving(one, NoAccess(), cloud=cloud) as here,
        serving(two, NoAccess(), cloud=cloud) as there,
        working(one, cloud, url=here),
        working(two, cloud, url=there),
        httpx.Client(base_url=f"{here}/v1/p") as first,
        httpx.Client(base_url=f"{there}/v1/p") as second,
    ):
        stack_id = first.post("stacks", json={"stack_name": "web", "template": WEB}).json()["stack"]["id"]
        settled(first, stack_id, status="CREATE_COMPLETE")
        before = cloud.things()
        document = first.delete(f"stacks/web/{stack_id}/abandon").json()
        moved = second.post("stacks", json={"stack_name": "web", "adopt_stack_data": json.dumps(document)})
        moved_id = moved.json()["stack"]["id"]

        settled(second, moved_id, status="ADOPT_COMPLETE")
        assert cloud.things() == before
        second.delete(f"stacks/web/{moved_id}")
        until(lambda: not cloud.things(), "everything to be deleted by the second service")


def test_the_operator_may_switch_moving_off(tmp_path: Path) -> None:
    with (
        database(tmp_path) as db,
        serving(db, NoAccess(), ApiSettings(quotas=Quotas(adopt=False, abandon=False))) as url,
        httpx.Client(base_url=f"{url}/v1/p") as http,
    ):
        made = http.post("stacks", json={"stack_name": "web", "template": WEB}).json()["stack"]["id"]
        for answer in (
            http.get(f"stacks/web/{made}/export"),
            http.delete(f"stacks/web/{made}/abandon"),
            http.post("stacks", json={"stack_name": "b", "adopt_stack_data": "{}"}),
        ):
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "NotSupported"), answer.text
            assert "the operator has switched it off" in answer.json()["error"]["message"]


def test_an_adoption_is_previewed_by_heatclient(heat: HeatClient, http: httpx.Client, service: Running) -> None:
    stack_id = begun(heat, http, "web", parameters={"size": 3})
    document = heat.stacks.abandon(stack_id)
    until(lambda: gone(http, stack_id), "the stack to be gone")
    ids = {name: each.get("resource_id") for name, each in document["resources"].items()}
    service.cloud.vanish(ids["disk"])
    service.cloud.change(ids["web"], status="stopped")
    before = {id: dict(each) for id, each in service.cloud.things().items()}

    preview = heat.stacks.preview(stack_name="again", adopt_stack_data=json.dumps(document))
    assert service.cloud.things() == before
    (missing,) = preview.adoption["missing"]
    assert (missing["resource_name"], missing["physical_resource_id"]) == ("disk", ids["disk"])
    assert [preview.adoption[name] for name in ("refused", "failing", "unseen", "tags")] == [[], [], [], []]
    shown_as = {each["resource_name"]: each for each in preview.resources if isinstance(each, dict)}
    assert (shown_as["web"]["change"], shown_as["disk"]["change"]) == ("updated", "added")
    assert shown_as["web"]["physical_resource_id"] == ids["web"]
    (members,) = (each for each in preview.resources if isinstance(each, list))
    assert [each["change"] for each in members] == ["unchanged"] * 2
    assert not [each for each in heat.stacks.list() if each.stack_name == "again"]


def test_a_preview_of_an_adoption_is_refused_like_the_adoption(http: httpx.Client) -> None:
    def refused(data: Any) -> dict[str, Any]:
        answer = http.post("stacks/preview", json={"stack_name": "web", "adopt_stack_data": data})
        assert answer.status_code == 400, answer.text
        error: dict[str, Any] = answer.json()["error"]
        return error

    assert "Invalid adopt data" in refused({"resources": {"disk": {"resource_id": 5}}})["message"]
    strange = {"template": {"heat_template_version": "2018-08-31"}, "resources": {"disk": {"resource_id": "5"}}}
    assert refused(strange)["type"] == "StackValidationFailed"
