"""Workers change servers so that Nova does not list them as changed, and die: what all others see is so (ADR 0100).

Nova, Networking and Block Storage are played; the adapter and the notes in the database are the service's own.
"""

import calendar
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.changed_servers import KEPT_S, ChangedServers, OwnChangedServers
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.floating_ips import FloatingIpAssociations
from homeostat.clouds.openstack.server_looks import FULL_S, MARGIN_S, SETTLED_S
from homeostat.clouds.openstack.server_snapshots import ServerSnapshots
from homeostat.clouds.openstack.servers import Servers
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.volume_attachments import VolumeAttachments
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.store.operation import changed_servers
from tests.component.running import Service as Running
from tests.simulation.playing import seeds_to_play

SERVERS, WORKERS, ACTS = 6, 3, 25
ATTACHED = "os-extended-volumes:volumes_attached"


class Died(BaseException):
    """kill -9."""


class Nova:
    """Servers `s0` to `s5`, each with a port, a volume and a floating IP of its own that may be used for it.

    led — those that their floating IP leads to; listed_at — when each was changed last, as far as it lists that; dies —
    whether who sends a request that changes something dies before or after it, if at all; deaths, quiet — how often
    that was, and something was changed."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.servers = {id: _server(id) for id in (f"s{number}" for number in range(SERVERS))}
        self.listed_at = dict.fromkeys(self.servers, now())
        self.led = set[str]()
        self.dies: Callable[[], str] = lambda: ""
        self.deaths = self.quiet = 0

    def _port(self, id: str) -> Wire:
        at = id.removeprefix("p-")
        held = {"device_id": at, "device_owner": "compute:nova"} if self._has_port(at) else {"device_id": ""}
        shown = {"id": id, "name": id, "network_id": "n", "mac_address": f"mac-{at}", "fixed_ips": [], "tags": []}
        return {"device_owner": "", "description": "", **shown, **held}

    def _floating(self, id: str) -> Wire:
        at = id.removeprefix("f-")
        leads = at in self.led
        port = self._port(f"p-{at}") if leads else None
        shown = {"id": id, "floating_ip_address": f"198.51.100.{at.removeprefix('s')}", "status": "ACTIVE"}
        return {**shown, "port_id": port and port["id"], "port_details": port, "fixed_ip_address": "10.0.0.2"}

    def _has_port(self, id: str) -> bool:
        return bool(self.servers[id]["addresses"])

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[Wire]:
        if key == "servers":
            since = params.get("changes-since")
            at = calendar.timegm(time.strptime(since, "%Y-%m-%dT%H:%M:%SZ")) if since else 0.0
            return iter([dict(each) for id, each in self.servers.items() if self.listed_at[id] >= at])
        if key == "floatingips":
            leading = [self._floating(f"f-{id}") for id in sorted(self.led)]
            return iter([each for each in leading if each["port_id"] in params["port_id"]])
        ports = [self._port(f"p-{id}") for id in self.servers] if key == "ports" else []
        wanted = params.get("device_id", params.get("description"))
        field = "device_id" if "device_id" in params else "description"
        return iter([each for each in ports if wanted is not None and each[field] in wanted])

    def get(self, path: str, **params: Any) -> Wire:
        _, collection, id = path.split("/")[:3]
        if collection == "ports":
            return {"port": self._port(id)}
        if collection == "floatingips":
            return {"floatingip": self._floating(id)}
        if id not in self.servers:
            raise Missing(path)
        return {"server": dict(self.servers[id])}

    def answer(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Any:
        self.request(method, path, body)
        return SimpleNamespace(headers={})

    def request(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Wire:
        when = self.dies()
        if when == "before":
            self._die()
        answer = self._carried_out(method, path, body)
        if when == "after":
            self._die()
        return answer

    def _die(self) -> None:
        self.deaths += 1
        raise Died

    def _carried_out(self, method: str, path: str, body: Any) -> Wire:
        self.quiet += 1
        _, collection, id, *rest = path.split("/")
        what = rest[0] if rest else ""
        if collection == "floatingips":
            return {"floatingip": self._lead(id.removeprefix("f-"), body["floatingip"]["port_id"])}
        thing = self.servers[id]
        if what == "os-volume_attachments":
            thing[ATTACHED] = [{"id": body["volumeAttachment"]["volumeId"]}] if method == "POST" else []
            return {"volumeAttachment": {"volumeId": f"v-{id}", "serverId": id}}
        if what == "os-interface":
            thing["addresses"] = _addresses(id) if method == "POST" else {}
            self.led.discard(id)
        elif what == "tags" and len(rest) == 1:
            thing["tags"] = body["tags"]
        elif what == "tags":
            thing["tags"] = sorted({*thing["tags"], rest[1]})
        elif what == "metadata":
            thing["metadata"] = body["metadata"]
        return {}

    def _lead(self, at: str, port: str | None) -> Wire:
        """Have the floating IP of a server lead to its port, or nowhere; Nova shows that, and lists no change."""
        group = self.servers[at]["addresses"]["net"][:1]
        self.led.discard(at)
        if port:
            self.led.add(at)
            floating = self._floating(f"f-{at}")["floating_ip_address"]
            group.append({**group[0], "addr": floating, "OS-EXT-IPS:type": "floating"})
        self.servers[at]["addresses"] = {"net": group}
        return self._floating(f"f-{at}")


def _addresses(id: str) -> dict[str, list[Wire]]:
    return {"net": [{"addr": "10.0.0.2", "version": 4, "OS-EXT-IPS-MAC:mac_addr": f"mac-{id}"}]}


def _server(id: str) -> Wire:
    made = {"id": id, "name": id, "status": "ACTIVE", "addresses": _addresses(id), "locked": False}
    more: Wire = {"OS-EXT-STS:task_state": None, "tags": [], "flavor": {"original_name": "small"}, "image": {"id": "i"}}
    return {**made, **more, "metadata": {"role": "web"}, ATTACHED: []}


class Workers:
    """Workers beside one cloud; one that dies is followed by another one that knows nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, shared: bool = True) -> None:
        self._running = Running()
        self.clock, self._pool = self._running.clock, ThreadPoolExecutor(1)
        monkeypatch.setattr(time, "time", self.clock.now)
        monkeypatch.setattr("homeostat.clouds.openstack.server_looks.passed", self.clock.now)
        monkeypatch.setattr("homeostat.clouds.openstack.servers.passed", self.clock.now)
        monkeypatch.setattr("homeostat.store.operation.changed_servers.passed", self.clock.now)
        self._shared, self.nova = shared, Nova(self.clock.now)
        self.all = [self.begun() for _ in range(WORKERS)]

    def begun(self) -> OpenStackCloud:
        notes: ChangedServers = changed_servers.ChangedServers(self._running.db)
        kinds = [Servers, ServerSnapshots, VolumeAttachments, FloatingIpAssociations]
        return OpenStackCloud(
            kinds,
            lambda _: cast(Service, self.nova),
            self._pool,
            project="p",
            changed_servers=notes if self._shared else OwnChangedServers(self.clock.now),
        )

    def act(self, place: int, what: str, server: str) -> None:
        """Have a worker change a server; if it dies of that, another one comes."""
        try:
            ACTS_BY_NAME[what](self.all[place], self.nova, server)
        except Died:
            self.all[place] = self.begun()

    def wrong(self) -> list[str]:
        """What workers see of servers in looks at all of them, and is not so."""
        found = []
        for place, cloud in enumerate(self.all):
            for seen in cloud.observe("server", [*self.nova.servers]):
                real = self.nova.servers[seen.handle]
                shown = seen.properties
                for field, value in {
                    "volumes": real[ATTACHED],
                    "tags": [each for each in real["tags"] if not each.startswith("homeostat-")],
                    "metadata": real["metadata"],
                    "addresses": _numbers(real["addresses"]),
                }.items():
                    mine = _numbers(shown[field]) if field == "addresses" else shown[field]
                    if mine != value:
                        found.append(f"worker {place}: {field} of {seen.handle} is {value}, and is shown as {mine}")
        return found

    def pass_time(self, seconds: float) -> None:
        self.clock.time += seconds

    def settle(self) -> None:
        """Have all workers know all servers, from looks that no note and no list of changes adds anything to."""
        for _ in range(2):
            self.pass_time(FULL_S)
            assert self.wrong() == []
        self.pass_time(MARGIN_S + 1)
        assert self.wrong() == []
        self.pass_time(1)

    def close(self) -> None:
        self._pool.shutdown()


def _numbers(addresses: Wire) -> dict[str, list[str]]:
    """Network -> the addresses there."""
    return {name: [each["addr"] for each in group] for name, group in addresses.items()}


def _update(**spec: Any) -> Callable[[OpenStackCloud, Nova, str], object]:
    return lambda cloud, nova, server: cloud.update("server", [Change(server, spec, tuple(spec))])


def _plug(cloud: OpenStackCloud, nova: Nova, server: str) -> None:
    entry = {"allocate_network": "none"} if nova.servers[server]["addresses"] else {"port": f"p-{server}"}
    cloud.update("server", [Change(server, {"networks": [entry]}, ("networks",))])


def _lead(cloud: OpenStackCloud, nova: Nova, server: str) -> None:
    if server in nova.led:
        cloud.delete("floating_ip_association", [f"f-{server}:p-{server}"])
    else:
        if not nova.servers[server]["addresses"]:
            _plug(cloud, nova, server)
        spec = {"floatingip_id": f"f-{server}", "port_id": f"p-{server}"}
        cloud.create("floating_ip_association", [Creation("t", spec)])


def _attach(cloud: OpenStackCloud, nova: Nova, server: str) -> None:
    if nova.servers[server][ATTACHED]:
        cloud.delete("volume_attachment", [f"{server}/v-{server}"])
    else:
        spec = {"instance_uuid": server, "volume_id": f"v-{server}"}
        cloud.create("volume_attachment", [Creation("t", spec)])


def _tag(cloud: OpenStackCloud, nova: Nova, server: str) -> None:
    tags = [] if nova.servers[server]["tags"] else ["blue"]
    cloud.update("server", [Change(server, {"tags": tags}, ("tags",))])


def _snapshot(cloud: OpenStackCloud, nova: Nova, server: str) -> None:
    cloud.operate("server", [Operation(server, "snapshot", {"token": "t"})])


ACTS_BY_NAME: dict[str, Callable[[OpenStackCloud, Nova, str], object]] = {
    "a volume": _attach,
    "an interface": _plug,
    "a floating address": _lead,
    "tags": _tag,
    "less metadata": _update(metadata={}),
    "a snapshot": _snapshot,
}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    made = Workers(monkeypatch)
    made.settle()
    yield made
    made.close()


@pytest.mark.parametrize("when", ["after", "before", ""])
@pytest.mark.parametrize("what", ACTS_BY_NAME)
def test_a_change_is_seen_by_all_although_who_made_it_died_of_it(workers: Workers, what: str, when: str) -> None:
    workers.nova.dies = lambda: when
    workers.act(0, what, "s0")
    assert bool(workers.nova.deaths) == bool(when)
    assert workers.nova.quiet or when == "before"
    workers.nova.dies = lambda: ""
    for _ in range(int(KEPT_S // 60) + 2):
        assert workers.wrong() == []
        workers.pass_time(60)


def test_who_has_not_looked_until_long_after_a_change_sees_it(workers: Workers) -> None:
    workers.act(0, "a volume", "s0")
    workers.pass_time(SETTLED_S + 1)
    assert workers.wrong() == []


def play(workers: Workers, seed: int) -> None:
    """Change servers again and again, for longer than all is listed anew; workers die half of the time."""
    rng = random.Random(f"quiet {seed}")
    deadly = rng.choice((0.0, 0.3, 0.6))
    workers.nova.dies = lambda: rng.choice(("before", "after")) if rng.random() < deadly else ""
    found = []
    for _ in range(ACTS):
        for _ in range(rng.choice((1, 1, 2, SERVERS))):
            server = f"s{rng.randrange(SERVERS)}"
            workers.act(rng.randrange(WORKERS), rng.choice(list(ACTS_BY_NAME)), server)
        workers.pass_time(rng.choice((0.0, 1.0, 60.0, SETTLED_S, FULL_S / 2)))
        found += workers.wrong() if rng.random() < 0.8 else []
    assert found == []


@pytest.mark.parametrize("seed", seeds_to_play(10))
def test_what_all_see_of_quiet_changes_is_so(workers: Workers, seed: int) -> None:
    play(workers, seed)


def test_the_invariant_sees_notes_that_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(monkeypatch, shared=False)
    workers.settle()
    workers.act(0, "a volume", "s0")
    assert workers.wrong() == [
        f"worker {place}: volumes of s0 is [{{'id': 'v-s0'}}], and is shown as []" for place in range(1, WORKERS)
    ]
    workers.close()
