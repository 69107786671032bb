"""A doubt about a look ends when a canary proves that who looks can see; the second look is another way (ADR 0046)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.convergence.facts.healing_brake import doubts
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.observed import Observation, Presence
from homeostat.services.explainer import Explainer
from homeostat.store import schema
from homeostat.store.shards.brakes import PATIENCE_S
from tests.component.running import Service, double, group, server, template, volume

DISKS = {f"disk{number}": volume() for number in range(5)}
BESIDE: dict[str, Any] = {"type": "OS::Cinder::VolumeType", "properties": {"name": "fast"}}


class Listless(SimulatedCloud):
    """Its lists leave out what it has; asked for a token, it finds everything."""

    leaves_out = False

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        looks = super().observe(kind, handles)
        if not self.leaves_out or kind != "volume":
            return looks
        return [Observation(Presence.ABSENT, look.handle, seen_at=look.seen_at) for look in looks]


def why(service: Service, stack_id: str) -> set[str]:
    stack = service.stack(stack_id)
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(stack, 100)
    return {str(each.explanation.why) for each in page.explanations}


def doubted(service: Service) -> list[tuple[str, int]]:
    with service.db.read() as tx:
        return [(each.kind, each.absent) for each in doubts(tx)]


def all_gone(**beside: Any) -> tuple[Service, str]:
    """A stack, all of whose volumes vanish at once."""
    service = Service()
    stack_id = service.create({**DISKS, **beside})
    service.rest()
    for handle in list(service.cloud.things("volume")):
        service.cloud.vanish(handle)
    service.live(120.0)
    assert why(service, stack_id) == {"blind"}
    assert doubted(service) == [("volume", 5)]
    return service, stack_id


def healed(service: Service, stack_id: str) -> bool:
    return len(service.cloud.things("volume")) == 5 and why(service, stack_id) == set() and doubted(service) == []


def test_something_else_of_the_service_that_is_seen_ends_a_doubt_in_time() -> None:
    service, stack_id = all_gone(beside=BESIDE)
    service.live(PATIENCE_S - 180.0)
    assert why(service, stack_id) == {"blind"}
    service.live(300.0)
    assert healed(service, stack_id)


def test_what_is_made_meanwhile_and_seen_ends_a_doubt_in_time() -> None:
    service, stack_id = all_gone()
    younger = service.create({"disk": volume()}, name="younger")
    service.live(PATIENCE_S - 180.0)
    assert why(service, stack_id) == {"blind"}
    service.live(300.0)
    assert len(service.cloud.things("volume")) == 6
    assert why(service, stack_id) == why(service, younger) == set()


@pytest.mark.parametrize("beside", [{}, {"srv": server()}, {"t": double()}], ids=["nothing", "a server", "no thing"])
def test_without_a_canary_a_person_has_to_say_so(beside: dict[str, Any]) -> None:
    service, stack_id = all_gone(**beside)
    service.live(3 * PATIENCE_S)
    assert service.cloud.things("volume") == {}
    service.actions.converge(stack_id)
    service.rest()
    assert healed(service, stack_id)


def test_what_is_doubted_below_what_no_update_may_touch_is_converged_by_itself() -> None:
    """The request to the root is refused, and its reason says so (seed 39009327)."""
    forbids = {"resource_registry": {"resources": {"grp": {"restricted_actions": "update"}}}}
    service = Service(CloudBehaviour(quota=5))
    stack_id = service.create({"grp": group(6)}, environment=forbids)
    service.rest()
    assert (service.state(stack_id), len(service.servers())) == ("CREATE_FAILED", 5)
    service.cloud.behaviour.quota = None
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.live(120.0)
    child = service.child().id
    assert doubted(service) == [("server", 5)]
    service.actions.converge(stack_id)
    service.live(60.0)
    assert "update is restricted for resource" in service.stack(stack_id).reason
    assert (service.servers(), doubted(service)) == ([], [("server", 5)])
    service.actions.converge(child)
    service.live(60.0)
    assert (len(service.servers()), doubted(service), service.state(child)) == (6, [], "UPDATE_COMPLETE")


def test_a_canary_that_cannot_be_looked_at_proves_nothing() -> None:
    service, stack_id = all_gone(beside=BESIDE)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(3 * PATIENCE_S)
    assert why(service, stack_id) <= {"blind", "unseen", "left_alone"}
    service.cloud.behaviour.faults = Faults()
    service.live(PATIENCE_S + 300.0)
    assert healed(service, stack_id)


@pytest.mark.parametrize("count", [1, 5])
def test_what_a_list_leaves_out_and_another_question_finds_is_kept(count: int) -> None:
    service = Service(cloud=lambda clock: Listless(clock.now, CloudBehaviour()))
    assert isinstance(service.cloud, Listless)
    resources = dict(list(DISKS.items())[:count])
    stack_id = service.create({**resources, "beside": BESIDE})
    service.rest()
    before = sorted(service.cloud.things("volume"))
    service.cloud.leaves_out = True
    service.live(2 * PATIENCE_S)
    assert sorted(service.cloud.things("volume")) == before
    service.cloud.leaves_out = False
    service.live(120.0)
    assert sorted(service.cloud.things("volume")) == before
    assert why(service, stack_id) == set()
    assert set(service.states(stack_id).values()) == {"CREATE_COMPLETE"}


def test_what_comes_back_before_that_is_kept() -> None:
    service = Service()
    service.create({**DISKS, "beside": BESIDE})
    service.rest()
    before = sorted(service.cloud.things("volume"))
    for handle in before:
        service.cloud.hide(handle)
    service.live(PATIENCE_S - 60.0)
    for handle in before:
        service.cloud.unhide(handle)
    service.live(2 * PATIENCE_S)
    assert sorted(service.cloud.things("volume")) == before


@pytest.mark.parametrize("beside", [{}, DISKS], ids=["a nested stack", "and the stack around it"])
def test_a_doubt_that_lasts_costs_next_to_nothing(beside: dict[str, Any]) -> None:
    """Passes write at their beginning and end; they were 720 an hour and stack."""
    service = Service()
    service.create({**beside, "g": group(5, volume())})
    service.rest()
    for handle in list(service.cloud.things("volume")):
        service.cloud.vanish(handle)
    service.live(300.0)
    (root, child) = (each.id for each in service.stacks())
    before, story = passes(service), service.story(root)
    service.live(3600.0)
    assert why(service, child) == {"blind"}
    spent = {stack_id: count - before[stack_id] for stack_id, count in passes(service).items()}
    assert 10 < spent[child] < 60
    assert spent[root] < (60 if beside else 1)
    assert service.story(root) == story


def passes(service: Service) -> dict[str, int]:
    """Of each stack, so far: a pass is two commits."""
    with service.db.read() as tx:
        return {each.stack_id: each.epoch for each in tx.execute(select(schema.shard))}


def test_nothing_is_stored_while_a_doubt_goes_on() -> None:
    """Also not of a nested stack, which asks again and again whether its own doubt is over."""
    service = Service()
    nested = template({f"inner{number}": volume() for number in range(5)})
    files = {"inner.yaml": json.dumps(nested)}
    stack_id = service.create({**DISKS, "nested": {"type": "inner.yaml"}}, files=files)
    service.rest()
    for handle in list(service.cloud.things("volume")):
        service.cloud.vanish(handle)
    service.live(120.0)
    before, asked = stored(service), epochs(service)
    service.live(600.0)
    assert why(service, stack_id) == {"blind"}
    assert all(now > then for now, then in zip(epochs(service), asked, strict=True)), "both have asked"
    assert stored(service) == before


def stored(service: Service) -> dict[str, list[Any]]:
    """All rows but those of shards, which tell who works on them."""
    tables = (
        schema.resource,
        schema.resource_observed,
        schema.resource_properties_observed,
        schema.event,
        schema.stack,
    )
    with service.db.read() as tx:
        return {table.name: list(tx.execute(select(table))) for table in tables}


def epochs(service: Service) -> list[int]:
    with service.db.read() as tx:
        return list(tx.execute(select(schema.shard.c.epoch).order_by(schema.shard.c.stack_id)).scalars())
