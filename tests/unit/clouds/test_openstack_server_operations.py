"""Operations on servers of an OpenStack: what is sent, what is not sent again, and what counts as fenced."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.answers import Forbidden, Missing
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.hypervisors import Hypervisors
from homeostat.clouds.openstack.server_fencing import HYPERVISOR, TAG
from homeostat.clouds.openstack.server_hosts import HOST
from homeostat.clouds.openstack.server_room import needs_of, traits_of
from homeostat.clouds.openstack.server_snapshots import ServerSnapshots
from homeostat.clouds.openstack.servers import EVACUATE, Servers
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.port import Answer, Operation
from homeostat.model.errors import HomeostatError, Terminal, Transient
from homeostat.model.observed import Observation, Presence

MACHINE = "11111111-2222-4333-8444-555555555555"
RUNNING, OFF = 1, 4
EARLIER, LATELY = "2026-01-01T10:00:00.000000", "2026-01-01T10:01:00.000000"
FLAVOR = {"original_name": "small", "vcpus": 2, "ram": 512, "disk": 10, "ephemeral": 1, "swap": 100, "extra_specs": {}}


class OpenStack:
    """A server `s` on the host `h` with a port and a volume, as Compute, Networking and Ironic show it.

    obeys — whether what is asked for is done; refuses — part of a path -> error that requests to it get.
    """

    def __init__(self) -> None:
        self.server: Wire | None = {
            "id": "s", "name": "web", "status": "ACTIVE", "tags": [], "metadata": {}, "addresses": {}, "locked": False,
            "image": {"id": "i"}, "flavor": FLAVOR, HOST: "h", HYPERVISOR: "h",
            "OS-EXT-STS:task_state": None, "OS-EXT-STS:power_state": RUNNING,
        }  # fmt: skip
        self.services: list[Wire] = [
            {"id": "9", "host": "h", "state": "up", "status": "enabled", "forced_down": False, "updated_at": LATELY},
            {"id": "8", "host": "g", "state": "up", "status": "disabled", "disabled_reason": "old", "updated_at": ""},
            {"id": "7", "host": "f", "state": "up", "status": "enabled", "forced_down": False, "updated_at": LATELY},
        ]
        self.hypervisors: list[Wire] = [{"id": f"id-{each['host']}", "service": each} for each in self.services]
        self.roomy = ["id-f"]
        self.ports: list[Wire] = [{"id": "p", "device_id": "s", "admin_state_up": True, "tags": []}]
        self.volumes: list[Wire] = [{"volumeId": "v"}]
        self.nodes: list[Wire] = []
        self.obeys = True
        self.refuses: dict[str, HomeostatError] = {}
        self.sent: list[tuple[str, Any]] = []
        self.listed: list[str] = []
        self.asked: list[Wire] = []

    def silence(self, host: str = "h") -> None:
        """Compute does not hear of a host for so long that it calls it down."""
        (service,) = [each for each in self.services if each["host"] == host]
        service |= {"state": "down", "updated_at": EARLIER}

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[Wire]:
        self.listed.append(path)
        self._refuse(f"GET {path}")
        found = {"ports": self.ports, "services": self.services, "nodes": self.nodes, "images": []}
        found["hypervisors"] = self.hypervisors
        things = {**found, "volumeAttachments": self.volumes, "servers": []}[key]
        wanted = {name: value for name, value in params.items() if name in ("host", "device_id")}
        return iter([each for each in things if all(each.get(name) == value for name, value in wanted.items())])

    def get(self, path: str, **params: Any) -> Wire:
        if self.server is None:
            raise Missing(path)
        return {"server": dict(self.server)}

    def answer(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Any:
        self.request(method, path, {**body, **more}, of)
        return SimpleNamespace(headers={})

    def request(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Wire:
        self._refuse(f"{method} {path}")
        if path == "/allocation_candidates":
            self.asked.append(more["params"])
            return {"provider_summaries": {each: {"root_provider_uuid": each} for each in self.roomy}}
        self.sent.append((f"{method} {path}", body))
        if self.obeys:
            self._do(method, path, body)
        return {}

    def _refuse(self, request: str) -> None:
        for part, error in self.refuses.items():
            if part in request:
                raise error

    def _do(self, method: str, path: str, body: Any) -> None:
        assert self.server is not None
        if path.endswith("/action") and "os-stop" in body:
            self.server |= {"status": "SHUTOFF", "OS-EXT-STS:power_state": OFF}
        elif path.startswith("/os-services/"):
            (service,) = [each for each in self.services if path.endswith(f"/{each['id']}")]
            service |= {"forced_down": True, "state": "down"}
        elif path.startswith("/ports/p"):
            tagged = path.endswith(TAG)
            self.ports[0] |= body["port"] if not tagged else {"tags": [TAG] if method == "PUT" else []}
        elif method == "DELETE" and path.endswith("/v"):
            self.volumes.clear()
        elif path.endswith("/states/power"):
            self.nodes[0] |= {"power_state": "power off"}

    @property
    def changes(self) -> Sequence[tuple[str, Any]]:
        """Requests that change more than what is noted of the server."""
        return [each for each in self.sent if "/metadata" not in each[0]]

    @property
    def acts(self) -> Sequence[Any]:
        return [body for path, body in self.sent if path.endswith("/action")]


@pytest.fixture
def openstack() -> OpenStack:
    return OpenStack()


@pytest.fixture
def cloud(openstack: OpenStack) -> Iterator[OpenStackCloud]:
    with ThreadPoolExecutor(2) as pool:
        kinds = [Servers, Hypervisors, ServerSnapshots]
        yield OpenStackCloud(kinds, lambda _: cast(Service, openstack), pool)


def operate(cloud: OpenStackCloud, verb: str, **arguments: Any) -> Answer:
    return cloud.operate("server", [Operation("s", verb, arguments)])[0]


def fence(cloud: OpenStackCloud, *what: str) -> tuple[list[str], Mapping[str, str]]:
    seen = operate(cloud, "fence", what=list(what))
    assert isinstance(seen, Observation)
    return seen.properties["fenced"], seen.properties["not_fenced"]


# -- operations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "arguments", "status", "sent"),
    [
        ("reboot", {}, "ACTIVE", [{"reboot": {"type": "SOFT"}}]),
        ("reboot", {"type": "hard"}, "ACTIVE", [{"reboot": {"type": "HARD"}}]),
        ("reboot", {}, "REBOOT", []),
        ("reboot", {"type": "HARD"}, "REBOOT", [{"reboot": {"type": "HARD"}}]),
        ("reboot", {"type": "HARD"}, "HARD_REBOOT", []),
        ("rebuild", {}, "ACTIVE", [{"rebuild": {"imageRef": "i"}}]),
        ("rebuild", {}, "REBUILD", []),
        ("restore", {}, "SOFT_DELETED", [{"restore": None}]),
        ("restore", {}, "ACTIVE", []),
        ("rescue", {"admin_pass": "x"}, "ACTIVE", [{"rescue": {"adminPass": "x"}}]),
        ("rescue", {}, "RESCUE", []),
        ("unrescue", {}, "RESCUE", [{"unrescue": None}]),
        ("unrescue", {}, "ACTIVE", []),
        ("change_password", {"admin_pass": "x"}, "ACTIVE", [{"changePassword": {"adminPass": "x"}}]),
        ("evacuate", {}, "ACTIVE", [{"evacuate": {}, "microversion": EVACUATE}]),
        ("evacuate", {"host": "g"}, "ACTIVE", [{"evacuate": {"host": "g"}, "microversion": EVACUATE}]),
        ("evacuate", {"host": "h"}, "ACTIVE", []),
        ("evacuate", {"from": "g"}, "ACTIVE", []),
        ("evacuate", {"from": "h"}, "REBUILD", []),
    ],
)
def test_what_is_sent(
    cloud: OpenStackCloud, openstack: OpenStack, verb: str, arguments: dict[str, Any], status: str, sent: list[Any]
) -> None:
    assert openstack.server is not None
    openstack.server["status"] = status
    assert isinstance(operate(cloud, verb, **arguments), Observation)
    assert openstack.acts == sent


def test_a_server_that_nova_keeps_for_a_while_is_deleted_for_good_once(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    assert openstack.server is not None
    openstack.server["status"] = "SOFT_DELETED"
    for task in (None, "deleting"):
        openstack.server["OS-EXT-STS:task_state"] = task
        assert isinstance(cloud.delete("server", ["s"])[0], Transient)
    assert openstack.acts == [{"forceDelete": None}]


def test_who_cannot_see_hosts_may_still_ask_for_an_evacuation(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    assert openstack.server is not None
    del openstack.server[HOST]
    operate(cloud, "evacuate", **{"from": "h"})
    assert openstack.acts == [{"evacuate": {}, "microversion": EVACUATE}]


def test_a_locked_server_is_not_changed(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    assert openstack.server is not None
    openstack.server["locked"] = True
    for verb in ("rescue", "evacuate", "restore", "change_password", "rebuild", "reboot"):
        assert isinstance(operate(cloud, verb, admin_pass="x"), Terminal)
    assert openstack.acts == []


# -- fencing -----------------------------------------------------------------------------------------------------------


def test_a_server_whose_host_is_heard_of_is_stopped_and_its_host_left_alone(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    openstack.obeys = False
    assert fence(cloud, "COMPUTE") == ([], {"COMPUTE": "it is being stopped"})
    openstack.obeys = True
    assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})
    assert openstack.acts == [{"os-stop": None}] * 2
    assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})
    assert openstack.acts == [{"os-stop": None}] * 2
    assert not [path for path, _ in openstack.sent if "os-services" in path]


def test_a_host_that_is_not_heard_of_is_declared_down_and_seen_to_be(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    openstack.silence()
    openstack.obeys = False
    fenced, left = fence(cloud, "COMPUTE")
    assert (fenced, "declared down" in left["COMPUTE"]) == ([], True)
    openstack.obeys = True
    for _ in range(2):
        assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})
    assert [sent for sent in openstack.sent if "os-services" in sent[0]] == [
        ("PUT /os-services/9", {"forced_down": True})
    ] * 2
    assert openstack.acts == [], "a stop would never be carried out"


@pytest.mark.parametrize("answer", [Forbidden("no"), Transient("away")])
def test_where_hosts_are_not_shown_only_the_power_counts(
    cloud: OpenStackCloud, openstack: OpenStack, answer: HomeostatError
) -> None:
    openstack.services[0]["state"] = "down"
    openstack.refuses["GET /os-services"] = answer
    openstack.obeys = False
    assert fence(cloud, "COMPUTE")[0] == []
    openstack.obeys = True
    assert fence(cloud, "COMPUTE")[0] == ["COMPUTE"]


@pytest.mark.parametrize("host_down", [True, False])
@pytest.mark.parametrize(
    ("silent", "beat", "said"),
    [
        ("hgf", EARLIER, "3 of 3 hosts went silent at once"),
        ("hg", EARLIER, "2 of 3 hosts went silent at once"),
        ("h", "2026-01-01T10:00:50", "silent for less than 20 s"),
    ],
)
def test_a_host_is_not_declared_down_where_that_is_doubted_and_nothing_is_cut_off(
    cloud: OpenStackCloud, openstack: OpenStack, silent: str, beat: str, said: str, *, host_down: bool
) -> None:
    for host in silent:
        openstack.silence(host)
    openstack.services[0]["updated_at"] = beat
    seen = operate(cloud, "fence", what=["NETWORK", "COMPUTE"], host_down=host_down)
    assert isinstance(seen, Observation)
    assert seen.properties["fenced"] == []
    assert all(said in why for why in seen.properties["not_fenced"].values())
    assert openstack.changes == []


def test_a_host_that_goes_silent_with_all_others_after_the_first_look_is_not_declared_down(
    cloud: OpenStackCloud, openstack: OpenStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = openstack.list

    def pausing(path: str, *arguments: Any, **params: Any) -> Iterator[Wire]:
        found = iter([dict(each) for each in shown(path, *arguments, **params)])
        if path == "/os-services":
            for host in "hgf":
                openstack.silence(host)
        return found

    monkeypatch.setattr(openstack, "list", pausing)
    fenced, left = fence(cloud, "COMPUTE")
    assert (fenced, "3 of 3 hosts went silent at once" in left["COMPUTE"]) == ([], True)
    assert openstack.changes == []


def test_a_host_that_was_declared_down_and_is_heard_of_is_no_fence(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.services[0] |= {"state": "down", "forced_down": True}
    fenced, left = fence(cloud, "COMPUTE")
    assert (fenced, "openstack compute service set --up h nova-compute" in left["COMPUTE"]) == ([], True)


def test_the_answer_names_the_host_that_is_declared_down_and_none_for_a_server_that_is_stopped(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    def declared() -> object:
        seen = operate(cloud, "fence", what=["COMPUTE"])
        assert isinstance(seen, Observation)
        return seen.properties["declared_down"]

    openstack.silence()
    assert [declared(), declared()] == ["h", "h"], "the answer to the first request may have been lost"
    openstack.services[0] |= {"state": "up", "forced_down": False}
    assert declared() == ""


def test_a_server_is_not_stopped_for_a_host_that_works_again(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    for refusal in (None, Transient("away")):
        openstack.refuses = {"GET /os-services": refusal} if refusal is not None else {}
        seen = operate(cloud, "fence", what=["COMPUTE", "STORAGE"], host_down=True)
        assert isinstance(seen, Observation)
        assert set(seen.properties["not_fenced"].values()) == {"its host is not called down now"}
    assert openstack.changes == []


def test_a_host_is_declared_down_only_where_another_one_has_room(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.silence()
    openstack.roomy = ["id-h", "id-g"]  # itself, and one that takes no servers
    fenced, left = fence(cloud, "COMPUTE")
    assert (fenced, "no other host" in left["COMPUTE"], openstack.changes) == ([], True, [])
    assert openstack.asked[0]["resources"] == "VCPU:2,MEMORY_MB:512,DISK_GB:12"
    openstack.refuses["/allocation_candidates"] = Transient("placement: away")
    assert "placement: away" in fence(cloud, "COMPUTE")[1]["COMPUTE"]
    openstack.refuses.clear()
    openstack.roomy.append("id-f")
    assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})


def test_a_host_is_not_declared_down_where_no_other_one_takes_servers(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    openstack.silence()
    openstack.services[2]["status"] = "disabled"
    assert "no other host" in fence(cloud, "COMPUTE")[1]["COMPUTE"]
    assert (openstack.asked, openstack.changes) == ([], [])


def test_who_may_not_ask_for_room_is_believed_to_have_some(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.silence()
    openstack.refuses["/allocation_candidates"] = Forbidden("placement: policy does not allow it")
    assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})


@pytest.mark.parametrize(
    ("more", "image", "needs", "traits"),
    [
        ({}, "i", {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 12}, []),
        ({}, "", {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 2}, []),
        ({"resources:VCPU": "0", "resources:PCPU": "4"}, "", {"MEMORY_MB": 512, "DISK_GB": 2, "PCPU": 4}, []),
        ({"trait:CUSTOM_FAST": "required", "trait:CUSTOM_OLD": "forbidden", "hw:x": "y"}, "i", None, ["CUSTOM_FAST"]),
    ],
)
def test_what_a_server_needs_of_a_host(more: Wire, image: str, needs: Wire | None, traits: list[str]) -> None:
    server = {"flavor": {**FLAVOR, "extra_specs": more}, "image": {"id": image} if image else ""}
    assert needs_of(server) == (needs or needs_of({**server, "flavor": FLAVOR}))
    assert traits_of(server) == traits
    assert needs_of({"flavor": {"id": "1"}}) == {}


def test_a_refusal_is_the_reason(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.silence()
    openstack.refuses["PUT /os-services"] = Terminal("compute: policy does not allow it")
    assert fence(cloud, "COMPUTE") == ([], {"COMPUTE": "compute: policy does not allow it"})


@pytest.mark.parametrize("task", ["powering-off", "powering-on", "rebuild_spawning"])
def test_a_server_on_its_way_is_not_off(cloud: OpenStackCloud, openstack: OpenStack, task: str) -> None:
    assert openstack.server is not None
    openstack.server |= {"status": "SHUTOFF", "OS-EXT-STS:power_state": OFF, "OS-EXT-STS:task_state": task}
    assert fence(cloud, "COMPUTE")[0] == []


def test_of_a_machine_of_ironic_its_power_alone_counts(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    assert openstack.server is not None
    openstack.server[HYPERVISOR] = MACHINE
    openstack.services[0] |= {"state": "down", "forced_down": True}
    assert fence(cloud, "COMPUTE") == ([], {"COMPUTE": "no machine of Ironic has this server"})
    openstack.nodes.append({"uuid": MACHINE, "power_state": "power on", "target_power_state": None})
    openstack.obeys = False
    assert fence(cloud, "COMPUTE") == ([], {"COMPUTE": "its machine is being powered off"})
    openstack.nodes[0]["target_power_state"] = "power off"
    assert fence(cloud, "COMPUTE")[0] == []
    assert [sent for sent in openstack.sent if "/nodes/" in sent[0]] == [
        (f"PUT /nodes/{MACHINE}/states/power", {"target": "power off"})
    ]
    openstack.nodes[0] |= {"power_state": "power off", "target_power_state": None}
    assert fence(cloud, "COMPUTE") == (["COMPUTE"], {})


def test_ports_are_taken_down_and_only_those_come_up_again(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.ports += [
        {"id": "theirs", "device_id": "s", "admin_state_up": False, "tags": []},
        {"id": "other", "device_id": "o", "admin_state_up": True, "tags": []},
    ]
    openstack.obeys = False
    assert fence(cloud, "NETWORK") == ([], {"NETWORK": "these ports are up: p"})
    openstack.obeys = True
    assert fence(cloud, "NETWORK") == (["NETWORK"], {})
    assert [each["admin_state_up"] for each in openstack.ports] == [False, False, True]
    operate(cloud, "unfence", what=["NETWORK"])
    assert [each["admin_state_up"] for each in openstack.ports] == [True, False, True]
    assert openstack.ports[0]["tags"] == []


def test_a_volume_that_cannot_be_detached_is_named(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.refuses["DELETE /servers"] = Terminal("compute: Cannot detach a root device volume")
    fenced, left = fence(cloud, "STORAGE")
    assert (fenced, left) == ([], {"STORAGE": "volume v is attached: compute: Cannot detach a root device volume"})
    openstack.refuses.clear()
    assert fence(cloud, "STORAGE") == (["STORAGE"], {})


def test_one_part_does_not_hinder_the_others(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.refuses["GET /ports"] = Transient("network: away")
    fenced, left = fence(cloud, "STORAGE", "NETWORK", "COMPUTE")
    assert (fenced, left) == (["COMPUTE", "STORAGE"], {"NETWORK": "network: away"})


def test_a_server_that_is_gone_is_absent(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.server = None
    seen = operate(cloud, "fence", what=["COMPUTE"])
    assert isinstance(seen, Observation)
    assert seen.presence is Presence.ABSENT


# -- hosts -------------------------------------------------------------------------------------------------------------


def test_hosts_are_one_list(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.services[0] |= {"state": "down", "forced_down": True}
    seen = cloud.observe("hypervisor", ["h", "g", "nowhere"])
    assert openstack.listed == ["/os-services"]
    shown = [[each.properties[name] for name in ("state", "status", "forced_down", "reason")] for each in seen[:2]]
    assert shown == [["down", "enabled", True, None], ["up", "disabled", False, "old"]]
    assert [(each.properties["updated_at"], each.properties["blind"]) for each in seen[:2]] == [
        (1767261660.0, ""),
        (None, ""),
    ]
    assert seen[2].presence is Presence.ABSENT
    assert cloud.resolve("hypervisor", ["h", "nowhere"]) == ["h", None]
    assert isinstance(cloud.delete("hypervisor", ["h"])[0], Terminal)


def test_while_compute_hears_of_no_host_it_says_that_this_does_not_count(
    cloud: OpenStackCloud, openstack: OpenStack
) -> None:
    for host in "hgf":
        openstack.silence(host)
    (seen,) = cloud.observe("hypervisor", ["h"])
    assert "3 of 3 hosts went silent at once" in seen.properties["blind"]


def test_hosts_that_policy_hides_are_unknown_with_the_reason(cloud: OpenStackCloud, openstack: OpenStack) -> None:
    openstack.refuses["GET /os-services"] = Forbidden("compute: Policy doesn't allow it")
    seen = cloud.observe("hypervisor", ["h", "nowhere"])
    assert [(each.presence, each.reason) for each in seen] == [
        (Presence.UNKNOWN, "compute: Policy doesn't allow it")
    ] * 2
    openstack.refuses["GET /os-services"] = Transient("away")
    with pytest.raises(Transient):
        cloud.observe("hypervisor", ["h"])
