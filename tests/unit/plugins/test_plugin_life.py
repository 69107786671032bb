"""Types with handlers in a whole service on virtual time: what their methods return and raise is what happens."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select
from tests.component.running import Service
from tests.unit.plugins import lamps
from tests.unit.plugins.lamps import SHOP, Shop, known, lamp, service

from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.plugins import exception, resource
from homeostat.store import schema


@pytest.fixture
def shop() -> Iterator[Shop]:
    SHOP.__init__()  # type: ignore[misc]
    with known():
        yield SHOP


@pytest.fixture
def there(shop: Shop) -> Service:
    return service()


def attributes(there: Service, stack_id: str, name: str = "lamp") -> Any:
    from homeostat.store.shards import shard_state

    with there.db.read() as tx:
        rows, seen = shard_state.load_rows(tx, stack_id, 0)
    (key,) = [row.key for row in rows.values() if row.name == name]
    return seen[key].observation.properties


def test_it_is_made_observed_and_deleted(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp(colour="red")})
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert shop.calls == ["handle_create", "after the id", "check_create_complete"]
    (made,) = shop.lamps.values()
    assert made["name"].startswith("web-lamp-")
    assert (made["colour"], made["watts"], made["place"], made["socket"]) == ("red", 40, None, None)
    assert there.row(stack_id, "lamp").handle == "lamp-1", "its handle is the id that the plug-in gave"
    seen = attributes(there, stack_id)
    assert seen["attributes"] == {"power": 40, "show": {"colour": "red", "watts": 40}}
    assert "serial" not in str(seen), "what is redacted is not shown"
    there.delete(stack_id)
    assert shop.lamps == {}
    assert there.stack(stack_id).deleted_at is not None


def test_it_is_polled_until_it_is_ready(there: Service, shop: Shop) -> None:
    shop.warm_up = 3
    stack_id = there.create({"lamp": lamp()})
    assert there.state(stack_id) == "CREATE_IN_PROGRESS"
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert shop.calls.count("handle_create") == 1
    assert shop.calls.count("check_create_complete") == 4


def test_a_poll_that_is_put_off_is_not_made_before(there: Service, shop: Shop) -> None:
    shop.plans["check_create_complete"] = [resource.PollDelay(20)]
    stack_id = there.create({"lamp": lamp()})
    there.live(19)
    assert shop.calls.count("check_create_complete") == 1
    there.live(3)
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert shop.calls.count("check_create_complete") == 2


def test_others_read_its_reference_and_attributes(there: Service, shop: Shop) -> None:
    value = {
        "type": "OS::Heat::Value",
        "properties": {"value": [{"get_resource": "lamp"}, {"get_attr": ["lamp", "power"]}]},
    }
    stack_id = there.create({"lamp": lamp(watts=60), "value": value})
    assert there.row(stack_id, "value").properties == {"value": ["lamp-1", 60]}


def test_what_may_change_is_changed_and_nothing_else_is_called(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp()})
    there.update(stack_id, {"lamp": lamp()})
    assert not any(call.startswith("handle_update") for call in shop.calls)
    there.update(stack_id, {"lamp": lamp(watts=25)})
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert shop.calls[-1:] == ["handle_update {'watts': 25}"]
    assert shop.lamps["lamp-1"]["watts"] == 25
    assert attributes(there, stack_id)["attributes"]["power"] == 25


@pytest.mark.parametrize(
    "change", [{"place": "hall"}, {"colour": "blue"}], ids=["by its schema", "as its handler asks"]
)
def test_what_cannot_change_is_replaced_the_new_one_first(there: Service, shop: Shop, change: dict[str, Any]) -> None:
    stack_id = there.create({"lamp": lamp()})
    there.update(stack_id, {"lamp": lamp(**change)})
    there.rest()
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert list(shop.lamps) == ["lamp-2"]
    made, gone = shop.calls.index("after the id", 2), shop.calls.index("handle_delete lamp-1")
    assert made < gone


def test_a_failure_names_its_error_and_the_next_try_begins_anew(there: Service, shop: Shop) -> None:
    shop.plans["after the id"] = [ValueError("no socket")]
    stack_id = there.create({"lamp": lamp()})
    assert there.state(stack_id) == "CREATE_FAILED"
    assert "ValueError: no socket" in there.stack(stack_id).reason
    assert list(shop.lamps) == ["lamp-1"]
    there.update(stack_id, {"lamp": lamp()})
    there.rest()
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert list(shop.lamps) == ["lamp-2"], "what had failed is deleted, not left"


def test_an_error_of_the_thing_has_it_made_anew_a_few_times(there: Service, shop: Shop) -> None:
    in_error = exception.ResourceInError(resource_status="ERROR", status_reason="burnt")
    shop.plans["check_create_complete"] = [in_error, in_error]
    stack_id = there.create({"lamp": lamp()})
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert list(shop.lamps) == ["lamp-3"]
    shop.plans["check_create_complete"] = [in_error] * 50
    failing = there.create({"lamp": lamp()}, name="other")
    there.rest(900)
    assert there.state(failing) == "CREATE_FAILED"
    assert 'Went to status ERROR due to "burnt"' in there.stack(failing).reason


def test_time_mends_what_does_not_answer(there: Service, shop: Shop) -> None:
    shop.plans["check_create_complete"] = [ConnectionError("down"), TimeoutError("slow")]
    stack_id = there.create({"lamp": lamp()})
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert shop.calls.count("handle_create") == 1
    shop.plans["handle_delete lamp-1"] = [ConnectionError("down"), exception.PhysicalResourceExists(name="lamp-1")]
    there.delete(stack_id)
    there.rest()
    assert shop.lamps == {}


def test_a_deletion_that_fails_says_so_and_can_be_asked_for_again(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp()})
    shop.plans["handle_delete lamp-1"] = [RuntimeError("stuck")]
    there.delete(stack_id)
    there.rest()
    assert there.state(stack_id) == "DELETE_FAILED"
    assert "RuntimeError: stuck" in there.stack(stack_id).reason
    there.delete(stack_id)
    assert shop.lamps == {}


def test_what_changes_or_vanishes_outside_is_brought_back(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp(colour="red")})
    shop.lamps["lamp-1"]["colour"] = "white"
    there.live(120)
    assert shop.lamps["lamp-1"]["colour"] == "red"
    del shop.lamps["lamp-1"]
    there.live(120)
    assert list(shop.lamps) == ["lamp-2"]
    assert there.row(stack_id, "lamp").handle == "lamp-2"


def test_a_failed_check_is_reported_and_not_mended(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp()})
    shop.lamps["lamp-1"]["broken"] = True
    there.live(120)
    assert there.states(stack_id) == {"lamp": "CHECK_FAILED"}
    shop.lamps["lamp-1"]["broken"] = False
    there.live(120)
    assert there.states(stack_id) == {"lamp": "CHECK_COMPLETE"}
    assert list(shop.lamps) == ["lamp-1"]


def test_signals_are_handed_over_once_it_is_at_rest_each_one_once(there: Service, shop: Shop) -> None:
    shop.warm_up = 2
    stack_id = there.create({"lamp": lamp()})
    there.signal(stack_id, "lamp", {"times": 2})
    there.signal(stack_id, "lamp", {"nothing": True})
    assert not any(call.startswith("handle_signal") for call in shop.calls), "it is not ready yet"
    there.rest()
    there.live(5)
    shop.plans["handle_signal {'times': 3}"] = [ValueError("dark")]
    there.signal(stack_id, "lamp", {"times": 3})
    there.live(5)
    taken = [call for call in shop.calls if call.startswith("handle_signal")]
    assert taken == ["handle_signal {'times': 2}", "handle_signal {'nothing': True}", "handle_signal {'times': 3}"]
    with there.db.read() as tx:
        reasons = tx.execute(select(schema.event.c.reason).where(schema.event.c.action == "SIGNAL")).scalars().all()
    assert reasons == ["Signal: blinks 2 times", "failed: ValueError: dark"]


def test_handlers_suspend_resume_lock_and_unlock(shop: Shop) -> None:
    """Those that a class has are called, once each; what it has not is passed by."""

    class Safe(lamps.Lamp):
        """A lamp that can be suspended and locked."""

        def handle_suspend(self) -> str:
            shop.called("handle_suspend")
            return "dimming"

        def check_suspend_complete(self, token: str) -> bool:
            shop.called(f"check_suspend_complete {token}")
            return shop.calls.count(f"check_suspend_complete {token}") > 2

        def handle_resume(self) -> None:
            shop.called("handle_resume")

        def handle_lock(self) -> None:
            shop.called("handle_lock")

        def handle_unlock(self) -> None:
            shop.called("handle_unlock")

    with known(Safe=Safe):
        there = service()
        stack_id = there.create({"safe": {"type": "Example::Safe", "properties": {"watts": 1}}, "lamp": lamp()})
        there.rest()
        shop.calls.clear()
        lock = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
        acts: dict[str, Callable[[], object]] = {
            "SUSPEND": lambda: there.actions.begin(stack_id, Action.SUSPEND),
            "RESUME": lambda: there.actions.begin(stack_id, Action.RESUME),
            "LOCK": lambda: there.actions.lock(stack_id, lock, lambda _: True),
            "UNLOCK": lambda: there.actions.unlock(stack_id, lambda _: True),
        }
        for action, act in acts.items():
            act()
            there.rest()
            assert there.state(stack_id) == f"{action}_COMPLETE"
            assert set(there.states(stack_id).values()) == {f"{action}_COMPLETE"}
        asked = [call for call in shop.calls if call != "handle_check" and not call.startswith("resolve")]
        polled = ["check_suspend_complete dimming"] * 3
        assert asked == ["handle_suspend", *polled, "handle_resume", "handle_lock", "handle_unlock"]


def test_signals_are_ignored_in_a_locked_stack_and_refused_in_a_suspended_one(there: Service, shop: Shop) -> None:
    stack_id = there.create({"lamp": lamp()})
    there.rest()
    lock = {"level": "stacks", "owner": "ann", "owner_id": None, "reason": "disks", "at": 0.0, "expires_at": None}
    there.actions.lock(stack_id, lock, lambda _: True)
    there.rest()
    there.signal(stack_id, "lamp", {"times": 2})
    there.live(5)
    assert not any(call.startswith("handle_signal") for call in shop.calls)
    with there.db.read() as tx:
        reasons = tx.execute(select(schema.event.c.reason).where(schema.event.c.action == "SIGNAL")).scalars().all()
    assert reasons == ["Signal ignored: the stack is locked by ann (disks)"]
    there.actions.unlock(stack_id, lambda _: True)
    there.rest()
    there.actions.begin(stack_id, Action.SUSPEND)
    there.rest()
    with pytest.raises(Rejected, match="Signal resource during SUSPEND is not supported"):
        there.signal(stack_id, "lamp", {"times": 2})


def test_a_type_without_a_handler_for_signals_refuses_them(shop: Shop) -> None:
    class Deaf(resource.Resource):
        """It takes no signals."""

    with known(Deaf=Deaf):
        there = service()
        stack_id = there.create({"deaf": {"type": "Example::Deaf"}})
        with pytest.raises(Rejected, match="not supported for this type"):
            there.signal(stack_id, "deaf", {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": "green"}, "colour"),
        ({"watts": "many"}, "watts"),
        ({"size": 1}, "Unknown Property size"),
        ({"place": "bath", "watts": 100}, "too bright for a bath"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_made(
    there: Service, shop: Shop, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(Rejected, match=message):
        there.create({"lamp": lamp(**given)})
    assert shop.calls == []
