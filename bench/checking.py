"""What health checks cost: a whole service with a group of nodes that is polled every ten seconds, and is well."""

import re
import socket
import time
import urllib.request
from collections.abc import Iterator

from bench.databases import database_url, opened
from bench.figures import Figure
from bench.idling import request, wait_for_all
from bench.processes import cpu_s_of, whole_server_cpu_s
from bench.serving import serving, url_of

INTERVAL_S = 10
ROUNDS = 6
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "debian-12", "flavor": "m1.small"}}
FLAGS = ("--health-interval-min", "1", "--resources-max", "200000")


def checking(n: int, database: str) -> Iterator[Figure]:
    """Poll the status of each of n servers in every round."""
    port = _free_port()
    metrics = f"http://127.0.0.1:{port}/metrics"
    flags = (*FLAGS, "--metrics-port", str(port))
    with database_url(database) as url, serving(url, 1, "simulated", flags) as state:
        request(f"{url_of(state)}/stacks", {"stack_name": "farm", "template": _template(n)})
        wait_for_all(url_of(state))
        _wait_for_checks(metrics, n)
        there = state.running()
        if there is None:
            raise RuntimeError("no service runs")
        pids, db = {"supervisor": there.pid, **there.children}, opened(url)
        time.sleep(INTERVAL_S)
        before, looks = {name: cpu_s_of(pid) for name, pid in pids.items()}, _checks(metrics)
        server_s, began = whole_server_cpu_s(db), time.monotonic()
        time.sleep(ROUNDS * INTERVAL_S)
        passed_s, looks = time.monotonic() - began, _checks(metrics) - looks
        spent = {name: cpu_s_of(pid) - before[name] for name, pid in pids.items()}
        spent["database"] = whole_server_cpu_s(db) - server_s
        db.close()
    about = f"status of each node every {INTERVAL_S} s, for {passed_s:.0f} s"
    yield Figure("health.looks", looks / n / (passed_s / INTERVAL_S), "looks/node/round", n, database, about)
    for name, seconds in {**spent, "all": sum(spent.values())}.items():
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
