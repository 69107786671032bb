"""Adopting stacks: what is there is taken over as it is, and converges like any other from then on (CV16)."""

import json
from itertools import pairwise
from typing import Any

import pytest

from homeostat.api.services.stacks import Quotas
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import Weather
from homeostat.convergence.loader import load
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected
from homeostat.model.observed import Observation
from homeostat.model.plan import Why
from homeostat.model.status import resource_may
from homeostat.planner.report.explain import ShardStatus, explain
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.wait_conditions import HANDLE
from tests.component.running import Service, condition, double, group, handle, server, template, volume

VALUE = "OS::Heat::Value"
CHILD = "{heat_template_version: 2018-08-31, resources: {inner: {type: OS::Cinder::Volume, properties: {size: 1}}}}"


def there(service: Service, kind: str, **spec: Any) -> str:
    """A thing that another service has made."""
    (made,) = service.cloud.create(kind, [Creation(f"theirs-{len(service.cloud.things())}", spec)])
    assert isinstance(made, Observation)
    return made.handle


def entry(name: str, type_name: str, id: str | None, **more: Any) -> dict[str, Any]:
    """As upstream writes it (rest-api.md section 2.3)."""
    state = {"action": "CREATE", "status": "COMPLETE", "metadata": {}, "resource_data": {}}
    return {"name": name, "resource_id": id, "type": type_name, **state, **more}


def document(resources: dict[str, Any], entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    environment = {"parameters": {}, "parameter_defaults": {}, "resource_registry": {}, "encrypted_param_names": []}
    return {
        "name": "old",
        "id": "11111111-2222-3333-4444-555555555555",
        "action": "CREATE",
        "status": "COMPLETE",
        "project_id": "p",
        "stack_user_project_id": "users",
        "tags": None,
        "environment": {**environment, **more.pop("environment", {})},
        "files": more.pop("files", {}),
        "template": template(resources),
        "resources": entries,
        **more,
    }


def moved(service: Service, stack_id: str) -> dict[str, Any]:
    """The document of a stack that is abandoned."""
    told = service.moving.abandon(stack_id)
    service.rest()
    return json.loads(json.dumps(told))


# -- things of the cloud -----------------------------------------------------------------------------------------------


def test_what_is_there_is_taken_over_and_not_touched() -> None:
    service = Service()
    web, disk = there(service, "server", image="i", flavor="small", name="w"), there(service, "volume", size=1)
    before = {id: dict(thing) for id, thing in service.cloud.things().items()}
    resources = {"web": server(), "disk": volume()}
    told = document(
        resources, {"web": entry("web", "OS::Nova::Server", web), "disk": entry("disk", "OS::Cinder::Volume", disk)}
    )

    stack_id = service.adopt(told)
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.states(stack_id) == {"web": "ADOPT_COMPLETE", "disk": "ADOPT_COMPLETE"}
    assert service.story(stack_id, "web") == ["web ADOPT_IN_PROGRESS", "web ADOPT_COMPLETE"]
    assert (service.row(stack_id, "web").handle, service.row(stack_id, "disk").handle) == (web, disk)
    service.live(300.0)
    assert service.cloud.things() == before


@pytest.mark.shows("CV16")
def test_it_is_a_stack_like_any_other_from_then_on() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)}))
    service.rest()

    service.cloud.vanish(disk)
    service.live(200.0)
    healed = service.row(stack_id, "disk").handle
    assert healed != disk
    assert healed in service.cloud.things("volume")

    service.update(stack_id, {"disk": volume(size=2)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    service.delete(stack_id)
    service.rest()
    assert not service.cloud.things("volume")


def test_what_differs_is_mended_once_all_is_adopted() -> None:
    service = Service(Weather(build_s=20.0))
    disk = there(service, "volume", size=1, description="theirs")
    web = there(service, "server", image="i", flavor="small")
    resources = {"disk": volume(description="ours"), "web": server()}
    entries = {"disk": entry("disk", "OS::Cinder::Volume", disk), "web": entry("web", "OS::Nova::Server", web)}
    service.live(25.0)
    (late,) = service.cloud.create("server", [Creation("late", {"image": "i", "flavor": "small"})])
    entries["web"]["resource_id"] = late.handle  # type: ignore[union-attr]

    stack_id = service.adopt(document(resources, entries))
    service.live(5.0)
    assert service.state(stack_id) == "ADOPT_IN_PROGRESS"
    assert service.cloud.things("volume")[disk]["description"] == "theirs"

    service.rest()
    service.live(5.0)
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.cloud.things("volume")[disk]["description"] == "ours"


def test_a_stopped_server_is_adopted_and_started_then() -> None:
    service = Service()
    web = there(service, "server", image="i", flavor="small")
    service.cloud.change(web, status="stopped")

    stack_id = service.adopt(document({"web": server()}, {"web": entry("web", "OS::Nova::Server", web)}))
    service.rest()
    service.live(30.0)

    assert service.story(stack_id, "web")[:2] == ["web ADOPT_IN_PROGRESS", "web ADOPT_COMPLETE"]
    assert service.cloud.things("server")[web]["status"] == "active"


def test_resources_without_data_are_created() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    told = document(
        {"disk": volume(), "new": volume(), "none": volume()},
        {"disk": entry("disk", "OS::Cinder::Volume", disk), "none": entry("none", "OS::Cinder::Volume", None)},
    )

    stack_id = service.adopt(told)
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.states(stack_id) == {"disk": "ADOPT_COMPLETE", "new": "CREATE_COMPLETE", "none": "CREATE_COMPLETE"}


def test_dependants_read_what_was_adopted() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    told = document(
        {"disk": volume(), "says": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "disk"}}}},
        {"disk": entry("disk", "OS::Cinder::Volume", disk)},
    )

    stack_id = service.adopt(told)
    service.rest()

    assert service.attribute(stack_id, "says", "value") == disk


def test_what_is_not_there_fails_and_is_made_when_somebody_asks() -> None:
    service = Service()
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", "volume-999")}))
    service.rest()

    assert service.state(stack_id) == "ADOPT_FAILED"
    reason = service.stack(stack_id).reason
    assert reason.startswith("Resource ADOPT failed: NotFound: resources.disk: The OS::Cinder::Volume (volume-999)")
    assert "to have it made" in reason
    service.live(100.0)
    assert not service.cloud.things("volume")

    service.update(stack_id, {"disk": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_after_a_failure_the_rest_is_adopted_by_an_update() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    resources = {"gone": volume(), "disk": {**volume(), "depends_on": "gone"}}
    entries = {
        "gone": entry("gone", "OS::Cinder::Volume", "volume-999"),
        "disk": entry("disk", "OS::Cinder::Volume", disk),
    }
    stack_id = service.adopt(document(resources, entries))
    service.rest()
    assert service.states(stack_id) == {"gone": "ADOPT_FAILED", "disk": "INIT_COMPLETE"}

    service.update(stack_id, resources)
    service.rest()

    assert service.states(stack_id) == {"gone": "CREATE_COMPLETE", "disk": "ADOPT_COMPLETE"}
    assert service.row(stack_id, "disk").handle == disk


@pytest.mark.parametrize("given", ["a server", "a stack"])
def test_what_was_given_is_let_go_of_when_an_update_wants_something_else(given: str) -> None:
    service = Service()
    kept = there(service, "server", image="i", flavor="small", name="old")
    child = document({"inner": server()}, {"inner": entry("inner", "OS::Nova::Server", kept)}, name="old-child")
    before, told = {
        "a server": (server(), entry("it", "OS::Nova::Server", kept)),
        "a stack": ({"type": "child.yaml"}, child),
    }[given]
    resources = {"gone": volume(), "it": {**before, "depends_on": "gone"}}
    entries = {"gone": entry("gone", "OS::Cinder::Volume", "volume-999"), "it": told}
    stack_id = service.adopt(document(resources, entries, files={"child.yaml": CHILD}))
    service.rest()
    assert service.states(stack_id) == {"gone": "ADOPT_FAILED", "it": "INIT_COMPLETE"}

    service.update(stack_id, {"gone": volume(), "it": {**volume(), "depends_on": "gone"}})
    service.rest()
    service.live(100.0)

    assert service.states(stack_id) == {"gone": "CREATE_COMPLETE", "it": "CREATE_COMPLETE"}
    assert service.row(stack_id, "it").handle in service.cloud.things("volume")
    assert service.servers() == [kept]


def test_a_cloud_that_does_not_answer_makes_it_wait() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    service.cloud.weather.faults.unreachable = 1.0
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)}))
    service.live(60.0)
    assert service.state(stack_id) == "ADOPT_IN_PROGRESS"

    service.cloud.weather.faults.unreachable = 0.0
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"


@pytest.mark.parametrize("way", ["rollback", "delete", "abandon"])
def test_whatever_becomes_of_a_failed_adoption_nothing_that_was_given_is_deleted(way: str) -> None:
    """engine-semantics.md section 4: the rollback of an adoption abandons. What was made for it goes."""
    service = Service()
    disk, later = there(service, "volume", size=1), there(service, "volume", size=3)
    resources = {
        "disk": volume(),
        "made": {**volume(size=2), "depends_on": "disk"},
        "gone": {**volume(), "depends_on": "made"},
        "later": {**volume(size=3), "depends_on": "gone"},
    }
    entries = {
        name: entry(name, "OS::Cinder::Volume", id)
        for name, id in (("disk", disk), ("gone", "volume-999"), ("later", later))
    }
    stack_id = service.adopt(document(resources, entries), disable_rollback=way != "rollback")
    service.rest()
    assert "ADOPT_FAILED" in [state.split(" ")[1] for state in service.story(stack_id, "gone")]

    if way == "delete":
        service.delete(stack_id)
    if way == "abandon":
        service.moving.abandon(stack_id)
    service.rest()
    service.live(700.0)

    assert service.state(stack_id) == {"rollback": "ROLLBACK_COMPLETE"}.get(way, "DELETE_COMPLETE")
    sizes = sorted(thing["size"] for thing in service.cloud.things("volume").values())
    assert sizes == ([1, 2, 3] if way == "abandon" else [1, 3])


@pytest.mark.parametrize("way", ["rollback", "delete"])
def test_members_that_were_given_are_not_deleted_either(way: str) -> None:
    """The nested stack is complete; the whole is not."""
    service = Service()
    ids = {name: there(service, "server", image="i", flavor="small", name=f"m{name}") for name in ("0", "1")}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    resources = {"grp": group(3), "gone": {**volume(), "depends_on": "grp"}}
    told = document(resources, {"grp": document({}, entries), "gone": entry("gone", "OS::Cinder::Volume", "volume-9")})
    stack_id = service.adopt(told, disable_rollback=way == "delete")
    service.rest()

    if way == "delete":
        service.delete(stack_id)
        service.rest()
    service.live(700.0)

    assert service.state(stack_id) == {"rollback": "ROLLBACK_COMPLETE"}.get(way, "DELETE_COMPLETE")
    assert service.servers() == sorted(ids.values())


def test_what_belongs_to_others_is_looked_at_as_ever() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    told = document(
        {"disk": {**volume(), "external_id": disk}}, {"disk": entry("disk", "OS::Cinder::Volume", "volume-old")}
    )

    stack_id = service.adopt(told)
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.row(stack_id, "disk").handle == disk
    service.delete(stack_id)
    service.rest()
    assert list(service.cloud.things("volume")) == [disk]


def lawful(service: Service, stack_id: str, name: str) -> bool:
    """Does the table of states know what became of a resource?"""
    states = [tuple(each.split()[1].split("_", 1)) for each in service.story(stack_id, name)]
    return all(resource_may(one, other) for one, other in pairwise([("INIT", "COMPLETE"), *states]))


def test_what_is_being_taken_over_is_so_before_it_may_not_become_somebody_elses() -> None:
    """Found by the simulation (seed 30201881): it failed with what it was given, and was adopted after an update."""
    service = Service()
    disk = there(service, "volume", size=1)
    service.cloud.weather.faults.unreachable = 1.0
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)}))
    assert service.states(stack_id) == {"disk": "ADOPT_IN_PROGRESS"}
    service.update(stack_id, {"disk": {**volume(), "external_id": "volume-999"}})
    service.cloud.weather.faults.unreachable = 0.0
    service.rest()
    assert service.story(stack_id, "disk") == ["disk ADOPT_IN_PROGRESS", "disk ADOPT_COMPLETE", "disk UPDATE_FAILED"]

    service.update(stack_id, {"disk": volume()})
    service.rest()

    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert list(service.cloud.things("volume")) == [service.row(stack_id, "disk").handle] == [disk]
    assert lawful(service, stack_id, "disk")


@pytest.mark.parametrize("why", ["not there", "wrong values"])
@pytest.mark.parametrize("theirs", ["somebody else's", "misspelt"])
def test_what_could_not_be_taken_over_may_stand_for_something_else(why: str, theirs: str) -> None:
    service = Service()
    disk, other = there(service, "volume", size=1), there(service, "volume", size=2)
    says = {"type": VALUE, "properties": {"value": "x" if why == "wrong values" else 1}}
    mine = {"says": says, "disk": volume(size={"get_attr": ["says", "value"]})}
    id = "volume-999" if why == "not there" else disk
    stack_id = service.adopt(document(mine, {"disk": entry("disk", "OS::Cinder::Volume", id)}))
    service.rest()
    assert service.states(stack_id)["disk"] == "ADOPT_FAILED"

    taken = {"somebody else's": other}.get(theirs, theirs)
    service.update(stack_id, {"says": says, "disk": {**volume(), "external_id": taken}})
    service.rest()
    assert service.state(stack_id) == ("UPDATE_COMPLETE" if taken == other else "UPDATE_FAILED")
    assert service.row(stack_id, "disk").handle == taken
    service.update(stack_id, {"says": says, "disk": volume()})
    service.rest()

    assert service.state(stack_id) == ("UPDATE_FAILED" if taken == other else "UPDATE_COMPLETE")
    assert lawful(service, stack_id, "disk")
    service.delete(stack_id)
    service.rest()
    assert list(service.cloud.things("volume")) == [disk, other]


def test_what_is_still_to_be_taken_over_is_so_when_an_id_of_others_turned_out_to_be_none() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    gone, says = volume(), {"type": VALUE, "properties": {"value": {"no": "text"}}}
    entries = {"gone": entry("gone", "OS::Cinder::Volume", "volume-999")}
    entries["disk"] = entry("disk", "OS::Cinder::Volume", disk)
    resources = {"says": says, "gone": gone, "disk": {**volume(), "depends_on": "gone"}}
    stack_id = service.adopt(document(resources, entries))
    service.rest()
    assert service.states(stack_id)["disk"] == "INIT_COMPLETE"

    theirs = {**server(), "external_id": {"get_attr": ["says", "value"]}}
    service.update(stack_id, {"says": says, "gone": gone, "disk": theirs})
    service.rest()
    assert "external_id must be a text" in service.stack(stack_id).reason
    service.update(stack_id, resources)
    service.rest()

    assert (service.state(stack_id), service.row(stack_id, "disk").handle) == ("UPDATE_COMPLETE", disk)
    assert lawful(service, stack_id, "disk")


def test_a_key_pair_keeps_its_private_key() -> None:
    service = Service()
    there(service, "keypair", name="k", public_key="ssh-rsa A")
    key = {"type": "OS::Nova::KeyPair", "properties": {"name": "k", "save_private_key": True}}
    told = document({"k": key}, {"k": entry("k", "OS::Nova::KeyPair", "k", resource_data={"private_key": "secret"})})

    stack_id = service.adopt(told)
    service.rest()
    service.live(200.0)

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.attribute(stack_id, "k", "private_key") == "secret"


def test_it_is_told_what_comes_next() -> None:
    """CV19: what waits for others is to be adopted, not created."""
    service = Service(Weather(build_s=30.0))
    first, then = there(service, "server", image="i", flavor="small"), there(service, "volume", size=1)
    resources = {"first": server(), "then": {**volume(), "depends_on": "first"}}
    entries = {"first": entry("first", "OS::Nova::Server", first), "then": entry("then", "OS::Cinder::Volume", then)}
    stack_id = service.adopt(document(resources, entries))

    with service.db.read() as tx:
        world = load(tx, DesiredGraphs(), stack_id, 0, service.clock.now()).world
    now = service.clock.now()
    told = {each.name: (each.why, each.next) for each in explain(world, ShardStatus(now), now)}

    assert told["then"] == (Why.REQUIRES, "adopt")
    assert told["first"][0] is Why.BUILDING


# -- what is given beside the document ---------------------------------------------------------------------------------


def test_parameters_of_the_document_are_overridden_one_by_one() -> None:
    """engine-semantics.md section 4."""
    service = Service()
    value = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"list_join": ["", [{"get_param": "a"}, {"get_param": "b"}]]}},
    }
    told = document({"says": value}, {}, environment={"parameters": {"a": "1", "b": "2"}})
    told["template"]["parameters"] = {"a": {"type": "string"}, "b": {"type": "string"}}

    stack_id = service.adopt(told, parameters={"b": "3"})
    service.rest()

    assert service.attribute(stack_id, "says", "value") == "13"


def test_a_document_may_be_text_and_a_template_given_beside_it() -> None:
    service = Service()
    disk = there(service, "volume", size=1)
    told = document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)})
    del told["template"]

    stack_id = service.adopt(json.dumps(told), template=template({"disk": volume(), "more": volume()}))
    service.rest()

    assert service.states(stack_id) == {"disk": "ADOPT_COMPLETE", "more": "CREATE_COMPLETE"}


# -- what lives in the service -----------------------------------------------------------------------------------------


def test_a_random_string_keeps_its_value() -> None:
    service = Service()
    word = {"type": "OS::Heat::RandomString"}
    told = document(
        {"w": word}, {"w": entry("w", "OS::Heat::RandomString", "old-w-abc", resource_data={"value": "XYZ"})}
    )

    stack_id = service.adopt(told)
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
    told = document(resources, {name: entry(name, resources[name]["type"], id) for name, id in before.items()})
    for _ in range(2):
        service = Service()
        stack_id = service.adopt(told)
        service.rest()
        assert {name: service.row(stack_id, name).handle for name in resources} == before
        told = moved(service, stack_id)
        assert {name: each["resource_id"] for name, each in told["resources"].items()} == before
    stack_id = service.adopt(told)
    service.update(stack_id, {**resources, "v": {"type": VALUE, "properties": {"value": "2"}}})
    service.rest()
    assert {name: service.row(stack_id, name).handle for name in resources} == before
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_a_handle_remembers_what_it_was_told_before() -> None:
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
    told = moved(service, stack_id)

    again = service.adopt(told)
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
    (kept,) = [each for each in service.kept(CONFIG) if each.token.count("-") == 1]
    configs = len(service.kept(CONFIG))

    again = service.adopt(moved(service, stack_id))
    service.rest()

    assert service.state(again) == "ADOPT_COMPLETE"
    assert service.row(again, "config").handle == kept.id
    assert len(service.kept(CONFIG)) == configs


# -- nested stacks -----------------------------------------------------------------------------------------------------


def test_a_nested_stack_is_adopted_with_what_is_in_it() -> None:
    service = Service()
    inner = there(service, "volume", size=1)
    nested = document({"inner": volume()}, {"inner": entry("inner", "OS::Cinder::Volume", inner)}, name="old-child-xyz")
    told = document({"child": {"type": "child.yaml"}}, {"child": nested}, files={"child.yaml": CHILD})

    stack_id = service.adopt(told)
    service.rest()

    child = service.child()
    assert (service.state(stack_id), service.state(child.id)) == ("ADOPT_COMPLETE", "ADOPT_COMPLETE")
    assert service.row(child.id, "inner").handle == inner
    assert list(service.cloud.things("volume")) == [inner]


def test_members_of_a_group_keep_their_numbers() -> None:
    """The document of upstream's group: its names are numbers, those once removed are left out."""
    service = Service()
    ids = {name: there(service, "server", image="i", flavor="small", name=f"m{name}") for name in ("0", "2", "3")}
    members = {name: {"type": "OS::Nova::Server"} for name in ids}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    told = document({"grp": group(3)}, {"grp": document(members, entries, name="old-grp")})

    stack_id = service.adopt(told)
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert {row.name: row.handle for row in service.rows(service.child().id)} == ids
    assert len(service.servers()) == 3


def test_members_with_random_names_get_numbers_and_a_scaled_group_keeps_its_size() -> None:
    """Upstream gives members of an AutoScalingGroup random names."""
    service = Service()
    ids = {name: there(service, "server", image="i", flavor="small") for name in ("qx3k", "a7fz", "mm2p")}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    asg = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 5, "desired_capacity": 2, "resource": server()},
    }
    told = document({"asg": asg}, {"asg": document({name: server() for name in ids}, entries)})

    stack_id = service.adopt(told)
    service.rest()
    service.live(100.0)

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    found = {row.name: row.handle for row in service.rows(service.child().id)}
    assert found == {"0": ids["a7fz"], "1": ids["mm2p"], "2": ids["qx3k"]}
    assert service.servers() == sorted(ids.values())


def test_a_group_made_in_batches_has_all_members_of_the_document_at_once() -> None:
    """Those that the document does not have are made in batches after that."""
    service = Service()
    batches = {"update_policy": {"batch_create": {"max_batch_size": 2, "pause_time": 100}}}
    first_id = service.create({"grp": {**group(3), **batches}})
    service.live(300.0)
    before = {row.name: row.handle for row in service.rows(service.child().id)}
    told = moved(service, first_id)
    told["template"] = template({"grp": {**group(6), **batches}})

    stack_id = service.adopt(told)
    service.live(50.0)
    assert {row.name: row.handle for row in service.rows(service.child().id)} == before
    service.live(100.0)
    assert len(service.servers()) == 5
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    after = {row.name: row.handle for row in service.rows(service.child().id)}
    assert (len(after), {name: after[name] for name in before}) == (6, before)


def test_a_group_made_in_batches_moves_as_it_is() -> None:
    service = Service()
    batches = {"update_policy": {"batch_create": {"max_batch_size": 2}}}
    first_id = service.create({"grp": {**group(3), **batches}})
    service.live(60.0)
    before = {id: dict(thing) for id, thing in service.cloud.things().items()}

    stack_id = service.adopt(moved(service, first_id))
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert len(before) == 3
    assert service.cloud.things() == before


def test_a_member_that_the_group_would_not_have_is_told() -> None:
    service = Service()
    ids = {name: there(service, "server", image="i", flavor="small") for name in ("0", "1")}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}

    stack_id = service.adopt(document({"grp": group(1)}, {"grp": document({}, entries)}))
    service.rest()

    assert service.state(stack_id) == "ADOPT_FAILED"
    assert "the document has 1, which would not be in" in service.stack(stack_id).reason
    assert len(service.servers()) == 2


# -- our own documents -------------------------------------------------------------------------------------------------


def test_a_stack_moves_to_another_service_and_back() -> None:
    """Two services on one cloud: nothing is made, changed or deleted on the way."""
    first = Service()
    resources = {
        "web": server(),
        "grp": group(2),
        "word": {"type": "OS::Heat::RandomString"},
        "child": {"type": "child.yaml"},
        "handle": handle(),
        "wait": condition(),
    }
    stack_id = first.create(resources, files={"child.yaml": CHILD})
    first.signal(stack_id, "handle", id="1")
    first.rest()
    word = first.attribute(stack_id, "word", "value")
    before = {id: dict(thing) for id, thing in first.cloud.things().items()}
    second = Service(cloud=lambda _: first.cloud)

    there_id = second.adopt(moved(first, stack_id))
    second.rest()
    assert second.state(there_id) == "ADOPT_COMPLETE"
    assert second.attribute(there_id, "word", "value") == word
    back_id = first.adopt(moved(second, there_id), "back")
    first.rest()

    assert first.state(back_id) == "ADOPT_COMPLETE"
    assert first.attribute(back_id, "word", "value") == word
    assert first.cloud.things() == before
    first.delete(back_id)
    first.rest()
    assert not first.cloud.things()


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_what_another_stack_has_is_refused() -> None:
    service = Service()
    owner = service.create({"disk": volume()})
    service.rest()
    id = service.row(owner, "disk").handle
    told = document({"mine": volume()}, {"mine": entry("mine", "OS::Cinder::Volume", id)})

    with pytest.raises(Rejected, match=f"resources.mine.resource_id: {id} is disk of stack web already") as refused:
        service.adopt(told)

    assert refused.value.code == 400
    assert [each.name for each in service.stacks()] == ["web"]


def test_what_is_nested_in_another_stack_is_refused_when_it_comes_to_it() -> None:
    service = Service()
    owner = service.create({"disk": volume()})
    service.rest()
    id = service.row(owner, "disk").handle
    nested = document({"inner": volume()}, {"inner": entry("inner", "OS::Cinder::Volume", id)})
    told = document({"child": {"type": "child.yaml"}}, {"child": nested}, files={"child.yaml": CHILD})

    stack_id = service.adopt(told)
    service.rest()

    assert service.state(stack_id) == "ADOPT_FAILED"
    assert "is disk of stack web already" in service.stack(stack_id).reason


DISK = entry("disk", "OS::Cinder::Volume", "volume-1")
DEEP: dict[str, Any] = {"disk": DISK}
for _ in range(8):
    DEEP = {"child": {"resources": DEEP}}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"resources": []}, "Invalid adopt data: resources: it must be a map"),
        ({"resources": {"disk": "volume-1"}}, "resources.disk: it must be a map"),
        ({"resources": {"disk": {**DISK, "resource_id": 7}}}, "resources.disk.resource_id: it must be text, not int"),
        ({"resources": {"disk": {**DISK, "resource_id": "x" * 2000}}}, "at most 1024 characters"),
        (
            {"resources": {"disk": {**DISK, "resource_data": []}}},
            "resources.disk.resource_data: it must be a map",
        ),
        ({"resources": {"disk": {**DISK, "type": "OS::Nova::Server"}}}, "resources.disk.type: it is of type"),
        ({"resources": {"other": DISK}}, "resources.other: the template has no such resource"),
        ({"resources": {"disk": {"resources": {"0": DISK}}}}, "resources.disk: a OS::Cinder::Volume is no stack here"),
        ({"resources": DEEP}, "Recursion depth exceeds"),
        ({"resources": {"disk": DISK, "again": DISK}}, "resources.again.resource_id: volume-1 is that of disk, too"),
        ({"environment": {"strange": {}}}, "strange"),
        ({"files": {"a": 1}}, "files.a: it must be text"),
        ({"template": None}, "No template specified"),
        ({"template": {"heat_template_version": "2018-08-31", "resources": {"disk": {"type": "X::Y"}}}}, "X::Y"),
    ],
)
def test_a_document_that_is_wrong_is_refused_with_its_place(wrong: dict[str, Any], told: str) -> None:
    service = Service()
    given = {**document({"disk": volume(), "again": volume()}, {"disk": DISK}), **wrong}

    with pytest.raises(Rejected) as refused:
        service.adopt(given)

    assert told in str(refused.value)
    assert refused.value.code == 400
    assert not service.stacks()


@pytest.mark.parametrize("text", ["['Test']", "{", 7, ["a"]])
def test_what_is_no_document_is_refused(text: Any) -> None:
    with pytest.raises(Rejected, match=r"(?i)adopt data") as refused:
        Service().adopt(text)
    assert refused.value.code == 400


def test_a_group_needs_a_document_of_its_own() -> None:
    service = Service()
    told = document({"grp": group(1)}, {"grp": entry("grp", "OS::Heat::ResourceGroup", "some-stack")})

    with pytest.raises(Rejected, match=r"resources.grp: a OS::Heat::ResourceGroup is a stack of its own here"):
        service.adopt(told)


def test_too_many_resources_are_refused() -> None:
    service = Service()
    service.intake.quotas = Quotas(resources_max=1)

    with pytest.raises(Rejected, match="more than 1 resources"):
        service.adopt(document({"a": volume()}, {"a": DISK, "b": DISK}))


def test_the_operator_may_switch_it_off() -> None:
    service = Service()
    service.intake.quotas = Quotas(adopt=False)

    with pytest.raises(Rejected, match="Stack Adopt is not supported") as refused:
        service.adopt(document({}, {}))
    assert refused.value.fault == "NotSupported"


def test_records_of_handles_do_not_stay_behind() -> None:
    service = Service()
    told = moved(service, service.create({"handle": handle()}))
    again = service.adopt(told)
    service.rest()
    service.delete(again)
    service.rest()

    assert not service.kept(HANDLE)
