"""Stacks whose update has failed: what is lost there is brought back as it was before, resource by resource."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from tests.component.running import Service

DOUBLE = "OS::Heat::TestResource"


def server(role: str, *requires: str, **more: Any) -> dict[str, Any]:
    properties = {"image": "i", "flavor": "f", "metadata": {"role": role}, **more}
    return {"type": "OS::Nova::Server", "properties": properties, "depends_on": list(requires)}


def double(**properties: Any) -> dict[str, Any]:
    return {"type": DOUBLE, "properties": properties}


def role_of(there: Service, stack_id: str, name: str) -> Any:
    """Of the thing that stands for a resource. Fails: KeyError where it is gone."""
    return there.cloud.things()[current(there, stack_id, name).handle]["metadata"]["role"]


def current(there: Service, stack_id: str, name: str) -> Any:
    rows = [each for each in there.rows(stack_id) if each.name == name]
    return next(each for each in rows if each.replaced_by is None)


def failed(there: Service, **options: Any) -> str:
    """A stack with a failed resource, one behind it, one that waits for another one that is slow, and their user."""
    before = {
        "bad": double(value="1"),
        "slow": double(value="1"),
        "behind": server("old", "bad"),
        "beside": server("old", "slow"),
        "user": server("old", "beside"),
    }
    stack_id = there.create(before)
    after = {
        "bad": double(value="1", fail=True),
        "slow": double(value="2", wait_secs=5),
        "behind": server("new", "bad"),
        "beside": server("new", "slow"),
        "user": server("new", "beside"),
    }
    there.update(stack_id, after, disable_rollback=True, **options)
    there.live(30)
    assert there.state(stack_id) == "UPDATE_FAILED"
    return stack_id


@pytest.mark.parametrize("name", ["behind", "beside", "user"])
def test_what_is_lost_comes_back_as_it_was(name: str) -> None:
    there = Service()
    stack_id = failed(there)
    lost = current(there, stack_id, name).handle
    there.cloud.vanish(lost)
    there.live(120)
    assert current(there, stack_id, name).handle != lost
    assert role_of(there, stack_id, name) == "old"
    assert there.state(stack_id) == "UPDATE_FAILED"
    there.cloud.vanish(current(there, stack_id, name).handle)
    there.live(200)
    assert role_of(there, stack_id, name) == "old", "also the second time"


def test_what_requires_a_lost_thing_waits_until_that_is_back() -> None:
    there = Service(CloudBehaviour(build_s=5.0))
    stack_id = there.create(
        {
            "bad": double(value="1"),
            "net": {"type": "OS::Neutron::Net", "depends_on": ["bad"]},
            "port": {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}},
            "other": server("old"),
        }
    )
    there.update(
        stack_id,
        {
            "bad": double(value="1", fail=True),
            "net": {"type": "OS::Neutron::Net", "depends_on": ["bad"], "properties": {"name": "new"}},
            "port": {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}, "name": "new"}},
            "other": server("old"),
        },
        disable_rollback=True,
    )
    there.live(60)
    for name in ("net", "port"):
        there.cloud.vanish(current(there, stack_id, name).handle)
    there.live(300)
    net, port = (current(there, stack_id, name) for name in ("net", "port"))
    assert there.cloud.things()[port.handle]["network_id"] == net.handle
    assert "new" not in (there.cloud.things()[net.handle]["name"], there.cloud.things()[port.handle]["name"])


def test_drift_is_repaired_to_what_was_there_before() -> None:
    there = Service()
    stack_id = failed(there)
    there.cloud.change(current(there, stack_id, "behind").handle, metadata={"role": "hacked"})
    there.live(120)
    assert role_of(there, stack_id, "behind") == "old"
    assert there.states(stack_id)["behind"] == "UPDATE_COMPLETE"


def test_the_update_that_mends_it_brings_all_to_the_new_text() -> None:
    there = Service()
    stack_id = failed(there)
    there.cloud.vanish(current(there, stack_id, "behind").handle)
    there.live(120)
    there.update(
        stack_id,
        {
            "bad": double(value="1"),
            "slow": double(value="2"),
            "behind": server("new", "bad"),
            "beside": server("new", "slow"),
            "user": server("new", "beside"),
        },
    )
    there.rest()
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert {role_of(there, stack_id, name) for name in ("behind", "beside", "user")} == {"new"}


def test_to_converge_it_brings_back_what_is_lost_too() -> None:
    there = Service()
    stack_id = failed(there)
    there.cloud.vanish(current(there, stack_id, "behind").handle)
    there.actions.converge(stack_id)
    there.live(300)
    assert there.state(stack_id) == "UPDATE_FAILED"
    assert role_of(there, stack_id, "behind") == "old"
