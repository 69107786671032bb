"""Snapshots of stacks over HTTP, by the genuine client: what a real volume and a real server hold comes back."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heatclient.client
import httpx
import pytest
from heatclient import exc
from heatclient.v1.client import Client as HeatClient
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.local import LocalCloud
from tests.waiting import until
from tests.wire import templates
from tests.wire.running import database, serving, settled, working

NOTES = """
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1}
  password: {type: string, default: swordfish, hidden: true}
resources:
  disk: {type: OS::Cinder::Volume, properties: {size: {get_param: size}}}
  web:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.tiny
      user_data_format: RAW
      user_data: "#!/bin/sh\\n[ -e notes ] || echo first > notes\\necho ready\\nexec sleep 600\\n"
"""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[tuple[HeatClient, Path]]:
    """A client of a service with the local cloud, and the directory of that."""
    cloud = LocalCloud(tmp_path / "cloud")
    with (
        database(tmp_path) as db,
        serving(db, NoAccess(), cloud=cloud) as url,
        working(db, cloud, url=url),  # type: ignore[arg-type]
    ):
        session = Session(auth=NoAuth(endpoint=f"{url}/v1/p"))
        yield heatclient.client.Client("1", session=session, service_type="orchestration"), tmp_path / "cloud"
    cloud.destroy()


def rest(heat: HeatClient, status: str) -> None:
    def at_rest() -> Any:
        stack = heat.stacks.get("notes")
        return None if stack.stack_status.endswith("IN_PROGRESS") else stack

    stack = until(at_rest, "the stack to come to rest")
    assert stack.stack_status == status, stack.stack_status_reason


def test_what_is_on_a_real_volume_and_a_real_server_comes_back(local: tuple[HeatClient, Path]) -> None:
    heat, cloud = local
    heat.stacks.create(stack_name="notes", template=NOTES)
    rest(heat, "CREATE_COMPLETE")
    handle = {each.resource_name: each.physical_resource_id for each in heat.resources.list("notes")}
    paper = cloud / "volumes" / handle["disk"] / "data" / "will"
    notes = cloud / "servers" / handle["web"] / "root" / "notes"
    until(notes.exists, "the server to write its notes")
    paper.write_text("all to the cat")
    notes.write_text("of long ago")
    made = heat.stacks.snapshot("notes", "before")
    assert (made["name"], made["action"], made["status"], made["data"]) == ("before", "CREATE", "IN_PROGRESS", None)
    rest(heat, "SNAPSHOT_COMPLETE")
    (listed,) = heat.stacks.snapshot_list("notes")["snapshots"]
    assert (listed["id"], listed["status"]) == (made["id"], "COMPLETE")
    data = heat.stacks.snapshot_show("notes", made["id"])["snapshot"]["data"]
    assert data["resources"]["disk"]["resource_data"].keys() == {"backup_id"}
    assert data["resources"]["web"]["resource_data"].keys() == {"snapshot_image_id"}
    assert "swordfish" not in str(data["environment"])

    paper.write_text("nothing to anybody")
    notes.write_text("of today")
    (paper.parent / "later").touch()
    heat.stacks.update("notes", template=NOTES, parameters={"size": 2})
    rest(heat, "UPDATE_COMPLETE")
    heat.stacks.restore("notes", made["id"])
    rest(heat, "RESTORE_COMPLETE")
    now = {each.resource_name: each.physical_resource_id for each in heat.resources.list("notes")}
    assert now["web"] == handle["web"]
    assert now["disk"] != handle["disk"], "it had grown: what is smaller is made anew, from the backup"
    assert notes.read_text() == "of long ago"
    data_now = cloud / "volumes" / now["disk"] / "data"
    assert {each.name: each.read_text() for each in data_now.iterdir()} == {"will": "all to the cat"}

    heat.stacks.update("notes", template=NOTES, parameters={})
    rest(heat, "UPDATE_COMPLETE")
    assert notes.read_text() == "of long ago", "an update that says the same leaves it"

    assert len(list((cloud / "snapshots").glob("[!.]*"))) == 2
    heat.stacks.snapshot_delete("notes", made["id"])
    until(lambda: heat.stacks.snapshot_list("notes")["snapshots"] == [], "the snapshot to go")
    assert list((cloud / "snapshots").glob("[!.]*")) == []


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hello(http: httpx.Client) -> str:
    """Address of a complete stack."""
    created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO}).json()["stack"]
    settled(http, created["id"], status="CREATE_COMPLETE")
    return f"stacks/hello/{created['id']}"


def test_a_body_is_needed_and_may_be_empty(http: httpx.Client, hello: str) -> None:
    assert http.post(f"{hello}/snapshots").status_code == 400
    assert http.post(f"{hello}/snapshots", json={"name": 7}).status_code == 400
    answer = http.post(f"{hello}/snapshots", json={})
    assert answer.status_code == 200
    made = answer.json()
    assert made.keys() == {"id", "name", "action", "status", "status_reason", "creation_time", "data"}
    assert (made["name"], made["status_reason"]) == (None, "Stack SNAPSHOT started")
    assert time.strptime(made["creation_time"], "%Y-%m-%dT%H:%M:%SZ")


def test_what_is_not_there_is_not_found(http: httpx.Client, heat: HeatClient, hello: str) -> None:
    for call in (heat.stacks.snapshot_show, heat.stacks.snapshot_delete, heat.stacks.restore):
        with pytest.raises(exc.HTTPNotFound, match=r"The Snapshot \(nothing\) could not be found"):
            call("hello", "nothing")


def test_the_snapshot_of_one_stack_is_none_of_another(http: httpx.Client, heat: HeatClient, hello: str) -> None:
    id = http.post(f"{hello}/snapshots", json={}).json()["id"]
    other = http.post("stacks", json={"stack_name": "other", "template": templates.HELLO}).json()["stack"]["id"]
    assert http.get(f"stacks/other/{other}/snapshots/{id}").status_code == 404


def test_what_is_restored_has_the_parameters_of_then(http: httpx.Client, heat: HeatClient, hello: str) -> None:
    id = http.post(f"{hello}/snapshots", json={}).json()["id"]
    stack_id = hello.rpartition("/")[2]
    settled(http, stack_id, status="SNAPSHOT_COMPLETE")
    http.patch(hello, json={"parameters": {"word": "changed"}})
    settled(http, stack_id, status="UPDATE_COMPLETE")
    answer = http.post(f"{hello}/snapshots/{id}/restore")
    assert (answer.status_code, answer.content) == (202, b"")
    settled(http, stack_id, status="RESTORE_COMPLETE")
    assert heat.stacks.output_show("hello", "said")["output"]["output_value"] == "hello"
    assert heat.stacks.get("hello").parameters["word"] == "hello"
