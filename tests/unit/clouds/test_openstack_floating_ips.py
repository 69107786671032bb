"""Floating IPs: servers are announced before they get or lose one, since Nova lists neither as a change (ADR 0100)."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.floating_ips import FloatingIpAssociations, FloatingIps
from homeostat.clouds.openstack.servers import Servers
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation


class Networking:
    """A floating IP `f` that may lead to a port; port `p-x` is one of server `x`, port `free` of none.

    sent — the requests that change something, each with the servers that were noted before it."""

    def __init__(self) -> None:
        self.port: str | None = None
        self.noted: list[str] = []
        self.away = False
        self.sent: list[tuple[str, list[str]]] = []

    # -- the notes -----------------------------------------------------------------------------------------------------

    def note(self, project: str, handle: str) -> None:
        if self.away:
            raise Transient("the database does not answer")
        self.noted.append(handle)

    def ages(self, project: str) -> Mapping[str, float]:
        return {}

    # -- the service ---------------------------------------------------------------------------------------------------

    def get(self, path: str, **params: Any) -> Wire:
        _, collection, id = path.split("/")
        if collection == "ports":
            if id == "none":
                raise Missing(path)
            return {"port": {"id": id, **_held(id)}}
        return {"floatingip": self._shown()}

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[Wire]:
        owned = {"id": f"p-{params.get('device_id')}", "fixed_ips": [{"ip_address": "10.0.0.2"}]}
        return iter([owned] if key == "ports" else [{"id": "public", "router:external": True}])

    def request(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> Wire:
        self.sent.append((method, sorted(self.noted)))
        self.noted.clear()
        self.port = body["floatingip"].get("port_id") if body else None
        return {"floatingip": self._shown()}

    def _shown(self) -> Wire:
        details = {"port_details": _held(self.port)} if self.port else {}
        known = {"id": "f", "status": "ACTIVE", "floating_ip_address": "9.9.9.9", "fixed_ip_address": None}
        return {**known, "router_id": None, "description": "", "tags": [], "port_id": self.port, **details}


def _held(port: str | None) -> Wire:
    if port is None or not port.startswith("p-"):
        return {"device_id": "", "device_owner": ""}
    return {"device_id": port.removeprefix("p-"), "device_owner": "compute:nova"}


@pytest.fixture
def networking() -> Networking:
    return Networking()


@pytest.fixture
def cloud(networking: Networking) -> Iterator[OpenStackCloud]:
    kinds = [Servers, FloatingIps, FloatingIpAssociations]
    with ThreadPoolExecutor(1) as pool:
        yield OpenStackCloud(kinds, lambda _: cast(Service, networking), pool, project="p", changed_servers=networking)


def made(answers: list[Answer]) -> None:
    assert all(isinstance(each, Observation) for each in answers), answers


@pytest.mark.parametrize(
    ("leads", "noted"),
    [
        ({"port_id": "p-a"}, ["a"]),
        ({"port_id": "free"}, []),
        ({"port_id": "none"}, []),
        ({}, []),
    ],
)
def test_a_new_one_is_announced_to_the_server_that_it_leads_to(
    cloud: OpenStackCloud, networking: Networking, leads: dict[str, str], noted: list[str]
) -> None:
    made(cloud.create("floating_ip", [Creation("t", {"floating_network_id": "public", **leads})]))
    assert networking.sent == [("POST", noted)]


def test_leading_one_elsewhere_is_announced_to_both_servers(cloud: OpenStackCloud, networking: Networking) -> None:
    networking.port = "p-a"
    made(cloud.update("floating_ip", [Change("f", {"port_id": "p-b"}, ("port_id",))]))
    assert networking.sent == [("PUT", ["a", "b"])]
    made(cloud.update("floating_ip", [Change("f", {"description": "mine"}, ("description",))]))
    assert networking.sent[1:] == [("PUT", [])]
    networking.port = "p-b"
    cloud.delete("floating_ip", ["f"])
    assert networking.sent[2:] == [("DELETE", ["b"])]


def test_an_association_is_announced_to_the_servers_before_and_after(
    cloud: OpenStackCloud, networking: Networking
) -> None:
    networking.port = "p-a"
    made(cloud.create("floating_ip_association", [Creation("t", {"floatingip_id": "f", "port_id": "p-b"})]))
    cloud.delete("floating_ip_association", ["f:p-b"])
    assert networking.sent == [("PUT", ["a", "b"]), ("PUT", ["b"])]


def test_what_cannot_be_announced_is_not_done(cloud: OpenStackCloud, networking: Networking) -> None:
    networking.port, networking.away = "p-a", True
    answers = cloud.delete("floating_ip", ["f"])
    assert isinstance(answers[0], Transient)
    assert not networking.sent
