"""Balanced clusters while workers die after any transaction: nothing is lost, doubled or left over."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from homeostat.clouds.port import Answer
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.clustering.decisions.sizes import Direction
from tests.component.node_clusters import Cluster, server_spec

LEASE_S = 6.0
STRIDE = 7
"""In each life every seventh transaction is a worker's last; seven lives go through all of them."""
BALANCED: dict[str, Any] = {
    "pool": {"subnet": "back"},
    "vip": {"subnet": "front"},
    "health_monitor": {"type": "TCP"},
}


class Died(BaseException):
    """kill -9."""


class Careful(SimulatedCloud):
    """Notes servers that are deleted while they are in a pool."""

    def __init__(self, now: Any) -> None:
        super().__init__(now, CloudBehaviour(build_s=2.0, delete_s=1.0))
        self.cut_off: list[str] = []

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        if kind == "server":
            balanced = {each["server"] for each in self.things("pool_member").values()}
            self.cut_off += [handle for handle in handles if handle in balanced]
        return super().delete(kind, handles)


class Mortal(Cluster):
    """Workers die right after every transaction whose number is `offset`, modulo `STRIDE`."""

    def __init__(self, offset: int) -> None:
        self.offset, self.written, self.deaths, self.mortal = offset, 0, 0, False
        super().__init__(2, cloud=lambda clock: Careful(clock.now))
        write = self.db.write

        @contextmanager
        def and_die() -> Iterator[Any]:
            with write() as tx:
                yield tx
            if self.mortal:
                self.written += 1
                if self.written % STRIDE == self.offset:
                    raise Died

        self.db.write = and_die  # type: ignore[method-assign]

    def settle(self) -> None:
        """Until the cluster is at rest, with a new worker after each death."""
        self.mortal = True
        for _ in range(500):
            try:
                self.work()
                self.rest(7200)
                break
            except Died:
                self.deaths += 1
                self.clock.time += LEASE_S
        self.mortal = False
        super().settle()


def balanced_as_it_should_be(service: Mortal, count: int) -> None:
    things = service.cloud.things
    assert [len(things(kind)) for kind in ("load_balancer", "listener", "pool", "health_monitor")] == [1, 1, 1, 1]
    assert len(service.servers()) == len(things("pool_member")) == count
    assert service.balanced() == sorted(service.nodes())
    assert service.ended()[0] == "SUCCEEDED"
    assert isinstance(service.cloud, Careful)
    assert service.cloud.cut_off == []


@pytest.mark.heavy
@pytest.mark.parametrize("offset", range(STRIDE))
def test_nothing_is_lost_or_made_twice_whichever_transaction_is_the_last_of_a_worker(offset: int) -> None:
    service = Mortal(offset)
    policy = service.attach("loadbalance", "1.3", **BALANCED)
    balanced_as_it_should_be(service, 2)
    steps: list[tuple[Callable[[], None], int]] = [
        (lambda: service.scale(Direction.OUT, 2), 4),
        (lambda: service.take(server_spec(key_name="other")), 4),
        (lambda: service.scale(Direction.IN, 3), 1),
    ]
    for step, count in steps:
        step()
        balanced_as_it_should_be(service, count)
    service.detach(policy)
    service.live(900)
    assert sorted(service.cloud.things()) == service.servers()
    assert len(service.servers()) == 1
    assert service.deaths > 5
