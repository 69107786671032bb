"""An update that a newer one overtakes: its handler has acted at once and is still polled, and no look tells what the
thing has by now. What is there in the end is what was wanted last, and nobody reads anything else meanwhile."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.component.running import Service
from tests.unit.plugins import lamps
from tests.unit.plugins.lamps import SHOP, Shop, known, service

from homeostat.model.status import Action
from homeostat.plugins import exception, properties

KEPT = {"code": "old", "watts": 40}


class Vault(lamps.Lamp):
    """A lamp with a code that nobody can read, which takes some polls to learn another one."""

    properties_schema = {
        **lamps.Lamp.properties_schema,
        "code": properties.Schema(properties.Schema.STRING, update_allowed=True),
    }
    polls = 3

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> dict[str, Any]:
        super().handle_update(json_snippet, tmpl_diff, prop_diff)
        return {"left": self.polls}

    def check_update_complete(self, token: dict[str, Any]) -> bool:
        SHOP.called("check_update_complete")
        token["left"] -= 1
        return bool(token["left"] < 0)

    def handle_suspend(self) -> None:
        SHOP.called("handle_suspend")

    def handle_resume(self) -> None:
        SHOP.called("handle_resume")


@pytest.fixture
def shop() -> Iterator[Shop]:
    SHOP.__init__()  # type: ignore[misc]
    with known(Vault=Vault):
        yield SHOP


@pytest.fixture
def there(shop: Shop) -> Service:
    return service()


def vault(**given: Any) -> dict[str, Any]:
    """With a dependant that reads what it draws."""
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["vault", "power"]}}}
    return {"vault": {"type": "Example::Vault", "properties": {**KEPT, **given}}, "reader": reader}


def put_back(there: Service, stack_id: str) -> None:
    there.update(stack_id, vault())


def cancel(there: Service, stack_id: str) -> None:
    there.stack_service.cancel(stack_id, roll_back=True)
    there.work()


@pytest.mark.parametrize("undo", [put_back, cancel])
def test_an_update_that_is_taken_back_while_it_goes_on_is_undone(
    there: Service, shop: Shop, undo: Callable[[Service, str], None]
) -> None:
    stack_id = there.create(vault())
    there.update(stack_id, vault(code="new", watts=60))
    assert there.state(stack_id) == "UPDATE_IN_PROGRESS"
    assert shop.lamps["lamp-1"]["code"] == "new"
    undo(there, stack_id)
    there.rest()
    assert there.state(stack_id).endswith("_COMPLETE")
    assert (shop.lamps["lamp-1"]["code"], shop.lamps["lamp-1"]["watts"]) == ("old", 40)
    assert there.row(stack_id, "reader").properties == {"value": 40}


def test_a_dependant_does_not_begin_before_an_update_is_undone(there: Service, shop: Shop) -> None:
    stack_id = there.create(vault())
    there.update(stack_id, vault(watts=60))
    put_back(there, stack_id)
    assert there.state(stack_id) == "UPDATE_IN_PROGRESS", "its handler has not come to its end"
    read = []
    while there.state(stack_id) == "UPDATE_IN_PROGRESS":
        read.append(there.row(stack_id, "reader").properties)
        there.live(1)
    assert all(each == {"value": 40} for each in read)


def test_of_several_updates_the_last_one_holds_whatever_the_others_have_reached(there: Service, shop: Shop) -> None:
    stack_id = there.create(vault())
    there.update(stack_id, vault(code="new"))
    there.update(stack_id, vault(watts=60))
    assert shop.calls[-2].startswith("handle_update"), "both: the code is unknown, the watts differ"
    there.update(stack_id, vault())
    there.rest()
    assert (shop.lamps["lamp-1"]["code"], shop.lamps["lamp-1"]["watts"]) == ("old", 40)
    there.update(stack_id, vault(watts=25))
    there.rest()
    assert [call for call in shop.calls if call.startswith("handle_update")][-1] == "handle_update {'watts': 25}"


def test_what_a_failed_update_wanted_is_not_taken_for_there_after_another_action(there: Service, shop: Shop) -> None:
    stack_id = there.create(vault())
    shop.plans["check_update_complete"] = [exception.Error("the door is stuck")]
    there.update(stack_id, vault(code="new"), disable_rollback=True)
    there.rest()
    assert there.state(stack_id) == "UPDATE_FAILED"
    shop.lamps["lamp-1"]["code"] = "neither"
    there.actions.begin(stack_id, Action.SUSPEND)
    there.rest()
    there.actions.begin(stack_id, Action.RESUME)
    there.rest()
    there.update(stack_id, vault(code="new"))
    there.rest()
    (made,) = shop.lamps.values()
    assert made["code"] == "new"
