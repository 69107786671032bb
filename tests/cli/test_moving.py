"""Stacks that are abandoned and adopted beside real servers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.clouds.local.processes import life
from tests.cli.conftest import Home, lives
from tests.waiting import until

WEB = """
heat_template_version: rocky
resources:
  web: {type: OS::Nova::Server, properties: {image: local, flavor: m1.tiny}}
  members:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Nova::Server, properties: {image: local, flavor: m1.tiny}}}
"""


@contextmanager
def calling(home: Home) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{home.running().url}/v1/default", timeout=30.0) as client:
        yield client


def shown(http: httpx.Client, stack_id: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"stacks/{stack_id}", follow_redirects=True).json()["stack"]
    return found


def pids(home: Home, document: dict[str, Any]) -> set[int]:
    """Processes of the servers that a document names."""
    found = set()
    for each in document["resources"].values():
        if "resources" in each:
            found |= pids(home, each)
        elif each["resource_id"]:
            alive = life(str(home.state.cloud / "servers" / each["resource_id"]))
            assert alive is not None
            found.add(alive.pid)
    return found


@pytest.mark.heavy
def test_servers_keep_their_processes_from_one_stack_to_the_next(home: Home, tmp_path: Path) -> None:
    template = tmp_path / "web.yaml"
    template.write_text(WEB)
    assert home.run("up", str(template), "web").code == 0
    with calling(home) as http:
        web = shown(http, "web")["id"]
        exported = http.delete(f"stacks/web/{web}/abandon").json()
        before = pids(home, exported)
        until(lambda: shown(http, web)["stack_status"] == "DELETE_COMPLETE")
        assert len(before) == 3
        assert all(map(lives, before))

        made = http.post("stacks", json={"stack_name": "again", "adopt_stack_data": exported})
        assert made.status_code == 201, made.text
        until(lambda: shown(http, "again")["stack_status"] == "ADOPT_COMPLETE")
        again = http.get(f"stacks/again/{made.json()['stack']['id']}/export").json()

    assert pids(home, again) == before
    assert all(map(lives, before))
    assert home.run("down", "again", "-y").code == 0
    until(lambda: not any(map(lives, before)))


def test_the_operator_may_switch_it_off(home: Home) -> None:
    flags = ("--no-adopt", "--no-abandon", "--max-body", "500")
    started = home.run("serve", "--detach", "--port", "0", "--cloud", "simulated", *flags)
    assert started.code == 0, started.err
    with calling(home) as http:
        made = http.post("stacks", json={"stack_name": "web", "template": "heat_template_version: rocky"}).json()
        address = f"stacks/web/{made['stack']['id']}"
        refused = [
            http.get(f"{address}/export"),
            http.delete(f"{address}/abandon"),
            http.post("stacks", json={"stack_name": "other", "adopt_stack_data": "{}"}),
        ]
        large = http.post("stacks", json={"stack_name": "large", "files": {"a": "x" * 500}})
    assert [answer.json()["error"]["type"] for answer in refused] == ["NotSupported"] * 3
    assert "exceeds maximum allowed size (500 bytes)" in large.json()["error"]["message"]


@pytest.mark.heavy
def test_a_plan_shows_what_an_adoption_would_do(home: Home, tmp_path: Path) -> None:
    template, saved = tmp_path / "web.yaml", tmp_path / "web.json"
    template.write_text(WEB)
    assert home.run("up", str(template), "web").code == 0
    with calling(home) as http:
        web = shown(http, "web")["id"]
        document = http.get(f"stacks/web/{web}/export").json()
        saved.write_text(json.dumps(document))
        id = document["resources"]["web"]["resource_id"]
        taken = home.run("plan", "--adopt-file", str(saved), "again")
        assert taken.code == 1
        assert taken.out.splitlines()[0] == "again would be refused:"
        assert f"! web  Nova::Server  {id} is web of stack web already: abandon that first" in taken.out

        http.delete(f"stacks/web/{web}/abandon")
        until(lambda: shown(http, web)["stack_status"] == "DELETE_COMPLETE")
        same = home.run("plan", "--adopt-file", str(saved), "--detailed-exit-code")
        assert (same.code, same.err) == (0, "")
        assert same.out == "web can be adopted, and nothing would differ: 4 taken over as they are\n"

        document["template"]["resources"]["web"]["properties"]["metadata"] = {"role": "web"}
        document["resources"]["members"]["resources"]["1"]["resource_id"] = "gone"
        saved.write_text(json.dumps(document))
        found = home.run("plan", "--adopt-file", str(saved), "other")
        assert found.code == 1
        assert found.out.splitlines() == [
            "other would be adopted in part, and end as ADOPT_FAILED:",
            "  members  Heat::ResourceGroup",
            "└ ! 1  Nova::Server  gone is not in the cloud: the adoption would fail, and an update would make it",
            "~ web  Nova::Server  it is brought back: metadata changed outside",
            '    metadata: {} → {"role": "web"}',
            "plan: 1 to update, 1 not adopted; 2 taken over as they are",
        ]
        shown_as = json.loads(home.run("plan", "--adopt-file", str(saved), "other", "--json").out)
        assert [each["physical_resource_id"] for each in shown_as["adoption"]["missing"]] == ["gone"]
        assert shown_as["summary"]["not_adopted"] == 1

        document["resources"]["members"]["resources"].pop("1")
        saved.write_text(json.dumps(document))
        assert home.run("plan", "--adopt-file", str(saved)).code == 0
        assert home.run("plan", "--adopt-file", str(saved), "--detailed-exit-code").code == 4
        assert not http.get("stacks").json()["stacks"]
    assert home.run("plan", "--adopt-file", str(saved), str(template), "name").code == 2
    assert home.run("plan").code == 2
