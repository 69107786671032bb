"""Container clusters as things of templates: a real Magnum makes them, by stacks of the service in the catalogue."""

import uuid
from pathlib import Path

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from tests.customers.clusters import Cluster
from tests.openstack.lives import Life, accepted, adapter, make, remove, rest
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.waiting import until

SETTLES_S = 900.0
KIND = "container_cluster"
pytestmark = pytest.mark.services("octavia")


def test_a_cluster_lives_and_dies(
    openstack_cloud: OpenStack, user: Connection, image: str, key: str, tmp_path: Path
) -> None:
    project = Project(openstack_cloud, str(user.current_project_id), "demo", str(user.current_user_id), "demo")
    with adapter(project, tmp_path, "demo") as cloud:
        template = make(cloud, "OS::Magnum::ClusterTemplate", _template(image, key), "kind")
        life = Life("OS::Magnum::Cluster", {"cluster_template": template, "node_count": 1})
        token = f"test-{uuid.uuid4()}"
        # Its answer comes before it is there: then it is found by its token.
        cloud.create(KIND, [Creation(token, life.spec("typed"))])
        handle = until(lambda: cloud.find(KIND, [token])[0].handle, "the cluster to be there", rest)
        made = Cluster(user, handle)
        seen = _ready(cloud, made)
        assert life.differing(seen, "typed") == ()
        assert len(seen.properties["node_addresses"]) == 1
        more = {"node_count": 2}
        accepted(lambda: cloud.update(KIND, [Change(handle, life.spec("typed", more), ("node_count",))]))
        seen = _ready(cloud, made)
        assert life.differing(seen, "typed", more) == ()
        assert len(seen.properties["node_addresses"]) == 2
        assert [each.handle for each in cloud.find(KIND, [token])] == [handle], "an update has lost the token"
        accepted(lambda: cloud.delete(KIND, [handle]))
        until(lambda: _is_gone(cloud, handle), "the cluster to go", rest, SETTLES_S)
        remove(cloud, "cluster_template", template)


def _is_gone(cloud: OpenStackCloud, handle: str) -> bool:
    try:
        return not cloud.observe(KIND, [handle])[0].present
    except Transient:  # Magnum cannot show it when its groups of nodes are gone already
        return False


def _template(image: str, key: str) -> dict[str, object]:
    return {
        "coe": "kubernetes",
        "image": image,
        "keypair": key,
        "external_network": "public",
        "flavor": "m1.medium",
        "master_flavor": "m1.medium",
        "network_driver": "calico",
        "docker_volume_size": 1,
        "docker_storage_driver": "overlay",
        "master_lb_enabled": False,
        "labels": {"etcd_volume_size": "1"},
    }


def _ready(cloud: OpenStackCloud, made: Cluster) -> Observation:
    """What it looks like when it has settled well; its guests report meanwhile."""
    words = KINDS[KIND].statuses

    def look() -> Observation | None:
        made.report()
        seen = cloud.observe(KIND, [made.id])[0]
        assert seen.present, seen.reason
        assert seen.properties["status"] not in words.broken, seen.properties
        return seen if seen.properties["status"] in words.ready else None

    return until(look, "the cluster to be ready", rest, SETTLES_S)
