"""Workers are killed in turn while health policies recover members. `HOMEOSTAT_KILLS=200` kills more of them."""

import os
import random
import time
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clock import Entropy
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.shards import health
from tests.real.world import PROJECT, RealWorld
from tests.waiting import until

KILLS = int(os.environ.get("HOMEOSTAT_KILLS", "24"))
MEMBERS = 60
ENDS_S = 600.0
TIMEOUT_S = 3600.0
pytestmark = [pytest.mark.real, pytest.mark.postgresql, pytest.mark.timeout(900 + 10 * KILLS)]
SPEC = {
    "type": "senlin.policy.health",
    "version": "1.2",
    "properties": {
        "detection": {
            "interval": 1,
            "node_update_timeout": 0,
            "detection_modes": [{"type": "NODE_STATUS_POLLING"}],
        },
        "recovery": {"actions": [{"name": "RECREATE"}], "fencing": ["COMPUTE"]},
    },
}


class Group:
    """Servers for which a health policy holds, and which fail."""

    def __init__(self, world: RealWorld) -> None:
        self._world = world
        self.failed: list[str] = []
        member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f", "name": "m%index%"}}
        group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": MEMBERS, "resource_def": member}}
        template = {"heat_template_version": "2018-08-31", "resources": {"nodes": group}}
        self._stack_id = StackService(world.db, Entropy(), Quotas()).create(PROJECT, None, "g", StackRequest(template))
        world.wait_for(lambda: world.resting() and len(self._standing()) == MEMBERS, "the members")
        StackActions(world.db, TIMEOUT_S).switch(
            self._stack_id, ConvergenceSettings(exceptions={"nodes": {"converge": False}})
        )
        values = {"id": "p", "source": "p", "stack_id": self._stack_id, "name": "nodes", "members": True}
        with world.db.write() as tx:
            health.attach(tx, {**values, "spec": SPEC, "enabled": True}, tx.now())
        world.wait_for(self.is_healthy, "healthy members")

    def _standing(self) -> list[Any]:
        return [
            row
            for row in self._world.rows()
            if row.stack_id != self._stack_id and row.replaced_by is None and row.action != "DELETE"
        ]

    def is_healthy(self) -> bool:
        return len(self._well()) == MEMBERS

    def _well(self) -> list[str]:
        """Handles of members that are found healthy, with nothing going on."""
        calm = {row.key: row.handle for row in self._standing() if row.status == "COMPLETE" and row.marks is None}
        table = schema.node_health
        with self._world.db.read() as tx:
            found = tx.execute(select(table.c.key).where(table.c.finding == "healthy")).scalars().all()
        return sorted(calm[key] for key in found if key in calm)

    def fail(self, rng: random.Random) -> None:
        """One that is well breaks, which no other failure has met."""
        fresh = [handle for handle in self._well() if handle not in self.failed]
        if fresh:
            self.failed.append(rng.choice(fresh))
            self._world.cloud.change(self.failed[-1], status="error", fault="disk")

    def progress(self) -> int:
        """How often passes over the shards have stored something."""
        return sum(each.stored for each in self._world.shards())

    def recoveries(self) -> list[tuple[str, str, bool]]:
        table = schema.recovery
        with self._world.db.read() as tx:
            return [(row.name, row.what, row.begins) for row in tx.execute(select(table).order_by(table.c.id))]


def are_active(world: RealWorld) -> bool:
    """Whether there are as many servers as members, all of them well: what was found of them may be older."""
    return [each["status"] for each in world.cloud.things("server").values()] == ["active"] * MEMBERS


@pytest.mark.shows("CV5", "HP11")
def test_no_recovery_is_lost_and_none_is_done_twice(world: RealWorld) -> None:
    rng = random.Random(5)
    for _ in range(3):
        world.start_worker()
    group = Group(world)
    for _ in range(KILLS):
        before = group.progress()
        group.fail(rng)
        # A shard whose owners all die before they have stored anything is set aside for a while.
        world.wait_for(lambda: group.progress() > before, "something to be stored")  # noqa: B023
        # In the middle of something: of the look, the fence, the deletion or the creation.
        time.sleep(rng.choice((0.0, 0.1, 0.3, 0.6)))
        world.kill(world.workers[0])
        world.start_worker()
    # One that has failed several times in a minute is made again after pauses that grow to a minute.
    until(lambda: are_active(world) and group.is_healthy() and world.resting(), "healthy members", within_s=ENDS_S)
    begun = group.recoveries()
    assert sum(begins for *_, begins in begun) == len(group.failed), begun
    assert sum(what == "RECREATE" for _, what, _ in begun) == len(group.failed), begun
    assert not world.cloud.doubled, f"created twice: {world.cloud.doubled}"
    assert not world.cloud.things("server").keys() & set(group.failed), "what has failed was replaced"
    assert are_active(world)
    print(f"{KILLS} kills, {len(group.failed)} recoveries")
