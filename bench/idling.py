"""What a whole service costs that has nothing to do: supervisor, API and worker beside stacks of the local cloud."""

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from bench.databases import database_url
from bench.figures import Figure
from bench.processes import PATIENCE_S, cpu_s_of
from bench.serving import serving, url_of
from homeostat.convergence.limits import Limits

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "debian-12", "flavor": "m1.small"}}
VALUE = {"type": "OS::Heat::Value", "properties": {"value": "quiet"}}


def idling(stacks: int, database: str, seconds: float) -> Iterator[Figure]:
    """Half of the stacks have a server each, which is a process, the others a value."""
    with database_url(database) as url, serving(url, 1, "local") as state:
        for number in range(stacks):
            resource = SERVER if number % 2 else VALUE
            template = {"heat_template_version": "2021-04-16", "resources": {"only": resource}}
            request(f"{url_of(state)}/stacks", {"stack_name": f"s{number}", "template": template})
        wait_for_all(url_of(state))
        time.sleep(Limits().look_steady_s)  # until all of them were looked at once
        there = state.running()
        assert there is not None
        pids = {"supervisor": there.pid, **there.children}
        before, began = {name: cpu_s_of(pid) for name, pid in pids.items()}, time.monotonic()
        time.sleep(seconds)
        passed_s = time.monotonic() - began
        shares = {name: (cpu_s_of(pid) - before[name]) / passed_s * 100 for name, pid in pids.items()}
    about = f"{stacks} stacks, half of them with a server, {seconds:.0f} s"
    for name, share in {**shares, "service": sum(shares.values())}.items():
        yield Figure(f"idle.local.{name.replace(' ', '_')}.cpu", share, "% of a core", stacks, database, about)


def request(url: str, body: Any = None) -> Any:
    """Send a body to a URL, or ask it; return the answer."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)


def wait_for_all(url: str) -> None:
    """Until all stacks are COMPLETE. Fails: RuntimeError when it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while any(each["stack_status"] != "CREATE_COMPLETE" for each in request(f"{url}/stacks?limit=100000")["stacks"]):
        if time.monotonic() > deadline:
            raise RuntimeError("the stacks did not become COMPLETE")
        time.sleep(1.0)
