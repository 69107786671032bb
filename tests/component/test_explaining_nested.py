"""A whole service asked why nested stacks are left as they are."""

import pytest

from homeostat.model.waiting import Why
from tests.component.maintained import lock
from tests.component.marked import OFF
from tests.component.running import Service, group, server
from tests.component.test_explaining import whys


@pytest.mark.parametrize("how", ["locked", "switched off"])
def test_what_is_left_alone_in_a_nested_stack_is_listed_with_its_root(how: str) -> None:
    """Everything in the stack above is at rest, so nothing there leads to it."""
    service = Service()
    stack_id = service.create({"grp": group(2), "srv": server()})
    service.rest()
    if how == "locked":
        lock(service, stack_id)
    else:
        service.actions.switch(stack_id, OFF)
    service.rest()
    service.cloud.vanish(service.row(service.child().id, "1").handle)
    service.live(200.0)
    wanted_why = Why.LOCKED if how == "locked" else Why.LEFT_ALONE
    assert whys(service, stack_id, depth=1) == {"grp.1": wanted_why}
