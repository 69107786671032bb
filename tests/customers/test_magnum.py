"""A real Magnum makes, changes and removes clusters of Kubernetes by its own templates, as they come."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from openstack.connection import Connection

from tests.customers import clusters
from tests.customers.clusters import Cluster, Owner
from tests.openstack.running import OpenStack

REPEATS = int(os.environ.get("HOMEOSTAT_REPEATS", "1"))
"""How often each life of a cluster is gone through."""
pytestmark = pytest.mark.services("octavia")


@pytest.mark.parametrize("repeat", range(REPEATS))
def test_clusters_live(openstack_cloud: OpenStack, user: Connection, repeat: int) -> None:
    """With Octavia and without, side by side, each in a project of its own: most of the time they wait."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as threads:
        owners = {balanced: stack.enter_context(clusters.owner(openstack_cloud)) for balanced in (False, True)}
        lives = [threads.submit(_lives, owner, balanced, repeat) for balanced, owner in owners.items()]
        failures = [failure for each in lives if (failure := each.exception()) is not None]
        if failures:
            raise BaseExceptionGroup("lives that failed", failures)


def _lives(owner: Owner, balanced: bool, repeat: int) -> None:
    user, before = owner.user, _inventory(owner.user)
    name = f"k8s-{'balanced' if balanced else 'plain'}-{repeat}"
    with (
        clusters.template(user, owner.image, owner.key, master_lb_enabled=balanced) as template,
        clusters.cluster(user, template, name, nodes=2) as made,
    ):
        made.settles("CREATE")
        nodes, masters = made.servers("node"), made.servers("master")
        assert len(nodes) == 2
        assert len(masters) == 1
        assert len(list(user.load_balancer.load_balancers())) == (2 if balanced else 0)
        _grows(made, nodes)
        _loses_who_is_named(made)
        _rotates_certificates(made)
        assert made.servers("master") == masters
        made.delete()
    assert _inventory(user) == before


def _grows(made: Cluster, nodes: dict[str, str]) -> None:
    made.resize(3)
    made.settles("UPDATE")
    assert made.servers("node").items() > nodes.items()
    assert len(made.servers("node")) == 3


def _loses_who_is_named(made: Cluster) -> None:
    before = made.servers("node")
    first = min(before, key=lambda each: before[each])
    made.resize(2, first)
    made.settles("UPDATE")
    assert made.servers("node").keys() == before.keys() - {first}


def _rotates_certificates(made: Cluster) -> None:
    nodes, certificate = made.servers("node"), made.certificate()
    made.rotate_certificates()
    made.settles("UPDATE")
    assert made.certificate() != certificate
    assert made.servers("node") == nodes


def _inventory(user: Connection) -> dict[str, int]:
    """How many there are of what clusters consist of."""
    network, balancing = user.network, user.load_balancer
    found = {
        "servers": user.compute.servers(),
        "server groups": user.compute.server_groups(),
        "volumes": user.block_storage.volumes(),
        "networks": network.networks(),
        "ports": network.ports(),
        "routers": network.routers(),
        "security groups": network.security_groups(),
        "floating addresses": network.ips(),
        "load balancers": balancing.load_balancers(),
    }
    return {what: len(list(each)) for what, each in found.items()}
