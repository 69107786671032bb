"""Parts of the control plane pause again and again: no host is declared down, and nothing healthy goes (ADR 0093).

`HOMEOSTAT_PAUSES=100 HOMEOSTAT_SEED=7` for more of it, or the same once more.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openstack.host_farms import (
    BACK_S,
    HOST,
    PAUSES,
    RECOVERED_S,
    STATUS,
    Scene,
    failed,
    farm,
    needs_two_hosts,
)
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually

COUNT = int(os.environ.get("HOMEOSTAT_PAUSES", "5"))
SEED = int(os.environ.get("HOMEOSTAT_SEED", time.time_ns() % 1_000_000))
LENGTHS_S = (5.0, 15.0, 30.0, 60.0, 90.0)
CALM_S = 20.0
"""Longest time between two pauses, besides that in which hosts are not heard of yet."""
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800 + 300 * COUNT)]


@pytest.fixture
def scene(openstack_cloud: OpenStack, project: Project, tmp_path: Path) -> Iterator[Scene]:
    needs_two_hosts(openstack_cloud)
    with farm(project, tmp_path / "state", HOST, STATUS) as found:
        yield found


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
