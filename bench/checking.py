"""What health checks cost a whole service, with a group of nodes that is well; and how soon what fails is recovered."""

import contextlib
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from bench.cpu import spent_s
from bench.databases import database_url, opened
from bench.figures import Figure, quantiles
from bench.serving import pids_of, request, serving, url_of, wait_for_all

INTERVAL_S = 10
ROUNDS = 6
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "debian-12", "flavor": "m1.small"}}
FLAGS = ("--health-interval-min", "1", "--resources-max", "200000")


def checking(n: int, database: str) -> Iterator[Figure]:
    """Poll the status of each of n servers in every round."""
    port = _free_port()
    metrics = f"http://127.0.0.1:{port}/metrics"
    flags = (*FLAGS, "--metrics-port", str(port))
    with database_url(database) as url, serving(url, flags=flags) as state:
        request(f"{url_of(state)}/stacks", {"stack_name": "farm", "template": _template(n)})
        wait_for_all(url_of(state))
        _wait_for_checks(metrics, n)
        time.sleep(INTERVAL_S)
        with contextlib.closing(opened(url)) as db:
            looks, began = _checks(metrics), time.monotonic()
            spent = spent_s(pids_of(state), db, lambda: time.sleep(ROUNDS * INTERVAL_S))
            passed_s, looks = time.monotonic() - began, _checks(metrics) - looks
    about = f"status of each node every {INTERVAL_S} s, for {passed_s:.0f} s"
    yield Figure("health.looks", looks / n / (passed_s / INTERVAL_S), "looks/node/round", n, database, about)
    for name, seconds in spent.items():
        share = seconds / passed_s * 100
        yield Figure(f"health.{name.replace(' ', '_')}.cpu", share, "% of a core", n, database, about)


def _template(n: int) -> dict[str, object]:
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": n, "resource_def": SERVER}}
    detection = {
        "interval": INTERVAL_S,
        "node_update_timeout": 0,
        "detection_modes": [{"type": "NODE_STATUS_POLLING"}],
    }
    recovery = {"actions": [{"name": "RECREATE"}], "max_unhealthy": "40%"}
    policy = {"target": {"get_resource": "nodes"}, "detection": detection, "recovery": recovery}
    resources = {"nodes": group, "health": {"type": "Homeostat::HealthPolicy", "properties": policy}}
    return {"heat_template_version": "2021-04-16", "resources": resources}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _checks(url: str) -> float:
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    found = re.search(r"^homeostat_health_checks_total (\S+)", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _wait_for_checks(url: str, n: int) -> None:
    """Until each node was looked at. Fails: RuntimeError."""
    deadline = time.monotonic() + 300.0
    while _checks(url) < 2 * n:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {_checks(url)} looks at {n} nodes")
        time.sleep(1.0)


RECOVERED = 10
"""Servers that are killed, one after the other."""


def recovering(database: str) -> Iterator[Figure]:
    """Kill processes of the local cloud: until the recovery of each begins, and until it is healthy again."""
    flags = ("--health-interval-min", "1")
    with database_url(database) as url, serving(url, cloud="local", flags=flags) as state:
        for mode, interval_s in (("LIFECYCLE_EVENTS", 3600), ("NODE_STATUS_POLLING", INTERVAL_S)):
            begun, ended = _recoveries(url_of(state), mode.lower(), _policy(mode, interval_s))
            about = f"{mode}, interval {interval_s} s; kill -9 of {RECOVERED} processes"
            name = "events" if interval_s > INTERVAL_S else "polling"
            yield from quantiles(f"recovery.{name}.begun", begun, RECOVERED, database, about)
            yield from quantiles(f"recovery.{name}.ended", ended, RECOVERED, database, about)


def _policy(mode: str, interval_s: int) -> dict[str, object]:
    detection = {"interval": interval_s, "node_update_timeout": 0, "detection_modes": [{"type": mode}]}
    return {"detection": detection, "recovery": {"actions": [{"name": "RECREATE"}], "by_hint": False}}


def _recoveries(url: str, name: str, policy: dict[str, object]) -> tuple[list[float], list[float]]:
    """Seconds from each kill to the beginning of the recovery, and from there to its end."""
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": RECOVERED, "resource_def": SERVER}}
    watched = {"target": {"get_resource": "nodes"}, **policy}
    resources = {"nodes": group, "health": {"type": "Homeostat::HealthPolicy", "properties": watched}}
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    request(f"{url}/stacks", {"stack_name": name, "template": template})
    wait_for_all(url)
    top = _one(f"{url}/stacks/{name}", "stack")["id"]
    members = _one(f"{url}/stacks/{name}/{top}/resources/nodes", "resource")["physical_resource_id"]
    stack = _one(f"{url}/stacks/{members}", "stack")["stack_name"]
    below, begun, ended = f"{url}/stacks/{stack}/{members}", list[float](), list[float]()
    _until(lambda: _findings(f"{url}/stacks/{name}/{top}") == ["healthy"] * RECOVERED)
    for number in range(RECOVERED):
        member = f"{below}/resources/{number}"
        before = _one(member, "resource")
        os.kill(int(before["attributes"]["pid"]), signal.SIGKILL)
        killed_at = time.monotonic()
        _until(lambda: _one(member, "resource")["physical_resource_id"] != before["physical_resource_id"])  # noqa: B023
        begun_at = time.monotonic()
        _until(lambda: _one(member, "resource")["resource_status"] == "CREATE_COMPLETE")  # noqa: B023
        begun.append(begun_at - killed_at)
        ended.append(time.monotonic() - begun_at)
        _until(lambda: _findings(f"{url}/stacks/{name}/{top}") == ["healthy"] * RECOVERED)
    return begun, ended


def _one(url: str, key: str) -> dict[str, Any]:
    return dict(request(url)[key])


def _findings(url: str) -> list[str]:
    return [each["finding"] for each in request(f"{url}/health")["health"]]


def _until(condition: Callable[[], bool]) -> None:
    """Ask often. Fails: RuntimeError when it takes too long."""
    deadline = time.monotonic() + 300.0
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not happen")
        time.sleep(0.02)
