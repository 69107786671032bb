"""What a stack of servers, ports and volumes costs the services: as many changes as it has resources, and few looks."""

import contextlib
import time
from pathlib import Path

import pytest

from tests.openstack.calls import Calls
from tests.openstack.one_worker import one_worker
from tests.openstack.projects import Project

UNITS = 6
"""More than are asked for one by one."""
ONCE = 15
"""Requests that do not depend on the number of resources: the login, versions, names of an image and a flavor."""
LOOK = 6
"""Lists of one look at all that is made: servers, their ports, ports, volumes, their snapshots and attachments.

There is at most one look a second.
"""
MADE = {
    "POST /ports": UNITS,
    "POST /volumes": UNITS,
    "POST /servers": UNITS,
    "POST /servers/*/os-volume_attachments": UNITS,
}


@pytest.mark.shows("CV7")
def test_a_stack_costs_one_change_a_resource_and_few_looks_at_any_single_one(project: Project, tmp_path: Path) -> None:
    with contextlib.closing(project.connection()) as user, one_worker(project, tmp_path) as worker:
        network = user.network.create_network(name="net").id
        user.network.create_subnet(network_id=network, name="sub", ip_version=4, cidr="10.60.0.0/16")
        with Calls() as calls:
            started = time.monotonic()
            made = worker.create("costs", units(network))
            assert worker.at_rest(made) == "COMPLETE"
            seconds = time.monotonic() - started
    assert dict(calls.mutating) == MADE
    print(f"{seconds:.0f} s", calls.reading.most_common())
    # A port is looked at once its server has it; where no other has one by then, it is asked for alone (ADR 0099).
    assert calls.reading["GET /ports/*"] <= UNITS
    assert calls.reading.total() <= ONCE + LOOK * seconds, calls.reading.most_common()


def units(network: str) -> dict[str, object]:
    """Servers, each with a port, and a volume that is attached."""
    resources: dict[str, object] = {}
    for i in range(UNITS):
        nic = {"port": {"get_resource": f"port{i}"}}
        joined = {"instance_uuid": {"get_resource": f"server{i}"}, "volume_id": {"get_resource": f"volume{i}"}}
        resources |= {
            f"port{i}": {"type": "OS::Neutron::Port", "properties": {"network": network}},
            f"volume{i}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
            f"server{i}": {
                "type": "OS::Nova::Server",
                "properties": {"image": "mini", "flavor": "m1.tiny", "networks": [nic]},
            },
            f"attachment{i}": {"type": "OS::Cinder::VolumeAttachment", "properties": joined},
        }
    return resources
