"""A service on the real OpenStack of the tests: how long making things takes, what is asked for it, and at rest.

Beside it a script is measured that asks for the same things with openstacksdk. `$HOMEOSTAT_OPENSTACK` names the cloud.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openstack.connection import Connection
from sqlalchemy import func, select
from tests.openstack import projects
from tests.openstack.adapter import clouds_yaml
from tests.openstack.calls import Calls
from tests.openstack.cloud.__main__ import DEFAULT, VARIABLE
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack as Running

from bench.databases import database_url, opened
from bench.figures import Figure
from bench.shapes import VERSION, Template
from homeostat.clock import AgreedClock, Entropy
from homeostat.clouds.openstack import OpenStack, OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.notifications import NotificationConfig, Notifications
from homeostat.clouds.port import Answer, Creation
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import stacks

CIDR = "10.60.0.0/16"
LOOK_S = 1.0
"""Between two looks of the script, as between those of the service."""
STEADY_S = 10.0
RESTS = 6
"""The time at rest that is counted, in the seconds between two looks."""
LOOK = "GET /servers/detail"
"""Request that each look sends once."""
SERVERS_MAX = 20
"""Of a stack at rest: the others are ports, volumes and key pairs."""
PATIENCE_S = 900.0
IMAGE, FLAVOR = "mini", "m1.tiny"


@dataclass(slots=True)
class Place:
    """A project with a network, in which things are made."""

    project: Project
    user: Connection
    network: str
    image: str
    flavor: str


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """A new project, with room; it is removed in the end, with everything in it."""
    made = projects.create(Running(Path(os.environ.get(VARIABLE) or DEFAULT).absolute()))
    try:
        made.limit("compute", instances=1000, cores=2000, ram=2_000_000, key_pairs=1000)
        made.limit("network", ports=5000)
        made.limit("volume", volumes=1000, gigabytes=5000)
        with contextlib.closing(made.connection()) as user:
            network = user.network.create_network(name="net").id
            user.network.create_subnet(network_id=network, name="sub", ip_version=4, cidr=CIDR)
            image = user.image.find_image(IMAGE, ignore_missing=False).id
            yield Place(made, user, network, image, user.compute.find_flavor(FLAVOR, ignore_missing=False).id)
    finally:
        projects.remove(made)


@dataclass(slots=True)
class Watched:
    """A cloud that notes when something was seen to go, to be gone, and asked for; all else is the cloud's."""

    _cloud: Any
    missed_at: dict[str, float] = field(default_factory=dict)
    gone_at: dict[str, float] = field(default_factory=dict)
    asked_at: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        seen = self._cloud.observe(kind, handles)
        for handle, each in zip(handles, seen, strict=True):
            if each.presence is Presence.ABSENT or each.properties.get("status") == "deleting":
                self.missed_at.setdefault(handle, time.time())
            if each.presence is Presence.ABSENT:
                self.gone_at.setdefault(handle, time.time())
        return list(seen)

    def replaces(self, handle: str) -> bool:
        """Return whether something was seen to be gone, and something asked for."""
        return handle in self.gone_at and bool(self.asked_at)

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self.asked_at.append(time.time())
        return list(self._cloud.create(kind, intents))


@dataclass(slots=True)
class Service:
    """A service that runs."""

    stacks: StackService
    db: Database
    cloud: Watched

    def make(self, name: str, resources: Template) -> str:
        """Create a stack, and return its id once it is COMPLETE."""
        template: Template = {"heat_template_version": VERSION, "resources": resources}
        made = self.stacks.create("bench", None, name, StackRequest(template))
        _until(lambda: self._is_complete(made))
        return made

    def _is_complete(self, stack_id: str) -> bool:
        with self.db.read() as tx:
            row = stacks.get(tx, stack_id)
        if row is None or row.status == Status.FAILED:
            raise RuntimeError(f"stack {stack_id} did not become COMPLETE: {row and row.reason}")
        return bool(row.status == Status.COMPLETE)

    def unmake(self, stack_id: str) -> None:
        """Delete a stack, and return once nothing of it is left that would be looked at."""
        self.stacks.delete(stack_id)
        _until(lambda: not self._resources_of(stack_id))

    def _resources_of(self, stack_id: str) -> int:
        counted = select(func.count()).where(schema.resource.c.stack_id == stack_id)
        with self.db.read() as tx:
            return int(tx.scalar(counted) or 0)

    def is_at_rest(self) -> bool:
        """Return whether nothing is in progress."""
        with self.db.read() as tx:
            return not tx.scalar(select(func.count()).where(schema.resource.c.status != Status.COMPLETE))


@contextlib.contextmanager
def service(where: Place, limits: Limits, notified: bool = False, database: str = "sqlite") -> Iterator[Service]:
    """A worker with the login of the project's user."""
    with contextlib.ExitStack() as context:
        folder = Path(context.enter_context(TemporaryDirectory()))
        os.environ["OS_CLIENT_CONFIG_FILE"] = str(clouds_yaml(where.project, folder))
        db = context.enter_context(contextlib.closing(opened(context.enter_context(database_url(database)))))
        urls = (where.project.cloud.transport_url,) if notified else ()
        notifications = Notifications(NotificationConfig(urls, pool=f"bench-{where.project.name}"))
        config = OpenStackConfig(cloud="own")
        openstack = OpenStack(config, Connections(config), notifications=notifications)
        cloud = Watched(context.enter_context(contextlib.closing(openstack)))
        worker = Worker(db, cloud, AgreedClock(db.agreed_now), Entropy(), limits)
        worker.start()
        context.callback(worker.stop)
        if notified and not notifications.connected.wait(PATIENCE_S):
            raise RuntimeError("the message bus does not answer")
        yield Service(StackService(db, Entropy(), Quotas()), db, cloud)


# -- making ----------------------------------------------------------------------------------------------------------


def units(where: Place, n: int) -> Template:
    """n servers, each with a port, and a volume that is attached."""
    resources: Template = {}
    for i in range(n):
        resources |= {
            f"port{i}": {"type": "OS::Neutron::Port", "properties": {"network": where.network}},
            f"server{i}": _server(where, {"port": {"get_resource": f"port{i}"}}),
            f"volume{i}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
            f"attachment{i}": {
                "type": "OS::Cinder::VolumeAttachment",
                "properties": {
                    "instance_uuid": {"get_resource": f"server{i}"},
                    "volume_id": {"get_resource": f"volume{i}"},
                },
            },
        }
    return resources


def _server(where: Place, network: Template) -> Template:
    properties = {"image": where.image, "flavor": where.flavor, "networks": [network]}
    return {"type": "OS::Nova::Server", "properties": properties}


def by_service(where: Place, n: int) -> tuple[float, Calls]:
    with service(where, Limits()) as running:
        running.unmake(running.make("first", units(where, 1)))  # asks for versions and names, once for each process
        with Calls() as calls:
            started = time.perf_counter()
            running.make("units", units(where, n))
            return time.perf_counter() - started, calls


def by_script(where: Place, n: int) -> tuple[float, Calls]:
    """The same things by hand: as many requests at once as the service may send, and lists until all is done."""
    with (
        contextlib.closing(where.project.connection()) as user,
        ThreadPoolExecutor(OpenStackConfig().connections) as pool,
    ):
        _script(user, pool, where, 1)
        with Calls() as calls:
            started = time.perf_counter()
            _script(user, pool, where, n)
            return time.perf_counter() - started, calls


def _script(user: Connection, pool: ThreadPoolExecutor, where: Place, n: int) -> None:
    def server(i: int) -> Any:
        port = user.network.create_port(network_id=where.network, name=f"port{i}")
        networks = [{"port": port.id}]
        return user.compute.create_server(
            name=f"server{i}", flavor_id=where.flavor, image_id=where.image, networks=networks
        ).id

    def volume(i: int) -> Any:
        return user.block_storage.create_volume(size=1, name=f"volume{i}").id

    volumes = [pool.submit(volume, i) for i in range(n)]
    servers = [pool.submit(server, i) for i in range(n)]
    pairs = [(one.result(), other.result()) for one, other in zip(servers, volumes, strict=True)]
    waiting = set(pairs)
    attaching = []
    while True:
        there = {each.id: each.status for each in user.block_storage.volumes()}
        if waiting:
            active = {each.id for each in user.compute.servers() if each.status == "ACTIVE"}
            ready = {pair for pair in waiting if pair[0] in active and there[pair[1]] == "available"}
            waiting -= ready
            attaching += [pool.submit(user.compute.create_volume_attachment, one, volume=other) for one, other in ready]
        if all(there[each] == "in-use" for _, each in pairs):
            break
        time.sleep(LOOK_S)
    for each in attaching:
        each.result()


def making(n: int, pairs: int) -> Iterator[Figure]:
    """Time and requests of the service and of the script, in turns; the one that begins alternates."""
    ways: dict[str, Callable[[Place, int], tuple[float, Calls]]] = {"service": by_service, "script": by_script}
    ratios = []
    for number in range(pairs):
        seconds: dict[str, float] = {}
        for way in sorted(ways, reverse=bool(number % 2)):
            with place() as where:
                seconds[way], calls = ways[way](where, n)
                things, name = 4 * n, f"openstack.make.{way}"
                about = f"pair {number + 1} of {pairs}"
                yield Figure(f"{name}.seconds_{number + 1}", seconds[way], "s", n, "openstack", about)
                for what, asked in (("mutating", calls.mutating), ("reading", calls.reading)):
                    each = asked.total() / things
                    yield Figure(f"{name}.{what}", each, "calls/resource", n, "openstack", _words(asked))
        ratios.append(seconds["service"] / seconds["script"])
    median = sorted(ratios)[len(ratios) // 2]
    shown = ", ".join(f"{each:.2f}" for each in ratios)
    yield Figure("openstack.make.to_script", median, "ratio", n, "openstack", f"median of {shown}")


# -- at rest ---------------------------------------------------------------------------------------------------------


def mixed(where: Place, n: int) -> Template:
    """n resources: servers, volumes, key pairs, and ports for the rest."""
    servers = min(n // 5, SERVERS_MAX)
    volumes = min(n // 5, 3 * SERVERS_MAX)
    pairs = min(n // 5, 3 * SERVERS_MAX)
    ports = n - servers - volumes - pairs
    return {
        **{f"server{i}": _server(where, {"network": where.network}) for i in range(servers)},
        **{f"volume{i}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}} for i in range(volumes)},
        **{f"key{i}": _key(where, i) for i in range(pairs)},
        **{f"port{i}": {"type": "OS::Neutron::Port", "properties": {"network": where.network}} for i in range(ports)},
    }


def _key(where: Place, i: int) -> Template:
    return {"type": "OS::Nova::KeyPair", "properties": {"name": f"{where.project.name}-{i}", "public_key": KEY}}


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6Lx5Qw4bmcpx0K5qQBWaD2kq0cZkXv6HnPlHVgkV1c bench"


def resting(sizes: Sequence[int]) -> Iterator[Figure]:
    """Requests of a look at everything that is quiet."""
    for n in sizes:
        with place() as where, service(where, Limits(look_steady_s=STEADY_S)) as running:
            running.make("mixed", mixed(where, n))
            time.sleep(2 * STEADY_S)  # what follows the creation is not at rest
            with Calls() as calls:
                time.sleep(RESTS * STEADY_S)
            reading = calls.reading
            about, looks = _words(reading), reading[LOOK]
            yield Figure("openstack.rest.reading", reading.total() / looks, "calls/look", n, "openstack", about)
            yield Figure("openstack.rest.mutating", calls.mutating.total(), "calls", n, "openstack")


def _words(asked: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in asked.most_common())


# -- healing ---------------------------------------------------------------------------------------------------------


def healing(times: int) -> Iterator[Figure]:
    """From a server being deleted by hand to its being missed; from its being gone to its replacement being asked for.

    In between, Nova deletes it.
    """
    for word, notified in (("notified", True), ("unnotified", False)):
        seen, gone, asked = [], [], []
        with place() as where, service(where, Limits(look_steady_s=STEADY_S), notified) as running:
            running.make("servers", {f"s{i}": _server(where, {"network": where.network}) for i in range(times)})
            for each in list(where.user.compute.servers()):
                running.cloud.asked_at.clear()
                where.user.compute.delete_server(each)
                deleted_at = time.time()
                _until(partial(running.cloud.replaces, each.id))
                seen.append(running.cloud.missed_at[each.id] - deleted_at)
                gone.append(running.cloud.gone_at[each.id] - running.cloud.missed_at[each.id])
                asked.append(running.cloud.asked_at[0] - running.cloud.gone_at[each.id])
                _until(running.is_at_rest)  # else the brake of healing holds the next one back
            for name, values in (("seen", seen), ("gone", gone), ("replaced", asked)):
                shown = ", ".join(f"{each:.2f}" for each in values)
                about = f"median {sorted(values)[times // 2]:.2f} s of {shown}"
                yield Figure(f"openstack.heal.{word}.{name}", max(values), "s", times, "openstack", about)


def _until(is_so: Callable[[], object]) -> None:
    """Wait, without taking much of the cores that the services need: the script that is measured waits as well."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("what was waited for did not happen")
        time.sleep(0.05)
