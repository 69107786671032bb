"""Load balancers of the local cloud."""

import os
import signal
import socket
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.contract.local_things import (
    SEEN_WITHIN_S,
    WEB,
    Watching,
    got,
    listens,
    made,
    operated,
    owned,
    seen,
    server,
)
from tests.waiting import PATIENCE_S, until

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import ChangeNotice, Operation

# -- load balancing --------------------------------------------------------------------------------


@pytest.fixture
def webs(cloud: LocalCloud) -> list[dict[str, Any]]:
    made_webs = [dict(server(cloud, f"web{i}", WEB).properties) for i in range(2)]
    until(lambda: all(got(web["address"]) for web in made_webs))
    return made_webs


def balanced(cloud: LocalCloud, webs: list[dict[str, Any]], **pool: Any) -> dict[str, str]:
    """Handles by kind (members by the name of their server), and the address."""
    subnet = made(cloud, "network", name="front").handle
    made(cloud, "subnet", network_id=subnet, cidr="10.9.0.0/24", name="front-subnet")
    balancer = made(cloud, "load_balancer", vip_subnet="front-subnet")
    spec = {"loadbalancer": balancer.handle, "protocol": "HTTP", "protocol_port": 80}
    listener = made(cloud, "listener", **spec).handle
    rules = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", **pool}
    members = made(cloud, "pool", listener=listener, **rules).handle
    handles = {"load_balancer": balancer.handle, "listener": listener, "pool": members}
    for web in webs:
        member = {"pool": members, "address": web["address"], "protocol_port": 8080}
        handles[web["name"]] = made(cloud, "pool_member", web["name"], **member).handle
    until(lambda: seen(cloud, "listener", listener)["status"] == "active")
    return {**handles, "address": balancer.properties["vip_address"]}


def test_a_load_balancer_forwards_in_turn_and_passes_over_the_dead(
    cloud: LocalCloud, webs: list[dict[str, Any]]
) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: {got(made_["address"], 80) for _ in range(4)} == {"web0", "web1"})
    assert Counter(got(made_["address"], 80) for _ in range(10)) == {"web0": 5, "web1": 5}
    os.kill(webs[0]["pid"], signal.SIGKILL)
    until(lambda: not listens(webs[0]["address"]))
    assert {got(made_["address"], 80) for _ in range(6)} == {"web1"}
    operated(cloud, "server", webs[0]["id"], "start")
    until(lambda: {got(made_["address"], 80) for _ in range(4)} == {"web0", "web1"})


def test_one_client_keeps_to_one_member_by_source(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs, lb_algorithm="SOURCE_IP")
    until(lambda: got(made_["address"], 80))
    until(lambda: len({got(made_["address"], 80) for _ in range(6)}) == 1)


@pytest.mark.parametrize(("codes", "word"), [("200-204", "online"), ("301,302", "error")])
def test_a_health_monitor_finds_unhealthy_members(
    cloud: LocalCloud, webs: list[dict[str, Any]], codes: str, word: str
) -> None:
    made_ = balanced(cloud, webs[:1])
    check = {"type": "HTTP", "delay": 1, "timeout": 1, "max_retries": 1, "url_path": "/", "expected_codes": codes}
    assert seen(cloud, "pool_member", made_["web0"])["operating_status"] == "no_monitor"
    with Watching(cloud) as watching:
        made(cloud, "health_monitor", pool=made_["pool"], **check)
        until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == word)
        until(lambda: ChangeNotice("pool_member", made_["web0"]) in watching.came)
    assert bool(got(made_["address"], 80)) is (word == "online")


def test_members_that_die_are_noticed(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    made(cloud, "health_monitor", pool=made_["pool"], type="TCP", delay=0, timeout=1, max_retries=2)
    until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == "online")
    os.kill(webs[0]["pid"], signal.SIGKILL)
    until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == "error")
    assert seen(cloud, "pool_member", made_["web1"])["operating_status"] == "online"


def test_a_killed_load_balancer_is_seen_and_started_again(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: got(made_["address"], 80))
    with Watching(cloud) as watching:
        os.kill(seen(cloud, "load_balancer", made_["load_balancer"])["pid"], signal.SIGKILL)
        until(lambda: ChangeNotice("load_balancer", made_["load_balancer"]) in watching.came, within_s=SEEN_WITHIN_S)
    dead = seen(cloud, "load_balancer", made_["load_balancer"])
    assert (dead["status"], dead["fault"]) == ("stopped", "its process ended")
    assert operated(cloud, "load_balancer", made_["load_balancer"], "start")["status"] == "active"
    assert until(lambda: got(made_["address"], 80))


def test_a_listener_whose_port_is_taken_says_so_until_it_is_free(cloud: LocalCloud) -> None:
    balancer = made(cloud, "load_balancer").properties
    with socket.create_server((balancer["vip_address"], 8080)):
        spec = {"loadbalancer": balancer["id"], "protocol": "TCP", "protocol_port": 8080}
        listener = made(cloud, "listener", **spec).handle
        until(lambda: seen(cloud, "listener", listener)["status"] == "error")
        assert "cannot listen on" in seen(cloud, "listener", listener)["fault"]
    until(lambda: seen(cloud, "listener", listener)["status"] == "active")


def test_a_load_balancer_whose_members_are_all_dead_says_so(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: got(made_["address"], 80))
    cloud.operate("server", [Operation(web["id"], "stop") for web in webs])
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://{made_['address']}:80/", timeout=PATIENCE_S)


def test_a_listener_without_members_says_so(cloud: LocalCloud) -> None:
    made_ = balanced(cloud, [])
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://{made_['address']}:80/", timeout=PATIENCE_S)


def test_everything_goes_when_the_cloud_is_destroyed(tmp_path: Path) -> None:
    cloud = LocalCloud(tmp_path / "other")
    server(cloud, "web", WEB)
    balanced(cloud, [])
    assert owned(tmp_path / "other")
    cloud.destroy()
    assert owned(tmp_path / "other") == []
    assert not (tmp_path / "other").exists()
