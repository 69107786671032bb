"""Parts of the control plane pause again and again: no host is declared down, and nothing healthy goes (ADR 0093).

`HOMEOSTAT_PAUSES=100 HOMEOSTAT_SEED=7` for more of it, or the same once more.
"""

import contextlib
import os
import random
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.openstack import balanced_farms
from tests.openstack.host_farms import (
    BACK_S,
    EVENTS,
    HOST,
    NODES,
    PAUSES,
    POOL,
    RECOVERED_S,
    STATUS,
    URL,
    Scene,
    failed,
    farms,
    needs_two_hosts,
    policy_body,
    resources,
)
from tests.openstack.message_bus import remove_queue
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually

COUNT = int(os.environ.get("HOMEOSTAT_PAUSES", "5"))
SEED = int(os.environ.get("HOMEOSTAT_SEED", time.time_ns() % 1_000_000))
LENGTHS_S = (5.0, 15.0, 30.0, 60.0, 90.0)
LOCAL = "127.0.0.1"
CALM_S = 20.0
"""Longest time between two pauses, besides that in which hosts are not heard of yet."""
pytestmark = [pytest.mark.real, pytest.mark.services("octavia", "dhcp"), pytest.mark.timeout(1800 + 300 * COUNT)]


class _Page(BaseHTTPRequestHandler):
    """Every member says that it is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextlib.contextmanager
def pages() -> Iterator[str]:
    """The address at which the members answer."""
    with ThreadingHTTPServer((LOCAL, 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{LOCAL}:{server.server_port}"
        server.shutdown()


@pytest.fixture
def scene(openstack_cloud: OpenStack, project: Project, tmp_path: Path) -> Iterator[Scene]:
    """A group, or cluster, for each way to see what is unhealthy."""
    needs_two_hosts(openstack_cloud)
    queue, bus = f"pauses-{uuid.uuid4()}", openstack_cloud.transport_url
    flags = ("--os-notifications", bus, "--os-notification-pool", queue, "--fetch-from", LOCAL)
    with pages() as address:
        wanted = {
            "hosts": resources(HOST, STATUS),
            "events": resources(EVENTS),
            "pages": resources(URL, poll_url=f"{address}/{{nodename}}"),
            "pools": balanced_farms.farm(NODES, "balancing", "health", health=policy_body({"type": POOL})),
        }
        try:
            with farms(project, tmp_path / "state", wanted, *flags) as found:
                yield found
        finally:
            remove_queue(bus, queue)


def test_pauses_cost_no_host_and_no_server_and_a_host_that_fails_is_recovered(scene: Scene) -> None:
    print(f"HOMEOSTAT_SEED={SEED}")
    rng, before = random.Random(SEED), scene.servers()
    for number in range(COUNT):
        what, length_s = rng.choice(list(PAUSES)), rng.choice(LENGTHS_S)
        print(time.strftime("%H:%M:%S"), f"{number + 1} of {COUNT}: {what} pauses for {length_s:.0f} s", flush=True)
        with PAUSES[what](scene.cloud):
            time.sleep(length_s)
        eventually(scene.all_up, "hosts that are up, and not declared down", BACK_S)
        eventually(scene.well, "healthy members", BACK_S)
        assert scene.servers() == before
        time.sleep(rng.uniform(0.0, CALM_S))
    host = scene.host_of(before[0])
    with failed(scene, host):
        began = time.monotonic()
        eventually(lambda: set(scene.servers()) - {*before, "", None}, "another server", RECOVERED_S)
        print(f"a server was made again {time.monotonic() - began:.0f} s after its host had failed")
