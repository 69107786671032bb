"""What is sent for members of pools: their addresses, where only their server is named; and the network of a VIP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from homeostat.clouds.openstack import load_balancing, pool_members
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation

SERVER = {"front": [{"addr": "10.0.0.5"}], "back": [{"addr": "fd00::5"}, {"addr": "10.9.0.5"}]}
SUBNETS = {"front-sub": "10.0.0.0/24", "back-sub": "10.9.0.0/16", "six": "fd00::/64", "other": "192.0.2.0/24"}


class Services:
    """Nova, Neutron and Octavia, as far as a pool with a server needs them."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        _, *below = path.split("/")
        match below:
            case ["servers", _]:
                return {"server": {"addresses": SERVER}}
            case ["subnets", name]:
                return {"subnet": {"cidr": SUBNETS[name]}}
            case ["lbaas", "pools", _]:
                return {"pool": {"id": "p", "loadbalancers": [{"id": "b"}]}}
        return {"loadbalancer": {"id": "b", "provisioning_status": "ACTIVE"}}

    def request(self, method: str, path: str, body: Any = None, of: str = "", **more: Any) -> dict[str, Any]:
        ((key, sent),) = body.items()
        self.sent.append(sent)
        return {key: {**sent, "id": "new", "provisioning_status": "ACTIVE"}}

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[dict[str, Any]]:
        if key == "pools":
            yield {"id": "p", "loadbalancers": [{"id": "b"}], "members": []}


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def cloud(services: Services) -> Iterator[OpenStackCloud]:
    collections = (*load_balancing.COLLECTIONS, *pool_members.COLLECTIONS)
    with ThreadPoolExecutor(2) as pool:
        yield OpenStackCloud(collections, lambda _: cast(Service, services), pool)


@pytest.mark.parametrize(
    ("subnet", "address"),
    [(None, "10.0.0.5"), ("front-sub", "10.0.0.5"), ("back-sub", "10.9.0.5"), ("six", "fd00::5")],
)
def test_a_server_is_reached_on_the_subnet(
    cloud: OpenStackCloud, services: Services, subnet: str | None, address: str
) -> None:
    spec = {"pool": "p", "server": "s", "protocol_port": 80, "subnet": subnet}
    (made,) = cloud.create("pool_member", [Creation("t", spec)])
    assert isinstance(made, Observation), made
    (sent,) = services.sent
    assert (sent["address"], sent.get("subnet_id"), sent["protocol_port"]) == (address, subnet, 80)
    assert "server" not in sent


def test_a_server_that_is_not_on_the_subnet_is_refused(cloud: OpenStackCloud, services: Services) -> None:
    spec = {"pool": "p", "server": "s", "protocol_port": 80, "subnet": "other"}
    (made,) = cloud.create("pool_member", [Creation("t", spec)])
    assert isinstance(made, Terminal)
    assert "server s has no address on the subnet other" in str(made)
    assert services.sent == []


def test_an_address_on_any_subnet_of_a_network(cloud: OpenStackCloud, services: Services) -> None:
    (made,) = cloud.create("load_balancer", [Creation("t", {"name": "lb", "vip_network": "net"})])
    assert isinstance(made, Observation), made
    (sent,) = services.sent
    assert (sent["vip_network_id"], sent.get("vip_subnet_id")) == ("net", None)
