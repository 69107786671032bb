"""Adopting stacks: what is there is taken over as it is, and converges like any other from then on (CV16)."""

import json

import pytest

from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.stages.loading import load_world
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.waiting import Why
from homeostat.planner.report.explain import ShardStatus, explain
from tests.component.adopted import CHILD, VALUE, document, entry, foreign, moved
from tests.component.running import Service, group, server, template, volume

# -- things of the cloud -----------------------------------------------------------------------------------------------


def test_what_is_there_is_taken_over_and_not_touched() -> None:
    service = Service()
    web, disk = (
        foreign(service, "server", image="i", flavor="small", name="w"),
        foreign(service, "volume", size=1),
    )
    before = {id: dict(thing) for id, thing in service.cloud.things().items()}
    resources = {"web": server(), "disk": volume()}
    source = document(
        resources, {"web": entry("web", "OS::Nova::Server", web), "disk": entry("disk", "OS::Cinder::Volume", disk)}
    )

    stack_id = service.adopt(source)
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
    disk = foreign(service, "volume", size=1)
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
    service = Service(CloudBehaviour(build_s=20.0))
    disk = foreign(service, "volume", size=1, description="theirs")
    web = foreign(service, "server", image="i", flavor="small")
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
    web = foreign(service, "server", image="i", flavor="small")
    service.cloud.change(web, status="stopped")

    stack_id = service.adopt(document({"web": server()}, {"web": entry("web", "OS::Nova::Server", web)}))
    service.rest()
    service.live(30.0)

    assert service.story(stack_id, "web")[:2] == ["web ADOPT_IN_PROGRESS", "web ADOPT_COMPLETE"]
    assert service.cloud.things("server")[web]["status"] == "active"


def test_resources_without_data_are_created() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
    source = document(
        {"disk": volume(), "new": volume(), "none": volume()},
        {"disk": entry("disk", "OS::Cinder::Volume", disk), "none": entry("none", "OS::Cinder::Volume", None)},
    )

    stack_id = service.adopt(source)
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.states(stack_id) == {"disk": "ADOPT_COMPLETE", "new": "CREATE_COMPLETE", "none": "CREATE_COMPLETE"}


def test_dependants_read_what_was_adopted() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
    source = document(
        {"disk": volume(), "says": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "disk"}}}},
        {"disk": entry("disk", "OS::Cinder::Volume", disk)},
    )

    stack_id = service.adopt(source)
    service.rest()

    assert service.attribute(stack_id, "says", "value") == disk


def test_what_is_not_there_fails_and_is_made_when_a_user_asks() -> None:
    service = Service()
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", "volume-999")}))
    service.rest()

    assert service.state(stack_id) == "ADOPT_FAILED"
    reason = service.stack(stack_id).reason
    assert reason.startswith("Resource ADOPT failed: NotFound: resources.disk: The OS::Cinder::Volume (volume-999)")
    assert "converge the stack to create it" in reason
    service.live(100.0)
    assert not service.cloud.things("volume")

    service.update(stack_id, {"disk": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.cloud.things("volume")) == 1


def test_after_a_failure_the_rest_is_adopted_by_an_update() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
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
    kept = foreign(service, "server", image="i", flavor="small", name="old")
    child = document({"inner": server()}, {"inner": entry("inner", "OS::Nova::Server", kept)}, name="old-child")
    before, source = {
        "a server": (server(), entry("it", "OS::Nova::Server", kept)),
        "a stack": ({"type": "child.yaml"}, child),
    }[given]
    resources = {"gone": volume(), "it": {**before, "depends_on": "gone"}}
    entries = {"gone": entry("gone", "OS::Cinder::Volume", "volume-999"), "it": source}
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
    disk = foreign(service, "volume", size=1)
    service.cloud.behaviour.faults.unreachable = 1.0
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)}))
    service.live(60.0)
    assert service.state(stack_id) == "ADOPT_IN_PROGRESS"

    service.cloud.behaviour.faults.unreachable = 0.0
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"


@pytest.mark.parametrize("way", ["rollback", "delete", "abandon"])
def test_whatever_becomes_of_a_failed_adoption_nothing_that_was_given_is_deleted(way: str) -> None:
    """The rollback of an adoption abandons: what was made for it goes."""
    service = Service()
    disk, later = foreign(service, "volume", size=1), foreign(service, "volume", size=3)
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
    ids = {name: foreign(service, "server", image="i", flavor="small", name=f"m{name}") for name in ("0", "1")}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    resources = {"grp": group(3), "gone": {**volume(), "depends_on": "grp"}}
    source = document(
        resources, {"grp": document({}, entries), "gone": entry("gone", "OS::Cinder::Volume", "volume-9")}
    )
    stack_id = service.adopt(source, disable_rollback=way == "delete")
    service.rest()

    if way == "delete":
        service.delete(stack_id)
        service.rest()
    service.live(700.0)

    assert service.state(stack_id) == {"rollback": "ROLLBACK_COMPLETE"}.get(way, "DELETE_COMPLETE")
    assert service.servers() == sorted(ids.values())


def test_what_belongs_to_others_is_looked_at_as_ever() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
    source = document(
        {"disk": {**volume(), "external_id": disk}}, {"disk": entry("disk", "OS::Cinder::Volume", "volume-old")}
    )

    stack_id = service.adopt(source)
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.row(stack_id, "disk").handle == disk
    service.delete(stack_id)
    service.rest()
    assert list(service.cloud.things("volume")) == [disk]


def test_what_belongs_to_others_is_not_taken_over_where_an_update_in_vain_wanted_one_of_its_own() -> None:
    """Found by the simulation (seed 39008490): it was taken over with the stack, and deleted with it."""
    service = Service()
    theirs = foreign(service, "volume", size=1)
    stack_id = service.create({"disk": {**volume(), "external_id": theirs}})
    service.rest()
    service.update(stack_id, {"disk": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"

    stack_id = service.adopt(moved(service, stack_id))
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert set(service.cloud.things("volume")) == {theirs, service.row(stack_id, "disk").handle}
    assert service.row(stack_id, "disk").handle != theirs
    service.delete(stack_id)
    service.rest()
    assert list(service.cloud.things("volume")) == [theirs]


def test_what_is_being_taken_over_is_so_before_it_may_not_become_another_owners() -> None:
    """Found by the simulation (seed 30201881): it failed with what it was given, and was adopted after an update."""
    service = Service()
    disk = foreign(service, "volume", size=1)
    service.cloud.behaviour.faults.unreachable = 1.0
    stack_id = service.adopt(document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)}))
    assert service.states(stack_id) == {"disk": "ADOPT_IN_PROGRESS"}
    service.update(stack_id, {"disk": {**volume(), "external_id": "volume-999"}})
    service.cloud.behaviour.faults.unreachable = 0.0
    service.rest()
    assert service.story(stack_id, "disk") == ["disk ADOPT_IN_PROGRESS", "disk ADOPT_COMPLETE", "disk UPDATE_FAILED"]

    service.update(stack_id, {"disk": volume()})
    service.rest()

    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert list(service.cloud.things("volume")) == [service.row(stack_id, "disk").handle] == [disk]
    assert service.has_valid_history(stack_id, "disk")


@pytest.mark.parametrize("why", ["not there", "wrong values"])
@pytest.mark.parametrize("theirs", ["another owner's", "misspelt"])
def test_what_could_not_be_taken_over_may_stand_for_something_else(why: str, theirs: str) -> None:
    service = Service()
    disk, other = foreign(service, "volume", size=1), foreign(service, "volume", size=2)
    says = {"type": VALUE, "properties": {"value": "x" if why == "wrong values" else 1}}
    mine = {"says": says, "disk": volume(size={"get_attr": ["says", "value"]})}
    id = "volume-999" if why == "not there" else disk
    stack_id = service.adopt(document(mine, {"disk": entry("disk", "OS::Cinder::Volume", id)}))
    service.rest()
    assert service.states(stack_id)["disk"] == "ADOPT_FAILED"

    taken = {"another owner's": other}.get(theirs, theirs)
    service.update(stack_id, {"says": says, "disk": {**volume(), "external_id": taken}})
    service.rest()
    assert service.state(stack_id) == ("UPDATE_COMPLETE" if taken == other else "UPDATE_FAILED")
    assert service.row(stack_id, "disk").handle == taken
    service.update(stack_id, {"says": says, "disk": volume()})
    service.rest()

    assert service.state(stack_id) == ("UPDATE_FAILED" if taken == other else "UPDATE_COMPLETE")
    assert service.has_valid_history(stack_id, "disk")
    service.delete(stack_id)
    service.rest()
    assert list(service.cloud.things("volume")) == [disk, other]


def test_what_is_still_to_be_taken_over_is_so_when_an_id_of_others_turned_out_to_be_none() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
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
    assert service.has_valid_history(stack_id, "disk")


def test_a_key_pair_keeps_its_private_key() -> None:
    service = Service()
    foreign(service, "keypair", name="k", public_key="ssh-rsa A")
    key = {"type": "OS::Nova::KeyPair", "properties": {"name": "k", "save_private_key": True}}
    source = document({"k": key}, {"k": entry("k", "OS::Nova::KeyPair", "k", resource_data={"private_key": "secret"})})

    stack_id = service.adopt(source)
    service.rest()
    service.live(200.0)

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.attribute(stack_id, "k", "private_key") == "secret"


def test_explain_says_what_comes_next() -> None:
    """CV19: what waits for others is to be adopted, not created."""
    service = Service(CloudBehaviour(build_s=30.0))
    first, then = foreign(service, "server", image="i", flavor="small"), foreign(service, "volume", size=1)
    resources = {"first": server(), "then": {**volume(), "depends_on": "first"}}
    entries = {"first": entry("first", "OS::Nova::Server", first), "then": entry("then", "OS::Cinder::Volume", then)}
    stack_id = service.adopt(document(resources, entries))

    with service.db.read() as tx:
        world = load_world(tx, DesiredGraphs(), stack_id, 0, service.clock.now()).world
    now = service.clock.now()
    source = {each.name: (each.why, each.next) for each in explain(world, ShardStatus(now), now)}

    assert source["then"] == (Why.REQUIRES, "adopt")
    assert source["first"][0] is Why.BUILDING


# -- what is given beside the document ---------------------------------------------------------------------------------


def test_parameters_of_the_document_are_overridden_one_by_one() -> None:
    service = Service()
    value = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"list_join": ["", [{"get_param": "a"}, {"get_param": "b"}]]}},
    }
    source = document({"says": value}, {}, environment={"parameters": {"a": "1", "b": "2"}})
    source["template"]["parameters"] = {"a": {"type": "string"}, "b": {"type": "string"}}

    stack_id = service.adopt(source, parameters={"b": "3"})
    service.rest()

    assert service.attribute(stack_id, "says", "value") == "13"


def test_a_document_may_be_text_and_a_template_given_beside_it() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
    source = document({"disk": volume()}, {"disk": entry("disk", "OS::Cinder::Volume", disk)})
    del source["template"]

    stack_id = service.adopt(json.dumps(source), template=template({"disk": volume(), "more": volume()}))
    service.rest()

    assert service.states(stack_id) == {"disk": "ADOPT_COMPLETE", "more": "CREATE_COMPLETE"}
