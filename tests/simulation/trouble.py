"""Worlds of every sort of trouble: users who change their minds, crashes, faults, wrong clocks, outages."""

import random
from typing import Any

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.store.shards import brakes
from tests.simulation.caretaking import Caretakers
from tests.simulation.disturbances import Disturbances
from tests.simulation.doubting import Doubters
from tests.simulation.governing import Governors
from tests.simulation.hooks import Wardens
from tests.simulation.keeping import Keepers
from tests.simulation.losses import Losses
from tests.simulation.parts import Occasional, Part
from tests.simulation.transfers import Transfers
from tests.simulation.unkept_values import UnkeptValues
from tests.simulation.users import Users
from tests.simulation.world import World


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(
        unreachable=rng.choice((0.0, 0.05)),
        refused=rng.choice((0.0, 0.1)),
        lost=rng.choice((0.0, 0.1)),
        error=rng.choice((0.0, 0.1)),
        snapshot=rng.choice((0.0, 0.1)),
        retry_after_s=rng.choice((None, 1.0, 20.0)),
    )
    return CloudBehaviour(
        build_s=rng.choice((0.0, 3.0)),
        delete_s=rng.choice((0.0, 2.0)),
        snapshot_s=rng.choice((0.0, 3.0)),
        listing_lag_s=rng.choice((0.0, 2.0)),
        idempotent=rng.random() < 0.5,
        quota=rng.choice((None, None, None, 6)),
        faults=faults,
    )


class Trouble(Part):
    """Events beside the steps of the processes, for a while.

    steps — before the calm; rate — chance at each step that something happens beside it; revival — chance that the dead
    are followed, as by the supervisor of a service. Takes: beats — whether workers renew their leases.
    """

    steps = 900
    rate = 0.12
    revival = 0.02

    def __init__(self, *, beats: bool) -> None:
        self._beats = beats

    def disturb(self) -> None:
        world, rng, disturbances = self.world, self.rng, self.world.part(Disturbances)
        world.part(Users).create()
        for _ in range(self.steps):
            if rng.random() < self.rate:
                world.act()
            world.end_outages()
            if rng.random() < self.revival:
                world.replace_dead()
            if rng.random() < 0.9 and not world.step():
                world.pass_time()
            if self._beats and rng.random() < 0.2:
                disturbances.beat()
            self.clock.time += rng.choice((0.0, 0.0, 0.01, 0.1, 1.0))

    def calm(self) -> None:
        self.world.end_all()
        for cloud in self.world.clouds.values():
            for handle in cloud.things():
                cloud.change(handle, locked=False)


def troubled(
    seed: int,
    *more: Part,
    users: type[Users] = Users,
    world: type[World] = World,
    careful: bool = False,
    held: bool = False,
    snapshots: bool = False,
    marked: bool = False,
    moving: bool = False,
    maintained: bool = False,
    lossy: bool = False,
    governed: bool = False,
    stepped: bool = False,
    unkept: bool = False,
    **options: Any,
) -> World:
    """Return a world whose seed also decides what sort of trouble there is: rarely everything at once.

    more — further parts; users — theirs; careful … unkept — sorts of trouble that are certain; options — of the world.
    """
    climate = random.Random(f"climate {seed}")
    weather = weather_of(climate)
    projects = climate.choice((("p",), ("p", "q")))
    workers, members_per_shard = climate.randint(1, 3), climate.choice((2, 1000))
    nested, careful = climate.random() < 0.6, climate.random() < 0.3 or careful
    beats, apis = climate.random() < 0.5, 1 + (climate.random() < 0.5)
    parts: list[Part] = [
        Trouble(beats=beats),
        users(climate, nested=nested, careful=careful),
        Disturbances(climate),
        Transfers(certain=moving),
        Wardens(certain=held),
        Keepers(certain=snapshots),
        Occasional("prober", 0.3, 20.0 if marked else 6.0, lambda world: world.part(Users).mark, certain=marked),
        Occasional("loser", 0.4, 3.0, lambda world: world.part(Disturbances).hide),
        Losses(certain=lossy),
        Governors(certain=governed),
        Occasional("stepper", 0.2, 6.0, lambda world: world.part(Disturbances).set_database_clock, certain=stepped),
        UnkeptValues(certain=unkept),
        Doubters(),
        Caretakers(certain=maintained),
        *more,
    ]
    few = random.Random(f"few {seed}").choice((1, brakes.FEW))
    sizes: dict[str, Any] = {"workers": workers, "apis": apis, "members_per_shard": members_per_shard, "few": few}
    return world(seed, weather, parts, projects=projects, **sizes, **options)
