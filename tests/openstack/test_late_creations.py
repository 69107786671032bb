"""Creations that a service leaves unanswered and carries out later: each thing is made once."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.adapter import rest
from tests.openstack.one_worker import PATIENCE_S, one_worker
from tests.openstack.projects import Project
from tests.waiting import until

REQUEST_S = 9.0
"""For which the service waits for an answer."""
CARRIED_OUT_S = 18.0
"""After which the cloud does what it was asked for."""


@dataclass(frozen=True, slots=True)
class Late:
    """process, path — of the request that is left unanswered. listed — the things of the name `late`."""

    process: str
    path: str
    listed: Callable[[Connection], Any]
    type: str
    more: dict[str, Any]


LATE = (
    Late("neutron-api", "/networks", lambda user: user.network.networks(name="late"), "OS::Neutron::Net", {}),
    Late(
        "cinder-api",
        "/volumes",
        lambda user: user.block_storage.volumes(name="late"),
        "OS::Cinder::Volume",
        {"size": 1},
    ),
    # With a port that is made for it.
    Late(
        "nova-api",
        "/servers",
        lambda user: user.compute.servers(name="^late$"),
        "OS::Nova::Server",
        {"image": "mini", "flavor": "m1.tiny", "networks": [{"network": "net"}]},
    ),
)


@pytest.mark.shows("CV18")
@pytest.mark.parametrize("late", LATE, ids=lambda each: each.type)
def test_what_is_made_late_is_made_once(project: Project, tmp_path: Path, late: Late) -> None:
    with contextlib.closing(project.connection()) as user, one_worker(project, tmp_path, REQUEST_S) as worker:
        if late.process == "nova-api":
            network = user.network.create_network(name="net").id
            user.network.create_subnet(network_id=network, name="sub", ip_version=4, cidr="10.61.0.0/24")
        rule = {"service": late.process, "method": "POST", "path": f"{late.path}$", "delay": CARRIED_OUT_S, "times": 1}
        ids: set[str] = set()

        def is_made() -> bool:
            ids.update(str(each.id) for each in late.listed(user))
            return worker.status(made) != "IN_PROGRESS"

        with project.cloud.fault("http", **rule):
            began = time.monotonic()
            made = worker.create("late", {"late": {"type": late.type, "properties": {"name": "late", **late.more}}})
            until(is_made, "the stack", rest, PATIENCE_S)
        assert worker.status(made) == "COMPLETE"
        assert time.monotonic() - began >= CARRIED_OUT_S, "it was made before it was late"
        assert len(ids) == 1
        worker.delete(made)
        assert worker.at_rest(made) == "COMPLETE"
        assert list(late.listed(user)) == []
