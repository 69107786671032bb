"""Adopting what lives in the service itself."""

import json

import pytest
from sqlalchemy import delete, update

from homeostat.json_pieces import plain
from homeostat.model.status import Action, Status
from homeostat.resources.families.configs import CONFIG
from homeostat.store import schema
from homeostat.store.builtin import records
from tests.component.adopted import VALUE, document, entry, moved
from tests.component.running import Service, condition, double, handle, server

# -- what lives in the service -----------------------------------------------------------------------------------------


def test_a_random_string_keeps_its_value() -> None:
    service = Service()
    word = {"type": "OS::Heat::RandomString"}
    source = document(
        {"w": word}, {"w": entry("w", "OS::Heat::RandomString", "old-w-abc", resource_data={"value": "XYZ"})}
    )

    stack_id = service.adopt(source)
    service.rest()

    assert service.states(stack_id) == {"w": "ADOPT_COMPLETE"}
    assert service.attribute(stack_id, "w", "value") == "XYZ"
    assert service.row(stack_id, "w").handle == "old-w-abc"


def test_what_lives_in_the_service_alone_keeps_its_id_wherever_it_moves() -> None:
    resources = {
        "t": double(value="1"),
        "r": {"type": "OS::Heat::RandomString"},
        "v": {"type": VALUE, "properties": {"value": "1"}},
    }
    before = {name: f"old-{name}" for name in resources}
    source = document(resources, {name: entry(name, resources[name]["type"], id) for name, id in before.items()})
    for _ in range(2):
        service = Service()
        stack_id = service.adopt(source)
        service.rest()
        assert {name: service.row(stack_id, name).handle for name in resources} == before
        source = moved(service, stack_id)
        assert {name: each["resource_id"] for name, each in source["resources"].items()} == before
    stack_id = service.adopt(source)
    service.update(stack_id, {**resources, "v": {"type": VALUE, "properties": {"value": "2"}}})
    service.rest()
    assert {name: service.row(stack_id, name).handle for name in resources} == before
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_a_handle_remembers_its_signals() -> None:
    """Upstream keeps the signals in the metadata of the handle."""
    service = Service()
    signals = {"1": {"status": "SUCCESS", "reason": "Signal 1 received", "data": "done"}}
    entries = {
        "handle": entry(
            "handle",
            "OS::Heat::WaitConditionHandle",
            "old-handle",
            metadata=signals,
            resource_data={"token": "t", "user_id": "u"},
        ),
        "wait": entry("wait", "OS::Heat::WaitCondition", "old-wait"),
    }

    stack_id = service.adopt(document({"handle": handle(), "wait": condition()}, entries))
    service.rest()

    assert service.states(stack_id) == {"handle": "ADOPT_COMPLETE", "wait": "ADOPT_COMPLETE"}
    assert service.attribute(stack_id, "wait", "data") == '{"1": "done"}'


def test_a_condition_that_was_met_is_not_waited_for_again() -> None:
    service = Service()
    entries = {
        "handle": entry("handle", "OS::Heat::WaitConditionHandle", "h"),
        "wait": entry("wait", "OS::Heat::WaitCondition", "w"),
    }

    stack_id = service.adopt(document({"handle": handle(), "wait": condition(count=2)}, entries))
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"


def test_a_condition_that_was_not_met_goes_on_waiting() -> None:
    service = Service()
    stack_id = service.create({"handle": handle(), "wait": condition(count=2)})
    service.signal(stack_id, "handle", id="1", data="a")
    source = moved(service, stack_id)

    again = service.adopt(source)
    assert service.state(again) == "ADOPT_IN_PROGRESS"
    service.signal(again, "handle", id="2", data="b")
    service.rest()

    assert service.state(again) == "ADOPT_COMPLETE"
    assert json.loads(service.attribute(again, "wait", "data")) == {"1": "a", "2": "b"}


def test_addresses_that_were_handed_out_still_fit() -> None:
    """A server that was made before the move signals at the address that it was given then."""
    service = Service()
    signed = {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "CFN_SIGNAL"}}
    stack_id = service.create({"handle": signed, "wait": condition()})
    url = service.seen(stack_id, "handle")["url"]
    again = service.adopt(moved(service, stack_id))

    service.put(url, {}, "POST")
    service.rest()

    assert service.state(again) == "ADOPT_COMPLETE"


def test_a_config_is_the_same_one_and_a_deployment_is_not_applied_again() -> None:
    service = Service()
    web = server(user_data_format="SOFTWARE_CONFIG")
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"group": "script", "config": "true"}}
    apply = {"config": {"get_resource": "config"}, "server": {"get_resource": "web"}, "signal_transport": "NO_SIGNAL"}
    stack_id = service.create(
        {"web": web, "config": config, "apply": {"type": "OS::Heat::SoftwareDeployment", "properties": apply}}
    )
    service.rest()
    (kept,) = [each for each in service.records_of(CONFIG) if each.token.count("-") == 1]
    configs = len(service.records_of(CONFIG))

    again = service.adopt(moved(service, stack_id))
    service.rest()

    assert service.state(again) == "ADOPT_COMPLETE"
    assert service.row(again, "config").handle == kept.id
    assert len(service.records_of(CONFIG)) == configs


@pytest.mark.parametrize("deleting", [False, True])
def test_a_handle_that_another_stack_still_has_is_not_made_again_under_its_id(deleting: bool) -> None:
    """Found by the simulation: what a stack deletes, it may delete once more by the id, whose it is by then."""
    service = Service()
    first = service.create({"handle": handle()})
    service.rest()
    exported = plain(service.moving.export(first))
    row = service.row(first, "handle")
    with service.db.write() as tx:
        records.remove(tx, [row.handle])
        if deleting:
            tx.execute(update(schema.resource).values(action=Action.DELETE, status=Status.IN_PROGRESS))
    second = service.adopt(exported, "other")
    if deleting:
        assert service.states(second) == {"handle": "ADOPT_IN_PROGRESS"}
        with service.db.write() as tx:
            tx.execute(delete(schema.resource).where(schema.resource.c.key == row.key))
        service.live(60.0)
        assert service.states(second) == {"handle": "ADOPT_COMPLETE"}
    else:
        assert service.states(second) == {"handle": "ADOPT_FAILED"}
        assert "is handle of stack" in service.row(second, "handle").reason
