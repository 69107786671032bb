"""Virtual network functions that Tacker's drivers lead through their lives: how they are after each operation."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.openstack.running import OpenStack
from tests.openstack.wire_log import WireLog

CIDRS = {"net0": "10.10.0.0/24", "net1": "10.10.1.0/24"}
GROUPED, SINGLE = "VDU1", "VDU2"
HEALED = "healed in place of "
SHARE_MAX = 1.2
"""Requests that may change something, by those of upstream, of a whole life and of most operations; the others are said
to need so many more, and why."""


class Server(NamedTuple):
    """What Compute shows of a server."""

    image: str
    addresses: tuple[str, ...]


class Step(NamedTuple):
    """How a function is after an operation.

    Attributes:
        parts: Servers of which Tacker knows, and what each is.
        servers: Servers that Compute has.
        sent: The requests that the service has sent meanwhile and that may change something.
    """

    parts: Mapping[str, str]
    servers: Mapping[str, Server]
    sent: list[tuple[str, str]]

    def of(self, vdu: str) -> dict[str, Server]:
        return {each: self.servers[each] for each, kind in self.parts.items() if kind == vdu}


Life = dict[str, Step]


def check_known(life: Life) -> None:
    for name, step in life.items():
        assert set(step.parts) == set(step.servers), f"{name}: Tacker and Compute do not agree"


@contextlib.contextmanager
def networks(openstack_cloud: OpenStack) -> Iterator[dict[str, str]]:
    """The networks that the function is connected to, by name."""
    made: dict[str, str] = {}
    with contextlib.closing(openstack_cloud.user()) as user, contextlib.ExitStack() as ends:
        network: Any = user.network
        for name, cidr in CIDRS.items():
            made[name] = network.create_network(name=name).id
            ends.callback(network.delete_network, made[name])
            network.create_subnet(network_id=made[name], name=name, ip_version=4, cidr=cidr)
        yield made


def lived(command: list[str], given: Mapping[str, Any], user: Any, wire: WireLog, work: Path) -> Life:
    """Let the driver do all operations, and look at the servers after each before the next one begins."""
    others, life, sent = set(_servers(user)), Life(), len(wire.mutating)
    with (work / "tacker.log").open("w+") as log:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=work, bufsize=1
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(given) + "\n")
            for line in process.stdout:
                found = json.loads(line)
                servers = {each: server for each, server in _servers(user).items() if each not in others}
                life[found["reported"]] = Step(found["servers"], servers, wire.mutating[sent:])
                sent = len(wire.mutating)
                process.stdin.write("\n")
        log.seek(0)
        assert process.returncode == 0, log.read()
    return life


def _servers(user: Any) -> dict[str, Server]:
    return {
        each.id: Server(each.image.id, tuple(sorted(one["addr"] for some in each.addresses.values() for one in some)))
        for each in user.compute.servers()
        if each.status == "ACTIVE"
    }


def healed_step(life: Life) -> str:
    return next(name for name in life if name.startswith(HEALED))


def check_sent(life: Life, upstream: Mapping[str, int]) -> None:
    """upstream — by operation, how many requests upstream needs for it."""
    assert upstream.keys() == life.keys()
    shown = {name: [f"{method} {url}" for method, url in step.sent] for name, step in life.items()}
    most = {name: int(SHARE_MAX * count) for name, count in upstream.items()}
    more = {name: (upstream[name], sent) for name, sent in shown.items() if len(sent) > most[name]}
    assert not more, f"upstream sends no more than {more}"
    assert sum(map(len, shown.values())) <= SHARE_MAX * sum(upstream.values()), shown
