"""Adopting nested stacks and groups, and documents of our own."""

import pytest

from tests.component.adopted import CHILD, document, entry, foreign, moved
from tests.component.running import Service, condition, group, handle, server, template, volume

# -- nested stacks -----------------------------------------------------------------------------------------------------


def test_a_nested_stack_is_adopted_with_what_is_in_it() -> None:
    service = Service()
    inner = foreign(service, "volume", size=1)
    nested = document({"inner": volume()}, {"inner": entry("inner", "OS::Cinder::Volume", inner)}, name="old-child-xyz")
    source = document({"child": {"type": "child.yaml"}}, {"child": nested}, files={"child.yaml": CHILD})

    stack_id = service.adopt(source)
    service.rest()

    child = service.child()
    assert (service.state(stack_id), service.state(child.id)) == ("ADOPT_COMPLETE", "ADOPT_COMPLETE")
    assert service.row(child.id, "inner").handle == inner
    assert list(service.cloud.things("volume")) == [inner]


def test_members_of_a_group_keep_their_numbers() -> None:
    """The document of upstream's group: its names are numbers, those once removed are left out."""
    service = Service()
    ids = {name: foreign(service, "server", image="i", flavor="small", name=f"m{name}") for name in ("0", "2", "3")}
    members = {name: {"type": "OS::Nova::Server"} for name in ids}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    source = document({"grp": group(3)}, {"grp": document(members, entries, name="old-grp")})

    stack_id = service.adopt(source)
    service.rest()

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert {row.name: row.handle for row in service.rows(service.child().id)} == ids
    assert len(service.servers()) == 3


def test_members_with_random_names_get_numbers_and_a_scaled_group_keeps_its_size() -> None:
    """Upstream gives members of an AutoScalingGroup random names."""
    service = Service()
    ids = {name: foreign(service, "server", image="i", flavor="small") for name in ("qx3k", "a7fz", "mm2p")}
    entries = {name: entry(name, "OS::Nova::Server", id) for name, id in ids.items()}
    asg = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 5, "desired_capacity": 2, "resource": server()},
    }
    source = document({"asg": asg}, {"asg": document({name: server() for name in ids}, entries)})

    stack_id = service.adopt(source)
    service.rest()
    service.live(100.0)

    assert service.state(stack_id) == "ADOPT_COMPLETE"
    found = {row.name: row.handle for row in service.rows(service.child().id)}
    assert found == {"0": ids["a7fz"], "1": ids["mm2p"], "2": ids["qx3k"]}
    assert service.servers() == sorted(ids.values())


@pytest.mark.parametrize(
    ("bounds", "state", "servers"),
    [((2, 5), "ADOPT_COMPLETE", 2), ((0, 0), "ADOPT_FAILED", 1)],
    ids=["too few: made", "too many: refused"],
)
def test_a_scaled_group_is_adopted_within_its_bounds(bounds: tuple[int, int], state: str, servers: int) -> None:
    """Found by the simulation: a group that was abandoned while it changed had a size that it never has."""
    service = Service()
    entries = {"0": entry("0", "OS::Nova::Server", foreign(service, "server", image="i", flavor="small"))}
    low, high = bounds
    asg = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": low, "max_size": high, "resource": server()},
    }
    source = document({"asg": asg}, {"asg": document({"0": server()}, entries)})

    stack_id = service.adopt(source)
    service.rest()

    assert service.state(stack_id) == state
    assert len(service.servers()) == servers
    assert state == "ADOPT_COMPLETE" or "adopt the stack as the document has it" in service.stack(stack_id).reason


def test_a_group_made_in_batches_has_all_members_of_the_document_at_once() -> None:
    """Those that the document does not have are made in batches after that."""
    service = Service()
    batches = {"update_policy": {"batch_create": {"max_batch_size": 2, "pause_time": 100}}}
    first_id = service.create({"grp": {**group(3), **batches}})
    service.live(300.0)
    before = {row.name: row.handle for row in service.rows(service.child().id)}
    source = moved(service, first_id)
    source["template"] = template({"grp": {**group(6), **batches}})

    stack_id = service.adopt(source)
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


def test_a_member_that_the_group_would_not_have_is_reported() -> None:
    service = Service()
    ids = {name: foreign(service, "server", image="i", flavor="small") for name in ("0", "1")}
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
