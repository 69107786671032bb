"""Failed updates and rollbacks: what is lost, broken, marked or found unhealthy is brought back as it last was."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from tests.component.marked import OFF, mark
from tests.component.running import Service, group
from tests.component.test_healing_failed import current, double, failed, role_of, server
from tests.component.test_template_health import policy

NAMES = ("behind", "user", "free")
WAYS = ["lost", "broken", "marked", "drifted"]


def hurt(there: Service, stack_id: str, name: str, way: str) -> str:
    """Do something to the thing of a resource; return its id."""
    handle = str(current(there, stack_id, name).handle)
    if way == "marked":
        mark(there, stack_id, name)
    elif way == "lost":
        there.cloud.vanish(handle)
    else:
        there.cloud.change(handle, **({"status": "error"} if way == "broken" else {"metadata": {"role": "hacked"}}))
    return handle


def rollback_failed() -> tuple[Service, str]:
    """A stack of which the update failed, and then the rollback: a server of it could not be changed back."""
    there = Service(CloudBehaviour(build_s=1.0))
    before = {
        "stuck": server("old"),
        "behind": server("old", "stuck"),
        "user": server("old", "behind"),
        "free": server("old"),
    }
    stack_id = there.create(before, disable_rollback=False)
    there.rest()
    after: dict[str, Any] = {
        "stuck": server("new"),
        "behind": server("new", "stuck", "bad"),
        "user": server("new", "behind"),
        "free": server("new"),
        "bad": {**double(fail=True, wait_secs=5), "depends_on": ["stuck", "free"]},
    }
    there.update(stack_id, after)
    there.live(2.0)
    assert role_of(there, stack_id, "stuck") == role_of(there, stack_id, "free") == "new"
    there.cloud.change(there.row(stack_id, "stuck").handle, locked=True)
    there.rest()
    assert there.state(stack_id) == "ROLLBACK_FAILED"
    return there, stack_id


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_after_a_failed_rollback_it_comes_back_as_it_was(name: str, way: str) -> None:
    there, stack_id = rollback_failed()
    for turn in ("once", "again"):
        before = hurt(there, stack_id, name, way)
        there.live(300)
        after = current(there, stack_id, name)
        assert (after.handle == before, after.status) == (way == "drifted", "COMPLETE"), turn
        assert role_of(there, stack_id, name) == "old"
        assert there.state(stack_id) == "ROLLBACK_FAILED"


@pytest.mark.parametrize("name", ["behind", "beside", "user"])
def test_after_a_failed_update_what_is_marked_is_replaced_as_it_was(name: str) -> None:
    there = Service()
    stack_id = failed(there)
    before = hurt(there, stack_id, name, "marked")
    there.live(120)
    after = current(there, stack_id, name)
    assert (after.handle != before, after.status, role_of(there, stack_id, name)) == (True, "COMPLETE", "old")
    assert there.state(stack_id) == "UPDATE_FAILED"


def test_what_had_failed_before_it_was_marked_waits_for_the_update_that_mends_it() -> None:
    there = Service()
    stack_id = failed(there)
    before = hurt(there, stack_id, "bad", "marked")
    there.live(300)
    assert (current(there, stack_id, "bad").handle, there.states(stack_id)["bad"]) == (before, "CHECK_FAILED")


def test_with_convergence_off_what_is_marked_in_a_failed_stack_waits_for_a_request() -> None:
    there = Service()
    stack_id = failed(there)
    there.actions.switch(stack_id, OFF)
    before = hurt(there, stack_id, "behind", "marked")
    there.live(300)
    assert there.states(stack_id)["behind"] == "CHECK_FAILED"
    there.actions.converge(stack_id, "behind")
    there.live(60)
    assert current(there, stack_id, "behind").handle != before
    assert role_of(there, stack_id, "behind") == "old"


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("name", ["behind", "free"])
def test_a_health_policy_recovers_servers_of_a_failed_stack_as_they_were(name: str, way: str) -> None:
    there = Service(CloudBehaviour(build_s=1.0))
    old = {"bad": double(value="1"), "behind": server("old", "bad"), "free": server("old")}
    watched = {"p": policy("behind"), "q": policy("free")}
    stack_id = there.create({**old, **watched})
    there.rest()
    new = {"bad": double(value="1", fail=True), "behind": server("new", "bad"), "free": server("new", "bad")}
    there.update(stack_id, {**new, **watched}, disable_rollback=True)
    there.live(30)
    assert there.state(stack_id) == "UPDATE_FAILED"
    for turn in ("once", "again"):
        before = hurt(there, stack_id, name, way)
        there.live(900)
        after = current(there, stack_id, name)
        assert (after.handle != before, after.status) == (True, "COMPLETE"), turn
        assert role_of(there, stack_id, name) == "old"


def member(role: str) -> dict[str, Any]:
    properties = {"image": "i", "flavor": "f", "name": "m%index%", "metadata": {"role": role}}
    return {"type": "OS::Nova::Server", "properties": properties}


@pytest.mark.heavy
@pytest.mark.parametrize("watched", [False, True], ids=["healed", "health policy"])
@pytest.mark.parametrize("way", WAYS[:-1])
def test_members_of_a_group_whose_batches_failed_come_back_as_each_was(way: str, watched: bool) -> None:
    there = Service(CloudBehaviour(build_s=1.0))
    more = {"p": policy("g")} if watched else {}
    stack_id = there.create({"g": group(3, member("old")), **more})
    there.rest()
    inside = there.child().id
    there.cloud.change(there.row(inside, "1").handle, locked=True)
    batches = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0, "pause_time": 0}}
    there.update(stack_id, {"g": {**group(3, member("new")), "update_policy": batches}, **more}, disable_rollback=True)
    there.live(60)
    assert there.state(stack_id) == "UPDATE_FAILED"
    roles = {name: role_of(there, inside, name) for name in ("0", "2")}
    assert sorted(roles.values()) == ["new", "old"]
    for name, role in roles.items():
        before = hurt(there, inside, name, way)
        there.live(900)
        after = current(there, inside, name)
        assert (after.handle != before, after.status, role_of(there, inside, name)) == (True, "COMPLETE", role)
