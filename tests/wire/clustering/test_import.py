"""`homeostat import-clusters`: what one service has goes on in another one, with the same servers."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.cli import cluster_import
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.main import main
from tests.waiting import until
from tests.wire.clustering.lives import SERVER
from tests.wire.running import database, serving, working

Command = Callable[..., tuple[int, Any]]
DETAILED = {
    **SERVER,
    "properties": {**SERVER["properties"], "user_data": "#!/bin/sh\ntrue", "metadata": {"tier": "web"}},
}
POLICY = {"type": "senlin.policy.deletion", "version": "1.0", "properties": {"criteria": "OLDEST_FIRST"}}


@pytest.fixture(scope="module")
def cloud() -> SimulatedCloud:
    return SimulatedCloud(time.time)


@contextlib.contextmanager
def running(directory: Path, cloud: SimulatedCloud) -> Iterator[httpx.Client]:
    headers = {"OpenStack-API-Version": "clustering 1.14"}
    with (
        database(directory) as db,
        serving(db, NoAccess(), cloud=cloud) as url,
        working(db, cloud, url=url),
        httpx.Client(base_url=f"{url}/clustering/v1", headers=headers) as client,
    ):
        yield client


@pytest.fixture
def old(tmp_path_factory: pytest.TempPathFactory, cloud: SimulatedCloud) -> Iterator[httpx.Client]:
    """The service that is left."""
    with running(tmp_path_factory.mktemp("old"), cloud) as client:
        yield client


@pytest.fixture
def new(tmp_path_factory: pytest.TempPathFactory, cloud: SimulatedCloud) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("new"), cloud) as client:
        yield client


@pytest.fixture
def command(
    old: httpx.Client, new: httpx.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("OS_AUTH_TYPE", "none")
    monkeypatch.setenv("OS_ENDPOINT", str(new.base_url))
    monkeypatch.setattr(cluster_import, "LOOK_S", 0.05)

    def run(*words: str) -> tuple[int, Any]:
        urls = ("--from", str(old.base_url).rstrip("/"), "--to", str(new.base_url).rstrip("/"))
        code = main(["import-clusters", *urls, "--json", *words])
        return code, json.loads(capsys.readouterr().out)

    return run


def post(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


def ended(client: httpx.Client, action: str) -> None:
    def status() -> bool:
        return bool(client.get(f"/actions/{action}").json()["action"]["status"] == "SUCCEEDED")

    until(status, "the action to end")


@pytest.fixture
def filled(old: httpx.Client) -> dict[str, Any]:
    """The old service has a cluster of three nodes with a policy, and a node without a cluster."""
    profile = post(old, "/profiles", {"profile": {"name": "web", "spec": DETAILED}})["profile"]
    sizes = {"desired_capacity": 3, "min_size": 1, "max_size": 5}
    config = {"node.name.format": "web-$3I"}
    wanted = {"name": "c", "profile_id": profile["id"], "metadata": {"a": "b"}, "config": config, **sizes}
    cluster = post(old, "/clusters", {"cluster": wanted})["cluster"]
    policy = post(old, "/policies", {"policy": {"name": "oldest", "spec": POLICY}})["policy"]
    until(lambda: old.get(f"/clusters/{cluster['id']}").json()["cluster"]["status"] == "ACTIVE", "the cluster")
    attach = {"policy_attach": {"policy_id": policy["id"], "enabled": False}}
    ended(old, post(old, f"/clusters/{cluster['id']}/actions", attach)["action"])
    node = post(old, "/nodes", {"node": {"name": "alone", "profile_id": profile["id"], "role": "db"}})["node"]
    until(lambda: old.get(f"/nodes/{node['id']}").json()["node"]["status"] == "ACTIVE", "the node")
    return dict(cluster)


def shown(client: httpx.Client, sort: str) -> list[Any]:
    found: list[Any] = client.get(f"/{sort}").json()[sort]
    return found


def servers(client: httpx.Client) -> dict[str, str]:
    return {each["name"]: each["physical_id"] for each in shown(client, "nodes")}


def test_clusters_go_on_elsewhere(
    old: httpx.Client, new: httpx.Client, command: Command, filled: Any, cloud: SimulatedCloud
) -> None:
    before = cloud.things("server")
    code, plan = command()
    assert (code, len(plan["steps"])) == (0, 10)
    assert plan["steps"][:3] == ["make profile web", "make policy oldest", "make cluster c"]
    assert shown(new, "profiles") == []
    code, done = command("--yes")
    assert (code, done["left"]) == (0, [])
    (cluster,) = shown(new, "clusters")
    expected = {**{name: filled[name] for name in ("name", "min_size", "max_size", "timeout", "config")}}
    assert {name: cluster[name] for name in expected} == expected
    assert (cluster["status"], cluster["desired_capacity"], cluster["metadata"]["a"]) == ("ACTIVE", 3, "b")
    assert servers(new) == servers(old)
    assert {each["cluster_id"] for each in shown(new, "nodes")} == {cluster["id"], ""}
    (alone,) = (each for each in shown(new, "nodes") if each["name"] == "alone")
    assert (alone["role"], {each["profile_name"] for each in shown(new, "nodes")}) == ("db", {"web"})
    (binding,) = new.get(f"/clusters/{cluster['id']}/policies").json()["cluster_policies"]
    assert (binding["policy_name"], binding["enabled"]) == ("oldest", False)
    assert cloud.things("server").keys() == before.keys(), "no server was made or deleted"
    assert command("--yes") == (0, {"done": [], "left": []}), "all is there"
    ended(new, post(new, f"/clusters/{cluster['id']}/actions", {"scale_out": {"count": 1}})["action"])
    assert len(cloud.things("server")) == len(before) + 1


def test_an_import_that_was_cut_off_goes_on(
    old: httpx.Client, new: httpx.Client, command: Command, filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut off after each step, once."""
    send, left = cluster_import.Importer.carry_out, [0]

    def cut(self: Any, step: Any) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        send(self, step)

    for _ in range(20):
        left[0] = 1
        with monkeypatch.context() as patched:
            patched.setattr(cluster_import.Importer, "carry_out", cut)
            with contextlib.suppress(json.JSONDecodeError):
                command("--yes")
    assert command() == (0, {"steps": []})
    assert servers(new) == servers(old)
    assert len(shown(new, "profiles")) == len(shown(new, "clusters")) == 1


def test_what_cannot_go_on_is_left_out(
    old: httpx.Client, new: httpx.Client, command: Command, filled: Any, cloud: SimulatedCloud
) -> None:
    first = shown(old, "nodes")[0]
    cloud.change(first["physical_id"], status="stopped")
    until(lambda: old.get(f"/nodes/{first['id']}").json()["node"]["status"] == "ERROR", "the node to say so")
    code, plan = command("c")
    assert code == 0
    assert f"leave out {first['name']}: it is in status ERROR: recover or delete it first" in plan["steps"]
    assert "adopt server alone" not in plan["steps"]
    code, done = command("--yes", "c")
    assert (code, len(done["left"])) == (0, 1)
    assert len(shown(new, "nodes")) == 2


@pytest.mark.usefixtures("command")
def test_a_service_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["import-clusters", "--from", "http://127.0.0.1:1/v1", "--to", "http://127.0.0.1:1/v1"])
    assert code == 3
    assert "127.0.0.1:1" in capsys.readouterr().err
