"""The ring with groups behind load balancers whose servers are drained before they are deleted (ADR 0069).

`HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
from typing import Any, NamedTuple

import pytest

from homeostat.model.status import Action, Status
from tests.simulation.caretaking import Caretakers
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import GROUP, DesiredStack, Resources
from tests.simulation.test_balancing import GROUP as BALANCED
from tests.simulation.test_balancing import Balancer
from tests.simulation.test_budgets import Budgeter, budgeted
from tests.simulation.test_scaling import SCALING_GROUP
from tests.simulation.users import Users

pytestmark = pytest.mark.heavy

DRAIN_S = 20
ROUNDS, STEPS = 5, 250
"""How often each stack gets other groups in the end, and the steps before each time."""
GROUPS = (BALANCED, GROUP, SCALING_GROUP)
CLOCKS_S = 2.0
"""How far the agreed time may be from the right one."""
SERVERS = """SELECT r.key, r.stack_id, r.handle, r.action, r.status, r.drains_until, r.marks, o.presence, r.replaced_by
    FROM resource r LEFT JOIN resource_observed o ON o.key = r.key
    WHERE r.type IN ('OS::Nova::Server', 'AWS::EC2::Instance')"""


class Drainer(Budgeter):
    """All groups have the same drain time, and one is behind a load balancer."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        desired.resources = _drained(desired.resources) | self._balanced()
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        kept = {name: each for name, each in desired.resources.items() if name.startswith("b")}
        others = {name: each for name, each in desired.resources.items() if name not in kept}
        if kept and self._rng.random() < 0.5:
            varied = Balancer(self._rng, nested=False).varied(kept)
            return copy.deepcopy(DesiredStack({**others, **kept, **_drained(varied)}, desired.nested, desired.held))
        changed = super().mutate(DesiredStack(others, desired.nested, desired.held))
        changed.resources = _drained(changed.resources) | copy.deepcopy(kept)
        return changed

    def varied(self, desired: DesiredStack) -> Resources:
        """The load balancer of a stack and the group behind it, which changes; nothing in some cases."""
        kept = {name: each for name, each in desired.resources.items() if name.startswith("b")}
        if not kept or self._rng.random() < 0.2:
            return {}
        return copy.deepcopy({**kept, **_drained(Balancer(self._rng, nested=False).varied(kept))})

    def _balanced(self) -> Resources:
        return _drained(Balancer(self._rng, nested=False).balanced())

    def _limited(self) -> dict[str, Any]:
        return dict(_drained({"": super()._limited()})[""])

    def _scaled(self) -> dict[str, Any]:
        return dict(_drained({"": super()._scaled()})[""])


def _drained(resources: Resources) -> Resources:
    """Give the groups among resources a drain time."""
    found = copy.deepcopy(resources)
    for each in found.values():
        if each["type"] in GROUPS:
            each["update_policy"] = {**each.get("update_policy", {}), "drain_time": DRAIN_S}
    return found


class Server(NamedTuple):
    """A row of a server as one commit left it."""

    key: str
    stack_id: str
    handle: str
    action: str
    status: str
    drains_until: float | None
    marks: Any
    presence: str | None
    replaced_by: str | None

    @property
    def is_well(self) -> bool:
        kept = self.handle != "" and self.action not in (Action.INIT, Action.DELETE)
        return kept and self.status == Status.COMPLETE and self.presence != "absent" and self.marks in (None, "null")


class Drains(Part):
    """Users who change groups with drain times; it counts the servers that were deleted after their drain, and those of
    them that had been in a pool."""

    def __init__(self) -> None:
        self._placed: set[str] = set()
        self._servers: dict[str, Server] = {}

    def begin(self) -> None:
        self._users = self.world.part(Users)
        self._users.gardener = self._drainer = Drainer(self.rng, nested=False)

    def disturb(self) -> None:
        """After the trouble of all rings users change the groups of stacks which are not held back by anything."""
        for _ in range(ROUNDS):
            self.world.replace_dead()
            self._users.create()
            for _ in range(STEPS):
                self.world.part(Disturbances).go_on()
            self.world.replace_dead()
            self.world.part(Caretakers).free()
            for stack in self.world.all_stacks():
                if stack.deleted_at is None and stack.id in self._users.desired:
                    self._vary(stack.id)

    def _vary(self, stack_id: str) -> None:
        """A user wants nothing but groups, of another size or with other members; often in the same pool as before."""
        fresh = self._drainer.grow()
        wanted = {name: each for name, each in fresh.resources.items() if name[0] in "gb"}
        desired = DesiredStack({**wanted, **self._drainer.varied(self._users.desired[stack_id])}, {})
        self._users.want(stack_id, desired, f"vary {stack_id[:6]} {desired}")

    def committed(self) -> None:
        now = {row[0]: Server(*row) for row in self.db.raw.execute(SERVERS).fetchall()}
        for key, before in self._servers.items():
            after = now.get(key)
            if before.is_well and (after is None or (after.action == Action.DELETE and after.presence != "absent")):
                successor = now.get((after or before).replaced_by or "")
                broken = (self.world.things().get(before.handle) or {}).get("status") != "active"
                if not broken and (successor is None or "healing" not in (successor.marks or "")):
                    self._judge_deletion(before)
        self._servers = now
        draining = {each.handle for each in now.values() if each.drains_until is not None and each.is_well}
        for thing in self.world.things().values() if draining or self.world.watcher.commits % 10 == 0 else ():
            self._placed.add(thing.get("server", ""))
            if thing.get("server") in draining and "pool" in thing:
                self.world.watcher.wrong.append(f"{thing['server']} is drained, and in a load balancer: {thing}")

    def _judge_deletion(self, server: Server) -> None:
        """A server of a group that was well is deleted after its drain, or since its group is."""
        if not self._is_drained(server.stack_id):
            return
        until = server.drains_until
        if until is None or until > self.clock.time + CLOCKS_S:
            self.world.watcher.wrong.append(f"it is deleted before its drain was over, at {self.clock.time}: {server}")
        self.world.happened["drained"] += 1
        self.world.happened["in pools"] += server.handle in self._placed

    def _is_drained(self, stack_id: str) -> bool:
        """Whether a stack is in a group which is not deleted itself."""
        rows = {each.key: each for each in self.world.rows()}
        around = {each.id: each for each in self.world.all_stacks()}
        stack = around[stack_id]
        while stack.parent_key is not None:
            owner = rows.get(stack.parent_key)
            if owner is None:
                return False
            if owner.type in GROUPS:
                root = around[around[owner.stack_id].root_id]
                return owner.action != Action.DELETE and root.action != Action.DELETE and root.spares is None
            stack = around[owner.stack_id]
        return False


RING = Ring("draining", lambda seed: budgeted(seed, Drains(), steps=500))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_no_server_is_deleted_before_it_is_drained(seed: int) -> None:
    RING.played(seed)


def test_servers_are_drained_in_these_worlds() -> None:
    RING.play_until(range(66, 84), {"drained": 11, "in pools": 1})
