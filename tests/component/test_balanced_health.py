"""LB_STATUS_POLLING: what the health monitor of a load balancer says of nodes is found, and recovers them."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Transient
from homeostat.model.node_health import Finding, NodeHealth
from homeostat.model.observed import Observation
from homeostat.store.shards import health
from tests.component.node_clusters import Cluster
from tests.component.test_balanced_clusters import balanced, world

BALANCER = {"type": "LB_STATUS_POLLING"}
STATUS = {"type": "NODE_STATUS_POLLING"}


def checked(*modes: dict[str, Any], count: int = 3, **detection: Any) -> Cluster:
    """A balanced cluster with a health policy."""
    service = world(count)
    balanced(service)
    wanted = {"interval": 60, "node_update_timeout": 0, "detection_modes": list(modes or [BALANCER]), **detection}
    service.attach("health", "1.2", detection=wanted, recovery={"actions": [{"name": "RECREATE"}]})
    said(service, 1, "online")
    service.live(65.0)
    return service


def said(service: Cluster, number: int, status: str) -> None:
    """What the load balancer says of a node from now on."""
    service.cloud.change(place(service, number), operating_status=status)


def place(service: Cluster, number: int) -> str:
    return str(service.nodes()[number]["data"]["lb_member"])


def server_of(service: Cluster, number: int) -> str:
    return str(service.nodes()[number]["physical_id"])


def found(service: Cluster, number: int) -> NodeHealth:
    rows = service.rows(service.child().id)
    (row,) = [row for row in rows if row.name == str(number - 1) and row.replaced_by is None]
    with service.db.read() as tx:
        return health.of_shard(tx, row.stack_id, row.shard)[row.key]


@pytest.mark.shows("HP6", "HS28")
def test_a_node_that_fails_the_health_monitor_of_its_pool_is_made_again() -> None:
    service = checked()
    before = [server_of(service, number) for number in (1, 2, 3)]
    said(service, 2, "error")
    service.live(90.0)
    after = [server_of(service, number) for number in (1, 2, 3)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert service.balanced() == [1, 2, 3]


@pytest.mark.parametrize("status", ["no_monitor", "offline", "draining"])
def test_what_the_load_balancer_does_not_check_says_nothing(status: str) -> None:
    service = checked()
    before = server_of(service, 2)
    said(service, 2, status)
    service.live(130.0)
    assert server_of(service, 2) == before
    assert found(service, 2).finding is Finding.UNKNOWN


def test_a_load_balancer_that_cannot_be_asked_says_nothing() -> None:
    service = checked()
    before = server_of(service, 2)
    look = SimulatedCloud.observe

    def blind(cloud: SimulatedCloud, kind: str, handles: Sequence[str]) -> list[Observation]:
        if kind == "pool_member":
            raise Transient("503 Service Unavailable")
        return look(cloud, kind, handles)

    with patch.object(SimulatedCloud, "observe", blind):
        said(service, 2, "error")
        service.live(130.0)
        assert server_of(service, 2) == before
        assert found(service, 2).finding is Finding.UNKNOWN
        assert "503" in found(service, 2).reason
    service.live(130.0)
    assert server_of(service, 2) != before


def test_both_have_to_fail_where_all_are_asked_for() -> None:
    service = checked(BALANCER, STATUS, recovery_conditional="ALL_FAILED")
    before = server_of(service, 2)
    said(service, 2, "error")
    service.live(130.0)
    assert server_of(service, 2) == before
    service.cloud.change(before, status="error")
    service.live(130.0)
    assert server_of(service, 2) != before
