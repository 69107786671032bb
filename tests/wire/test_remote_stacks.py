"""Stacks in regions: one service asks another through its API."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from homeostat.clouds import heat_api
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.heat_api import KIND, OUTPUTS_S, REGION_KIND, Regions, RemoteStacks
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.clouds.regions import OWN, Region
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.store.database import Database
from tests.waiting import until
from tests.wire.remote_stacks import TEXT, P, intent, stacks_of
from tests.wire.running import database, serving, settled, working


@dataclass
class Both:
    """Two services: `here` makes stacks in itself and in the region `east`."""

    here: httpx.Client
    there: httpx.Client

    def stack(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.here.get(f"stacks/{name}", follow_redirects=True).json()["stack"]
        return found


def client(url: str, **more: Any) -> httpx.Client:
    return httpx.Client(base_url=f"{url}/v1/{P}", **more)


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        database(tmp_path_factory.mktemp("east")) as db,
        working(db, SimulatedCloud(time.time)),
        serving(db, NoAccess()) as url,
    ):
        yield url


@contextlib.contextmanager
def asking(db: Database, url: str, *others: Region) -> Iterator[None]:
    """A worker of a service at `url` that knows other regions."""
    cloud = SimulatedCloud(time.time)
    with (
        contextlib.closing(Regions([Region(OWN, url), *others])) as regions,
        working(db, cloud, lambda project: JoinedCloud(regions.of(project), cloud), look_steady_s=0.5),
    ):
        yield


@contextlib.contextmanager
def knowing(*others: Region, own: str = "") -> Iterator[RemoteStacks]:
    """What the API of a service knows of regions; it does not ask itself. own — see `Regions`."""
    with contextlib.closing(Regions([Region(OWN, "http://127.0.0.1:1"), *others], own=own)) as regions:
        yield regions.of(P)


@pytest.fixture
def both(tmp_path: Path, east: str) -> Iterator[Both]:
    with (
        database(tmp_path) as db,
        knowing(Region("east", east)) as cloud,
        serving(db, NoAccess(), cloud=cloud) as url,
        asking(db, url, Region("east", east)),
        client(url) as here,
        client(east) as there,
    ):
        yield Both(here, there)
        for name in [each["stack_name"] for each in there.get("stacks").json()["stacks"]]:
            there.delete(there.get(f"stacks/{name}").headers["location"])


def template(region: str = "", word: Any = "one", text: str = TEXT) -> dict[str, Any]:
    properties: dict[str, Any] = {"template": text, "parameters": {"word": word}}
    if region:
        properties["context"] = {"region_name": region}
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["r", "outputs", "word"]}}}
    return {
        "heat_template_version": "wallaby",
        "resources": {"r": {"type": "OS::Heat::Stack", "properties": properties}, "reads": reader},
        "outputs": {"word": {"value": {"get_attr": ["reads", "value"]}}, "id": {"value": {"get_resource": "r"}}},
    }


def create(http: httpx.Client, body: dict[str, Any]) -> str:
    answer = http.post("stacks", json={"stack_name": "s", "template": body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["id"])


def outputs(stack: dict[str, Any]) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in stack["outputs"]}


@pytest.mark.parametrize("region", ["", "east"])
def test_the_life_of_a_stack_made_by_a_stack(both: Both, region: str) -> None:
    where = both.there if region else both.here
    stack_id = create(both.here, template(region))
    made = outputs(settled(both.here, stack_id, status="CREATE_COMPLETE"))
    assert made["word"] == "one"
    shown = where.get(f"stacks/{made['id']}", follow_redirects=True).json()["stack"]
    assert shown["stack_name"].startswith("s-r-")
    assert shown["parent"] is None
    assert made["id"] in [each["id"] for each in where.get("stacks").json()["stacks"]], "visible on its own"

    assert both.here.put(f"stacks/s/{stack_id}", json={"template": template(region, "two")}).status_code == 202
    assert outputs(settled(both.here, stack_id, status="UPDATE_COMPLETE")) == {"word": "two", "id": made["id"]}

    assert both.here.delete(f"stacks/s/{stack_id}").status_code == 204
    settled(both.here, stack_id, status="DELETE_COMPLETE")
    assert where.get(f"stacks/{made['id']}", follow_redirects=True).json()["stack"]["stack_status"] == "DELETE_COMPLETE"


def test_the_physical_id_is_that_of_the_stack_there(both: Both) -> None:
    stack_id = create(both.here, template("east"))
    settled(both.here, stack_id, status="CREATE_COMPLETE")
    (made,) = both.there.get("stacks").json()["stacks"]
    stack = f"stacks/s/{stack_id}"
    shown = both.here.get(f"{stack}/resources/r").json()["resource"]
    assert shown["physical_resource_id"] == made["id"]
    found = both.here.get(f"{stack}/resources?physical_resource_id={made['id']}").json()["resources"]
    assert [each["resource_name"] for each in found] == ["r"]
    events = both.here.get(f"{stack}/resources/r/events").json()["events"]
    assert {each["physical_resource_id"] for each in events} <= {None, made["id"]}
    document = both.here.get(f"{stack}/export").json()
    assert document["resources"]["r"]["resource_id"] == made["id"]


def test_a_stack_that_was_deleted_there_is_made_anew(both: Both) -> None:
    stack_id = create(both.here, template("east"))
    made = outputs(settled(both.here, stack_id, status="CREATE_COMPLETE"))["id"]
    both.there.delete(both.there.get(f"stacks/{made}").headers["location"])
    healed = until(lambda: _other_than(made, outputs(both.stack("s"))["id"]), "another stack in its place")
    settled(both.there, healed, status="CREATE_COMPLETE")


def _other_than(before: str, now: str) -> str:
    return now if now != before and len(now) == len(before) else ""


def test_what_fails_there_fails_here_with_its_reason(both: Both) -> None:
    failing = TEXT.replace("value: {get_param: word}", "value: {get_param: word}, fail: true")
    stack_id = create(both.here, template("east", text=failing))
    reason = settled(both.here, stack_id, status="CREATE_FAILED")["stack_status_reason"]
    assert 'resources.r: Went to status FAILED due to "Resource CREATE failed' in reason
    both.here.put(f"stacks/s/{stack_id}", json={"template": template("east")})
    settled(both.here, stack_id, status="UPDATE_COMPLETE")


def failed(region: str) -> str:
    at = f'using Heat endpoint at region "{region or "default"}"'
    return f'Failed validating stack template {at} due to "ERROR: '


NO_SUCH = "resources.a.type: The Resource Type (OS::No::Such) could not be found."
AT = "ERROR: Property error: : resources"


@pytest.mark.parametrize("region", ["", "default", "east"])
def test_a_template_that_would_not_be_taken_is_refused_at_once(both: Both, region: str) -> None:
    heat = client_of(both)
    wrong = template(region, text=TEXT.replace("OS::Heat::TestResource", "OS::No::Such"))
    refused = re.escape(f'ERROR: {failed(region)}{NO_SUCH}"')
    for ask in (heat.stacks.create, heat.stacks.preview):
        with pytest.raises(exc.HTTPBadRequest, match=refused):
            ask(stack_name="s", template=wrong)
    stack_id = create(both.here, template(region))
    settled(both.here, stack_id, status="CREATE_COMPLETE")
    with pytest.raises(exc.HTTPBadRequest, match=refused):
        heat.stacks.update(stack_id, template=wrong)
    heat.stacks.delete(stack_id)
    settled(both.here, stack_id, status="DELETE_COMPLETE")


def test_the_wrong_one_of_several_templates_is_named(both: Both) -> None:
    several = template("", text=TEXT)
    several["resources"]["wrong"] = template("", text=TEXT.replace("OS::Heat::TestResource", "OS::No::Such"))[
        "resources"
    ]["r"]
    with pytest.raises(exc.HTTPBadRequest, match=re.escape(f"{AT}.wrong.properties.template: : {failed('')}{NO_SUCH}")):
        client_of(both).stacks.create(stack_name="s", template=several)


def test_what_is_not_known_yet_refuses_nothing(both: Both) -> None:
    text = TEXT.replace("default: one", "constraints: [{length: {min: 2}}]")
    with pytest.raises(exc.HTTPBadRequest, match=re.escape(f"{failed('')}The Parameter (word) was not provided.")):
        client_of(both).stacks.create(stack_name="s", template=template("", word=None, text=text))
    later = template("", word={"get_attr": ["b", "output"]}, text=text)
    later["resources"]["b"] = {"type": "OS::Heat::TestResource", "properties": {"value": "known"}}
    assert outputs(settled(both.here, create(both.here, later), status="CREATE_COMPLETE"))["word"] == "known"


def test_an_unknown_region_is_refused_at_once(both: Both) -> None:
    heat = client_of(both)
    cause = "public endpoint for orchestration service in mars region not found"
    refused = re.escape(
        f'ERROR: Cannot establish connection to Heat endpoint at region "mars" due to "{cause}": '
        "the operator adds it with --region (resources.r.properties.context.region_name)"
    )
    with pytest.raises(exc.HTTPBadRequest, match=refused):
        heat.stacks.create(stack_name="s", template=template("mars"))
    with pytest.raises(exc.HTTPBadRequest, match=refused):
        heat.stacks.validate(template=template("mars"))
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": template("mars")["resources"]["r"]}}
    inside = {"heat_template_version": "wallaby", "resources": {"group": group}}
    with pytest.raises(exc.HTTPBadRequest, match="orchestration service in mars region not found"):
        heat.stacks.create(stack_name="s", template=inside)
    assert list(heat.stacks.list()) == []


def test_the_own_region_by_the_name_of_the_catalogue(tmp_path: Path) -> None:
    cloud = SimulatedCloud(time.time)
    with (
        database(tmp_path) as db,
        knowing(own="RegionOne") as known,
        serving(db, NoAccess(), cloud=known) as url,
        contextlib.closing(Regions([Region(OWN, url)], own="RegionOne")) as regions,
        working(db, cloud, lambda project: JoinedCloud(regions.of(project), cloud), look_steady_s=0.5),
        client(url) as here,
    ):
        stack_id = create(here, template("RegionOne"))
        made = outputs(settled(here, stack_id, status="CREATE_COMPLETE"))["id"]
        assert stacks_of(regions).resolve(KIND, [made, f"RegionOne/{made}"])[0] == made
        assert stacks_of(regions).resolve(REGION_KIND, ["RegionOne", "RegionTwo"]) == [OWN, None]
        here.put(f"stacks/s/{stack_id}", json={"template": template("RegionOne", "two")})
        assert outputs(settled(here, stack_id, status="UPDATE_COMPLETE")) == {"word": "two", "id": made}


def client_of(both: Both) -> HeatClient:
    """python-heatclient of the service that asks."""
    session = Session(auth=NoAuth(endpoint=str(both.here.base_url).rstrip("/")))
    return heatclient.client.Client("1", session=session, service_type="orchestration")


# -- regions that do not answer --------------------------------------------------------------------------------------


def test_while_a_region_is_away_nothing_is_made_anew(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        database(tmp_path_factory.mktemp("far")) as far,
        working(far, SimulatedCloud(time.time)),
        database(tmp_path) as near,
        contextlib.ExitStack() as away,
    ):
        there = away.enter_context(serving(far, NoAccess()))
        with (
            knowing(Region("far", there)) as cloud,
            serving(near, NoAccess(), cloud=cloud) as url,
            asking(near, url, Region("far", there)),
            client(url) as here,
            client(there) as remote,
        ):
            stack_id = create(here, template("far"))
            settled(here, stack_id, status="CREATE_COMPLETE")
            away.close()
            here.put(f"stacks/s/{stack_id}", json={"template": template("far", "two")})
            waiting = until(lambda: _reason(here, stack_id, "does not answer"), "the reason why it waits")
            assert f"region far does not answer at {there}" in waiting
            away.enter_context(serving(far, NoAccess(), port=int(there.rpartition(":")[2])))
            assert outputs(settled(here, stack_id, status="UPDATE_COMPLETE"))["word"] == "two"
            assert len(remote.get("stacks").json()["stacks"]) == 1, "one stack, all the time"


def _reason(http: httpx.Client, stack_id: str, part: str) -> str:
    reason = http.get(f"stacks/s/{stack_id}/resources/r").json()["resource"]["resource_status_reason"]
    return str(reason) if part in reason else ""


GONE = Region("gone", "http://127.0.0.1:1")


def test_a_silent_region_hides_only_its_own_stacks(east: str) -> None:
    with contextlib.closing(Regions([Region(OWN, east), GONE])) as regions:
        stacks = stacks_of(regions)
        (made,) = stacks.create(KIND, [intent("t-1", "silent")])
        assert isinstance(made, Observation)
        here, away = stacks.observe(KIND, [made.handle, "gone/1"])
        assert (here.presence, away.presence) == (Presence.PRESENT, Presence.UNKNOWN)
        assert "gone does not answer" in away.reason
        with pytest.raises(Transient):
            stacks.observe(KIND, ["gone/1"])
        (found,) = stacks.find(KIND, ["t-1"])
        assert found.handle == made.handle, "found elsewhere"
        with pytest.raises(Transient):
            stacks.find(KIND, ["t-1", "t-2"])
        answers = stacks.delete(KIND, ["gone/1", made.handle])
        assert isinstance(answers[0], Transient)
        assert isinstance(answers[1], Observation)


def test_a_second_creation_with_the_token_gives_the_first_stack(east: str) -> None:
    with contextlib.closing(Regions([Region(OWN, east)])) as regions:
        stacks = stacks_of(regions)
        first, again, other = stacks.create(KIND, [intent("t", "twice"), intent("t", "twice"), intent("u", "twice")])
        assert isinstance(first, Observation)
        assert isinstance(again, Observation)
        assert first.handle == again.handle
        assert isinstance(other, Transient)
        assert "already exists" in str(other)
        stacks.delete(KIND, [first.handle])


def test_an_update_keeps_the_token(east: str) -> None:
    with contextlib.closing(Regions([Region(OWN, east)])) as regions:
        stacks = stacks_of(regions)
        (made,) = stacks.create(KIND, [intent("t-9", "kept")])
        assert isinstance(made, Observation)
        stacks.update(KIND, [Change(made.handle, {"template": TEXT, "parameters": {"word": "x"}}, ("parameters",))])
        assert stacks.find(KIND, ["t-9"])[0].handle == made.handle
        (refused,) = stacks.operate(KIND, [Operation(made.handle, "reboot")])
        assert isinstance(refused, Rejected)
        stacks.delete(KIND, [made.handle])


def test_all_pages_are_read(east: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat_api, "PAGE", 2)
    with contextlib.closing(Regions([Region(OWN, east)])) as regions:
        stacks = stacks_of(regions)
        made = stacks.create(KIND, [intent(f"t-{n}", f"page-{n}") for n in range(5)])
        handles = [each.handle for each in made if isinstance(each, Observation)]
        assert [each.handle for each in stacks.observe(KIND, handles) if each.present] == handles
        stacks.delete(KIND, handles)


def test_outputs_that_change_without_an_update_are_read_again(tmp_path: Path) -> None:
    cloud, now = SimulatedCloud(time.time), [0.0]
    text = """
heat_template_version: wallaby
resources: {s: {type: OS::Nova::Server, properties: {image: i, flavor: f}}}
outputs: {id: {value: {get_resource: s}}}
"""
    with (
        database(tmp_path) as db,
        working(db, cloud, look_steady_s=0.2),
        serving(db, NoAccess()) as url,
        contextlib.closing(Regions([Region(OWN, url)], lambda: now[0])) as regions,
        client(url) as http,
    ):
        stacks = stacks_of(regions)
        (made,) = stacks.create(KIND, [Creation("t", {"name": "n", "template": text})])
        assert isinstance(made, Observation)

        def output_id() -> str:
            return str(stacks.observe(KIND, [made.handle])[0].properties["outputs"].get("id", ""))

        def healed() -> bool:
            return http.get(path).json()["output"]["output_value"] not in (first, None)

        first = until(output_id, "the output")
        path = f"{http.get(f'stacks/{made.handle}').headers['location']}/outputs/id"
        cloud.vanish(first)
        until(healed, "another server")
        assert output_id() == first
        now[0] += OUTPUTS_S
        assert output_id() != first
