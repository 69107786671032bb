"""The deletion of a load balancer together with its parts: what is looked at before, and what is sent."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.load_balancing import COLLECTIONS
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Answer, Operation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import DELETE_WITH_PARTS

PARTS = {
    "listener": ["l"],
    "pool": ["p", "q"],
    "pool_member": ["p/m", "p/n"],
    "health_monitor": ["h"],
    "l7_policy": ["y"],
    "l7_rule": ["y/r"],
}


class Octavia:
    """A service with one load balancer, and another that is not concerned. It answers as Octavia does."""

    def __init__(self) -> None:
        mine, other = [{"id": "b"}], [{"id": "c"}]
        self.balancer: dict[str, Any] | None = {
            "id": "b",
            "provisioning_status": "ACTIVE",
            "listeners": [{"id": "l"}],
            "pools": [{"id": "p"}, {"id": "q"}],
        }
        self.lists: dict[str, list[dict[str, Any]]] = {
            "listeners": [
                {"id": "l", "loadbalancers": mine, "l7policies": [{"id": "y"}]},
                {"id": "k", "loadbalancers": other, "l7policies": [{"id": "z"}]},
            ],
            "pools": [
                {"id": "p", "loadbalancers": mine, "members": [{"id": "m"}, {"id": "n"}], "healthmonitor_id": "h"},
                {"id": "q", "loadbalancers": mine, "members": [], "healthmonitor_id": None},
            ],
            "l7policies": [{"id": "y", "rules": [{"id": "r"}]}, {"id": "z", "rules": [{"id": "s"}]}],
        }
        self.sent: list[tuple[str, str, Any]] = []

    def list(self, path: str, key: str, of: str = "", /, **params: Any) -> Iterator[dict[str, Any]]:
        assert path == f"/lbaas/{key}"
        yield from self.lists[key]

    def get(self, path: str) -> dict[str, Any]:
        if self.balancer is None or path != "/lbaas/loadbalancers/b":
            raise Missing(path)
        return {"loadbalancer": self.balancer}

    def request(self, method: str, path: str, of: str = "", params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.sent.append((method, path, params))
        assert self.balancer is not None
        self.balancer["provisioning_status"] = "PENDING_DELETE"
        return {}


@pytest.fixture
def octavia() -> Octavia:
    return Octavia()


@pytest.fixture
def cloud(octavia: Octavia) -> Iterator[OpenStackCloud]:
    with ThreadPoolExecutor(2) as pool:
        yield OpenStackCloud(COLLECTIONS, lambda _: cast(Service, octavia), pool)


def cascade(cloud: OpenStackCloud, **without: Any) -> Answer:
    operation = Operation("b", DELETE_WITH_PARTS, {"parts": {**PARTS, **without}})
    (answer,) = cloud.operate("load_balancer", [operation])
    return answer


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR"])
def test_one_request_deletes_all(cloud: OpenStackCloud, octavia: Octavia, status: str) -> None:
    assert octavia.balancer is not None
    octavia.balancer["provisioning_status"] = status
    answer = cascade(cloud)
    assert isinstance(answer, Observation)
    assert answer.properties["status"] == "deleting"
    assert octavia.sent == [("DELETE", "/lbaas/loadbalancers/b", {"cascade": "true"})]


@pytest.mark.parametrize("kind", PARTS)
def test_nothing_is_sent_if_it_has_a_part_that_is_not_listed(
    cloud: OpenStackCloud, octavia: Octavia, kind: str
) -> None:
    answer = cascade(cloud, **{kind: PARTS[kind][1:]})
    assert isinstance(answer, Terminal)
    assert str(answer) == (
        f"load balancer b has parts that are not to be deleted with it: "
        f"{kind.replace('_', ' ')} {PARTS[kind][0].rpartition('/')[2]}"
    )
    assert octavia.sent == []


def test_of_many_parts_that_are_not_listed_some_are_named(cloud: OpenStackCloud, octavia: Octavia) -> None:
    octavia.lists["pools"][1]["members"] = [{"id": f"x{number}"} for number in range(8)]
    assert str(cascade(cloud)).endswith("pool member x0, pool member x1, pool member x2, pool member x3, "
                                        "pool member x4 and 3 more")  # fmt: skip


def test_a_list_that_lacks_a_part_is_not_trusted(cloud: OpenStackCloud, octavia: Octavia) -> None:
    del octavia.lists["pools"][1]
    answer = cascade(cloud)
    assert isinstance(answer, Transient)
    assert "pools that are not listed: q" in str(answer)
    assert octavia.sent == []


@pytest.mark.parametrize("status", ["PENDING_UPDATE", "PENDING_DELETE"])
def test_it_waits_while_the_balancer_is_being_changed(cloud: OpenStackCloud, octavia: Octavia, status: str) -> None:
    assert octavia.balancer is not None
    octavia.balancer["provisioning_status"] = status
    assert isinstance(cascade(cloud), Transient)
    assert octavia.sent == []


def test_one_that_is_gone_is_absent(cloud: OpenStackCloud, octavia: Octavia) -> None:
    octavia.balancer = None
    answer = cascade(cloud)
    assert isinstance(answer, Observation)
    assert (answer.presence, answer.not_found) == (Presence.ABSENT, True)
