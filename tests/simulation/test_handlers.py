"""The ring with a plug-in in it: its handlers fail, are frozen, and die between what they make and what they store.

Its disks are things of the simulated cloud, made by its handlers: so they are under the same invariants as all others.
`HOMEOSTAT_SEEDS=1000` plays more.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest.mock import patch

import pytest

from homeostat.clouds.port import Change, Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import HomeostatError, Transient, Uncertain
from homeostat.model.observed import Observation
from homeostat.plugins import exception, properties, resource
from homeostat.plugins.types import kind_of_class, plugin_type
from homeostat.resources import registry
from homeostat.resources.discovery import Offer
from tests.simulation import templates
from tests.simulation.actors import InterruptibleCloud
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import DesiredStack, Resources, TemplateMutator
from tests.simulation.trouble import troubled
from tests.simulation.users import Users
from tests.simulation.wavering import Wavering
from tests.simulation.world import World

pytestmark = pytest.mark.heavy

TYPE = "Sim::Disk"
KIND = "volume"


HIDDEN_S = 31.0
"""For less than that a cloud does not find what is there."""
SETTLES_S = 30.0
"""Seconds for which an update goes on that has acted at once."""


class Disk(resource.Resource):
    """A volume, made by hand. What it sends may be lost on its way, and what it makes is listed late. Its secret is not
    reported by anybody; what an update has changed at once is complete a while later."""

    outside: ClassVar[dict[str, SimulatedCloud]] = {}
    created: ClassVar[int] = 0
    properties_schema = {
        "size": properties.Schema(properties.Schema.INTEGER, required=True),
        "description": properties.Schema(properties.Schema.STRING, update_allowed=True),
        "secret": properties.Schema(properties.Schema.STRING, update_allowed=True),
    }

    @property
    def _cloud(self) -> Any:
        return InterruptibleCloud(self.outside[self.context.tenant_id])

    @property
    def _now(self) -> float:
        return self.outside[self.context.tenant_id]._now()

    def handle_create(self) -> None:
        self.data_set("sought", self._now)  # before it is made: what may have been made is looked for
        spec = {"name": self.physical_resource_name(), **dict(self.properties)}
        Disk.created += 1
        (answer,) = self._cloud.create(KIND, [Creation(self.physical_resource_name(), spec)])
        if isinstance(answer, Observation):
            self.resource_id_set(answer.handle)
        elif not isinstance(answer, Uncertain):
            raise answer

    def check_create_complete(self, token: Any) -> bool:
        if self.resource_id is None and not self._found():
            return False
        return self._status() == "available"

    def _found(self) -> bool:
        (look,) = self._cloud.find(KIND, [self.physical_resource_name()])
        if look.present:
            self.resource_id_set(look.handle)
        elif not self._may_come():
            raise exception.ResourceInError(resource_status="LOST", status_reason="nothing came of it")
        return bool(look.present)

    def _may_come(self) -> bool:
        """Is it too early to say that nothing was made?"""
        lag_s = self.outside[self.context.tenant_id].listing_lag_s
        return bool(self._now < float(self.data().get("sought", 0)) + lag_s)

    def _status(self) -> str:
        """Fails: ResourceInError for one that is broken or gone."""
        (look,) = self._cloud.observe(KIND, [self.resource_id])
        if not look.present and not self._may_come():
            raise exception.ResourceInError(resource_status="GONE", status_reason="a user has removed it")
        status = str(look.properties.get("status", "creating"))
        if status not in ("creating", "available"):
            raise exception.ResourceInError(resource_status=status, status_reason=look.properties.get("fault"))
        return status

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> float:
        self._answer(self._cloud.update(KIND, [Change(str(self.resource_id), dict(prop_diff), tuple(prop_diff))]))
        return self._now + SETTLES_S

    def check_update_complete(self, settled_at: float) -> bool:
        return self._now >= settled_at

    def handle_delete(self) -> None:
        if self.resource_id is None:
            (look,) = self._cloud.find(KIND, [self.physical_resource_name()])
            if not look.present:
                if self._may_come():
                    raise Transient("it may come yet")
                self._doubt()
                return
            self.resource_id_set(look.handle)
        answers = self._cloud.delete(KIND, [str(self.resource_id)])
        self._answer(answers)
        if answers[0].not_found:
            self._doubt()

    def _doubt(self) -> None:
        """Nobody but its handler can tell that a thing is gone: it takes one answer for no proof."""
        if "missed" not in self.data():
            self.data_set("missed", self._now)
        if self._now < float(self.data()["missed"]) + HIDDEN_S:
            raise Transient("it is not found, and looked for once more")

    def check_delete_complete(self, token: Any) -> bool:
        return self.resource_id is None or not self._cloud.observe(KIND, [self.resource_id])[0].present

    def _answer(self, answers: list[Observation | HomeostatError]) -> None:
        if isinstance(answers[0], Uncertain):
            raise Transient(str(answers[0]))
        if isinstance(answers[0], HomeostatError):
            raise answers[0]

    def get_live_state(self, resource_properties: Any) -> dict[str, Any]:
        (look,) = self._cloud.observe(KIND, [self.resource_id])
        if not look.present and not self._may_come():
            raise exception.EntityNotFound(entity="Disk", name=self.resource_id)
        if look.properties.get("status") == "error":
            raise exception.ResourceInError(resource_status="error", status_reason=look.properties.get("fault"))
        return {name: look.properties[name] for name in ("description",) if name in look.properties}


class DiskGardener(TemplateMutator):
    def grow(self) -> DesiredStack:
        """With a disk in each stack."""
        desired = super().grow()
        desired.resources["r0"] = {"type": TYPE, "properties": self._properties(TYPE, {})}
        return desired

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        if kind != TYPE:
            return super()._properties(kind, earlier)
        number, secret = (str(self._rng.randint(0, 3)) for _ in range(2))
        return {"size": self._rng.choice((1, 1, 2)), "description": number, "secret": secret}


class Disks(Part):
    """Stacks with disks."""

    def begin(self) -> None:
        Disk.outside = dict(self.world.clouds)
        gardener = DiskGardener(random.Random(f"disks {self.world.seed}"), nested=self.world.seed % 2 == 0)
        self.world.part(Users).gardener = gardener


class DiskWorld(World):
    """A world whose disks are things of its clouds, and of their rows, by the names under which these know them."""

    def things(self) -> dict[str, dict[str, Any]]:
        """What its row knows by the record's id, having heard of it early or never, is shown under that."""
        known = ({row.handle for row in self.rows()} | self.retained) - {""}
        disks = [each for each in super().records() if each.kind == kind_of_class(TYPE)]
        mine = [each for each in disks if each.id in known and each.link not in known]
        early = {each.secret["physical_name"]: each.id for each in mine}
        return {early.get(thing.get("name", ""), handle): thing for handle, thing in super().things().items()}

    @property
    def retained(self) -> set[str]:
        """Also disks of rows that an abandoned stack let go of: their names end in the row's key."""
        disks = super().things().items()
        spared = {handle for handle, thing in disks if thing.get("name", "").rpartition("-")[2] in self.let_go}
        return super().retained | spared

    def records(self) -> list[Any]:
        """Those of disks are no things: the disks are."""
        return [each for each in super().records() if each.kind != kind_of_class(TYPE)]


@contextmanager
def disks() -> Iterator[None]:
    registry.add([Offer("ring", [plugin_type(TYPE, Disk)])])
    with patch.object(templates, "SIMPLE", (*templates.SIMPLE, TYPE, TYPE, TYPE)):
        yield
    registry.take_away(["ring"])


def disk_world(seed: int) -> World:
    return troubled(seed, Disks(), Wavering(), world=DiskWorld, plugin_types={TYPE: Disk})


RING = Ring("handlers", disk_world)


@pytest.mark.parametrize("seed", seeds_to_play(8))
def test_what_handlers_make_converges_and_nothing_leaks_or_is_made_twice(seed: int) -> None:
    """CV2, CV5, CV16, CV18 under crashes, freezes, faults and outages."""
    with disks():
        RING.played(seed)
