"""What an update removes goes last: an update that fails has removed nothing, and what needs its place gets it."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.explainer import Explainer
from tests.component.marked import OFF
from tests.component.running import Service

DOUBLE = "OS::Heat::TestResource"


def volume(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 1, **properties}}


def double(**properties: Any) -> dict[str, Any]:
    return {"type": DOUBLE, "properties": properties}


def volumes(there: Service) -> list[str]:
    return sorted(there.cloud.things("volume"))


@pytest.mark.parametrize("disable_rollback", [True, False])
def test_what_an_update_removes_is_there_until_all_else_is_done(disable_rollback: bool) -> None:
    there = Service()
    stack_id = there.create({"data": volume(), "other": double(value="1")})
    mine = volumes(there)
    failing = {"other": double(value="2", wait_secs=20, fail=True)}
    there.update(stack_id, failing, disable_rollback=disable_rollback)
    there.live(10)
    assert (there.state(stack_id), volumes(there)) == ("UPDATE_IN_PROGRESS", mine)
    there.live(120)
    assert there.state(stack_id) == ("UPDATE_FAILED" if disable_rollback else "ROLLBACK_COMPLETE")
    assert volumes(there) == mine, "the very same volume"
    there.update(stack_id, {"other": double(value="3")})
    there.rest()
    assert (there.state(stack_id), volumes(there)) == ("UPDATE_COMPLETE", [])


def test_what_is_replaced_goes_last_too() -> None:
    there = Service()
    stack_id = there.create({"data": volume(), "other": double(value="1")})
    (mine,) = volumes(there)
    failing = {"data": volume(availability_zone="z"), "other": double(value="2", wait_secs=20, fail=True)}
    there.update(stack_id, failing, disable_rollback=False)
    there.live(10)
    assert len(volumes(there)) == 2
    there.live(120)
    assert (there.state(stack_id), volumes(there)) == ("ROLLBACK_COMPLETE", [mine])


def test_a_look_that_misses_a_removed_volume_does_not_delete_it_early() -> None:
    """Found by the simulation: it was there again at once, and the rollback of the update had lost it."""
    there = Service()
    stack_id = there.create({"data": volume(), "other": double(value="1")})
    (mine,) = volumes(there)
    there.actions.switch(stack_id, OFF)
    there.cloud.hide(mine)
    there.live(200)
    there.update(stack_id, {"other": double(value="2", wait_secs=20, fail=True)}, disable_rollback=False)
    there.cloud.unhide(mine)
    there.live(120)
    assert (there.state(stack_id), volumes(there)) == ("ROLLBACK_COMPLETE", [mine])


def test_it_says_why_it_stays() -> None:
    there = Service()
    stack_id = there.create({"data": volume(), "other": double(value="1")})
    there.update(stack_id, {"other": double(value="2", wait_secs=60)})
    there.live(5)
    with there.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), there.clock.now()).page(there.stack(stack_id), 100).explanations
    (why,) = [each.explanation for each in found if each.explanation.name == "data"]
    assert (why.why, why.reason) == ("in_use", "what an update removes goes last")


def test_an_address_that_another_one_needs_becomes_free_first() -> None:
    there = Service(CloudBehaviour(build_s=5.0))
    port = {"type": "OS::Neutron::Port", "properties": {"network": "n", "fixed_ips": [{"ip_address": "10.0.0.7"}]}}
    stack_id = there.create({"old": port, "data": volume(), "slow": double(value="1")})
    there.rest()
    there.update(stack_id, {"new": port, "slow": double(value="2", wait_secs=30)})
    there.live(15)
    assert len(there.cloud.things("port")) == 1
    assert len(volumes(there)) == 1, "nobody needs anything of that"
    there.rest()
    assert volumes(there) == []


def test_what_is_refused_again_and_again_gets_the_place_of_what_holds_no_data() -> None:
    there = Service()
    stack_id = there.create({"net": {"type": "OS::Neutron::Net"}, "data": volume()})
    there.cloud.behaviour.faults.refused = 1.0
    there.update(stack_id, {"other": {"type": "OS::Neutron::Net", "properties": {"name": "other"}}})
    there.live(10)
    there.cloud.behaviour.faults.refused = 0.0
    there.live(1)
    assert len(volumes(there)) == 1 or there.state(stack_id) == "UPDATE_COMPLETE"
    there.rest()
    assert (len(there.cloud.things("network")), volumes(there)) == (1, [])
