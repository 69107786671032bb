"""Stacks with container clusters, of an ordinary member: the service asks Magnum, and Magnum asks the service."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.customers import clusters, magnum
from tests.customers.clusters import LABELS, SETTLES_S, Cluster, Owner, rest
from tests.openstack.lives import Life, adapter
from tests.openstack.running import OpenStack
from tests.waiting import until

KIND = "container_cluster"

TEMPLATE: dict[str, Any] = {
    "heat_template_version": "2021-04-16",
    "parameters": {
        "image": {"type": "string"},
        "key": {"type": "string"},
        "discovery_url": {"type": "string"},
        "nodes": {"type": "number"},
        "masters": {"type": "number", "default": 1},
    },
    "resources": {
        "kind": {
            "type": "OS::Magnum::ClusterTemplate",
            "properties": {
                "coe": "kubernetes",
                "image": {"get_param": "image"},
                "keypair": {"get_param": "key"},
                "external_network": "public",
                "flavor": "m1.medium",
                "master_flavor": "m1.medium",
                "network_driver": "calico",
                "docker_volume_size": 1,
                "docker_storage_driver": "overlay",
                "master_lb_enabled": False,
                "labels": LABELS,
            },
        },
        "cluster": {
            "type": "OS::Magnum::Cluster",
            "properties": {
                "name": "of-a-stack",
                "cluster_template": {"get_resource": "kind"},
                "keypair": {"get_param": "key"},
                "node_count": {"get_param": "nodes"},
                "master_count": {"get_param": "masters"},
                "create_timeout": 90,
                "discovery_url": {"get_param": "discovery_url"},
            },
        },
    },
    "outputs": {
        "addresses": {"value": {"get_attr": ["cluster", "node_addresses"]}},
        "api": {"value": {"get_attr": ["cluster", "api_address"]}},
    },
}
pytestmark = pytest.mark.services("octavia")


@pytest.fixture
def owner(openstack_cloud: OpenStack, user: Connection) -> Iterator[Owner]:
    """Of a project of its own, where Magnum runs."""
    with clusters.owner(openstack_cloud) as made:
        yield made


def test_a_stack_with_a_cluster_lives(owner: Owner, tmp_path: Path) -> None:
    with _stack(owner, nodes=1) as made, adapter(owner.project, tmp_path) as cloud:
        made.settles("CREATE_COMPLETE")
        cluster = made.cluster()
        assert cluster is not None
        outputs, token = made.outputs(), _token(cluster)
        assert len(outputs["addresses"]) == 1
        assert outputs["api"].startswith("https://")
        assert made.differing(cloud, nodes=1) == ()
        _is_trusted_by_the_trust_of_the_stack(owner)
        made.update(nodes=2)
        made.settles("UPDATE_COMPLETE")
        assert len(made.outputs()["addresses"]) == 2
        assert made.differing(cloud, nodes=2) == ()
        made.update(masters=2)
        assert "cannot change cluster property" in made.settles("UPDATE_FAILED")["stack_status_reason"]
        made.update(masters=1)
        made.settles("UPDATE_COMPLETE")
        assert made.cluster() == cluster, "the number of nodes changes in place"
        assert _token(cluster) == token, "an update has lost the token"
    until(lambda: not _trusts(owner), "the trusts to be gone", rest)


def test_a_cluster_that_fails_says_why(owner: Owner, openstack_cloud: OpenStack) -> None:
    trusts = openstack_cloud.fault(
        "http", service="keystone", method="POST", path="/OS-TRUST/trusts$", agent="keystoneclient", status=503
    )
    with trusts, _stack(owner, nodes=1) as made:
        assert "Failed to create trustee" in made.settles("CREATE_FAILED")["stack_status_reason"]


@contextlib.contextmanager
def _stack(owner: Owner, **parameters: object) -> Iterator["Stack"]:
    """One that begins to be made; in the end it is deleted."""
    with magnum.discovery() as discovery_url:
        made = Stack(owner, f"{discovery_url}/cluster")
        made.create(**parameters)
        try:
            yield made
        finally:
            made.delete()


def _token(cluster: Cluster) -> str:
    return str(cluster.seen()["labels"]["homeostat_token"])


@dataclass(slots=True)
class Stack:
    """A stack with a cluster template and a cluster, which its guests report for."""

    owner: Owner
    discovery_url: str
    id: str = ""
    _cluster: Cluster | None = None

    @property
    def _api(self) -> Any:
        return self.owner.user.orchestration

    def create(self, **parameters: object) -> None:
        given = {
            "image": self.owner.image,
            "key": self.owner.key,
            "discovery_url": self.discovery_url,
            **parameters,
        }
        body = {"stack_name": "with-cluster", "template": TEMPLATE, "parameters": given}
        answer = self._api.post("/stacks", json=body)
        assert answer.status_code == 201, answer.text
        self.id = answer.json()["stack"]["id"]

    def update(self, **parameters: object) -> None:
        answer = self._api.patch(f"/stacks/with-cluster/{self.id}", json={"parameters": parameters})
        assert answer.status_code == 202, answer.text

    def seen(self) -> dict[str, Any]:
        return dict(self._api.get(f"/stacks/{self.id}").json()["stack"])

    def settles(self, status: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            if (cluster := self.cluster()) is not None:
                cluster.report()
            found = self.seen()
            return None if found["stack_status"].endswith("_IN_PROGRESS") else found

        found = until(look, f"the stack to be {status}", rest, SETTLES_S)
        assert found["stack_status"] == status, found["stack_status_reason"]
        return found

    def cluster(self) -> Cluster | None:
        """The one that Magnum has made, once it is known; always the same object for the same one."""
        answer = self._api.get(f"/stacks/with-cluster/{self.id}/resources/cluster")
        handle = answer.json()["resource"]["physical_resource_id"]
        if handle and (self._cluster is None or self._cluster.id != handle):
            self._cluster = Cluster(self.owner.user, handle)
        return self._cluster

    def differing(self, cloud: OpenStackCloud, nodes: int) -> tuple[str, ...]:
        """Names of properties that the service reports otherwise than the template sets them."""
        assert self._cluster is not None
        (seen,) = cloud.observe(KIND, [self._cluster.id])
        given = {
            "name": "of-a-stack",
            "cluster_template": self._cluster.seen()["cluster_template_id"],
            "keypair": self.owner.key,
            "node_count": nodes,
            "master_count": 1,
            "create_timeout": 90,
            "discovery_url": self.discovery_url,
        }
        return Life("OS::Magnum::Cluster", given).differing(seen, "of-a-stack")

    def outputs(self) -> dict[str, Any]:
        return {each["output_key"]: each["output_value"] for each in self.seen()["outputs"]}

    def delete(self) -> None:
        """Returns when it is gone, and with it the cluster."""
        self._api.delete(f"/stacks/with-cluster/{self.id}")

        def is_gone() -> bool:
            answer = self._api.get(f"/stacks/{self.id}")
            found = answer.json().get("stack", {}).get("stack_status", "DELETE_COMPLETE")
            assert found != "DELETE_FAILED", answer.text
            return bool(found == "DELETE_COMPLETE")

        until(is_gone, "the stack to be gone", rest, SETTLES_S)


def _is_trusted_by_the_trust_of_the_stack(owner: Owner) -> None:
    """Magnum has a trust that was made by that of the stack, and can pass it on to nobody."""
    (given,) = [each for each in _trusts(owner) if each.get("redelegated_trust_id")]
    assert given["impersonation"]
    assert not given["redelegation_count"]
    assert given["redelegated_trust_id"] in {each["id"] for each in _trusts(owner)} - {given["id"]}


def _trusts(owner: Owner) -> list[dict[str, Any]]:
    """Whom the user trusts."""
    identity: Any = owner.user.identity
    answer = identity.get("/OS-TRUST/trusts", params={"trustor_user_id": owner.user.current_user_id})
    found = [identity.get(f"/OS-TRUST/trusts/{each['id']}").json()["trust"] for each in answer.json()["trusts"]]
    return [dict(each) for each in found]
