"""Several things that depend on each other are lost: all come back, in whatever order it is noticed (CV7, CV13)."""

from collections.abc import Collection, Sequence
from itertools import permutations

import pytest

from homeostat.clouds.port import Answer, ChangeNotice
from homeostat.clouds.port import Creation as Order
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.errors import Terminal
from homeostat.model.status import Action
from homeostat.services.actions import ConvergenceSettings
from tests.component.running import Service, group, server, volume

REFERS = {"volume_attachment": {"volume_id": "volume", "instance_uuid": "server"}}
"""Kind of a thing -> field of its spec -> kind of the thing named there."""


class StrictCloud(SimulatedCloud):
    """Nothing is made that refers to what is not there. refused — kinds of which nothing is made at all."""

    refused: Collection[str] = ()

    def _create(self, kind: str, intent: Order) -> Answer:
        if kind in self.refused:
            return Terminal(f"No {kind} can be made today")
        for field, other in REFERS.get(kind, {}).items():
            if intent.spec[field] not in self.things(other):
                return Terminal(f"There is no {other} {intent.spec[field]!r}")
        return super()._create(kind, intent)


def strict() -> Service:
    return Service(cloud=lambda clock: StrictCloud(clock.now))


WITH_DATA = {
    "srv": server(),
    "vol": volume(),
    "att": {
        "type": "OS::Cinder::VolumeAttachment",
        "properties": {"instance_uuid": {"get_resource": "srv"}, "volume_id": {"get_resource": "vol"}},
    },
}
KINDS = {"srv": "server", "vol": "volume", "att": "volume_attachment"}


def lose(service: Service, stack_id: str, names: Sequence[str]) -> None:
    """All of these vanish in one moment; it is noticed one after the other, and acted on in between."""
    handles = {name: service.row(stack_id, name).handle for name in names}
    service.clock.time += 1.0
    for handle in handles.values():
        service.cloud.vanish(handle)
    for name in names:
        service.observer.notice([ChangeNotice(KINDS[name], handles[name])])
        service.work()


def check_well(service: Service, stack_id: str) -> None:
    assert {state.rpartition("_")[2] for state in service.states(stack_id).values()} == {"COMPLETE"}
    (attachment,) = service.cloud.things("volume_attachment").values()
    assert [attachment["volume_id"], attachment["instance_uuid"]] == [
        *service.cloud.things("volume"),
        *service.cloud.things("server"),
    ]


@pytest.mark.parametrize("lost", [each for size in (2, 3) for each in permutations(WITH_DATA, size)], ids="-".join)
@pytest.mark.shows("CV13")
def test_whatever_depends_on_what_was_lost_with_it_comes_back(lost: tuple[str, ...]) -> None:
    """An attachment that is made against a volume which is known to be gone only later fails, and is tried again."""
    service = strict()
    stack_id = service.create(WITH_DATA)
    service.rest()
    lose(service, stack_id, lost)
    service.live(120.0)
    check_well(service, stack_id)
    assert service.state(stack_id) in ("CREATE_COMPLETE", "CHECK_COMPLETE")


def recorded_states(service: Service, stack_id: str) -> list[str]:
    """States of the stack itself in its events, in order."""
    name = service.stack(stack_id).name
    return [each.removeprefix(f"{name} ") for each in service.story(stack_id, name)]


def refuse(service: Service, *kinds: str) -> None:
    """From now on nothing of these kinds is made, and no others are refused."""
    assert isinstance(service.cloud, StrictCloud)
    service.cloud.refused = kinds


def fall_ill(service: Service, stack_id: str, name: str, *, kind: str) -> None:
    """A resource is lost, and cannot be made anew; where it is in a nested stack, `stack_id` is that one."""
    service.clock.time += 1.0
    refuse(service, kind)
    service.cloud.vanish(service.row(stack_id, name).handle)
    service.live(120.0)
    assert service.states(stack_id)[name] == "CREATE_FAILED"


def test_a_stack_with_a_failed_resource_does_not_say_that_it_is_well() -> None:
    service = strict()
    stack_id = service.create(WITH_DATA)
    service.rest()
    fall_ill(service, stack_id, "att", kind="volume_attachment")
    assert service.state(stack_id) == "CHECK_FAILED"
    assert "att: No volume_attachment can be made today" in service.stack(stack_id).reason
    refuse(service)
    service.live(600.0)
    assert service.state(stack_id) == "CHECK_FAILED", "nothing that it requires has changed"
    service.cloud.vanish(service.row(stack_id, "vol").handle)
    service.live(120.0)
    check_well(service, stack_id)
    assert recorded_states(service, stack_id)[-2:] == ["CHECK_FAILED", "CHECK_COMPLETE"]


def test_what_failed_while_its_stack_was_resumed_and_is_well_again_is_reported() -> None:
    """The server that is being made anew vanishes, too: the stack is resumed without it, and healing goes on."""
    service = Service(CloudBehaviour(build_s=20.0))
    stack_id = service.create({"srv": server()})
    service.rest()
    service.cloud.vanish(*service.servers())
    service.live(10.0)
    service.actions.begin(stack_id, Action.RESUME)
    service.cloud.vanish(*service.servers())
    service.live(120.0)
    assert recorded_states(service, stack_id)[-3:] == ["RESUME_COMPLETE", "CHECK_FAILED", "CHECK_COMPLETE"]
    assert service.states(stack_id) == {"srv": "CREATE_COMPLETE"}


def test_what_makes_a_stack_ill_is_tried_again_by_an_update() -> None:
    service = strict()
    stack_id = service.create(WITH_DATA)
    service.rest()
    fall_ill(service, stack_id, "att", kind="volume_attachment")
    refuse(service)
    service.update(stack_id, WITH_DATA)
    service.rest()
    check_well(service, stack_id)
    assert service.state(stack_id) == "UPDATE_COMPLETE"


@pytest.mark.parametrize("lost", list(permutations(WITH_DATA)), ids="-".join)
def test_nothing_is_made_against_what_is_known_to_be_gone(lost: tuple[str, ...]) -> None:
    """The convergence of the volume is off: the attachment waits until it is on again."""
    service = strict()
    stack_id = service.create(WITH_DATA)
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings({}, {"vol": {"converge": False}}))
    lose(service, stack_id, lost)
    service.live(120.0)
    tried = service.story(stack_id, "att").count("att CREATE_FAILED")
    assert tried <= (0 if lost[0] == "vol" else 1), "once at most: while nobody knew that the volume was gone"
    assert service.cloud.things("volume") == {}
    service.actions.switch(stack_id, ConvergenceSettings({}, {"vol": {"converge": True}}))
    service.live(120.0)
    check_well(service, stack_id)


def test_no_stack_says_better_than_those_nested_in_it() -> None:
    service = strict()
    stack_id = service.create({"grp": group(2, server()), "vol": volume()})
    service.rest()
    child, kept = service.child().id, service.row(stack_id, "grp").handle
    fall_ill(service, child, "0", kind="server")
    assert [service.state(each) for each in (child, stack_id)] == ["CHECK_FAILED", "CHECK_FAILED"]
    assert service.states(stack_id) == {"grp": "CHECK_FAILED", "vol": "CREATE_COMPLETE"}
    assert "resources.grp" in service.stack(stack_id).reason, service.stack(stack_id).reason
    other = service.row(child, "1").handle
    refuse(service)
    service.update(stack_id, {"grp": group(2, server()), "vol": volume()})
    service.rest()
    assert service.row(stack_id, "grp").handle == kept, "a group with a failed member is not replaced"
    assert service.row(child, "1").handle == other
    assert [service.state(each) for each in (child, stack_id)] == ["UPDATE_COMPLETE", "UPDATE_COMPLETE"]


def test_what_is_nested_turns_well_again_together_with_what_is_around_it() -> None:
    service = strict()
    stack_id = service.create({"grp": group(1, server())})
    service.rest()
    child = service.child().id
    fall_ill(service, child, "0", kind="server")
    refuse(service)
    service.actions.converge(child, "0")
    service.live(60.0)
    assert [service.state(each) for each in (child, stack_id)] == ["CHECK_COMPLETE", "CHECK_COMPLETE"]
    assert recorded_states(service, stack_id)[-2:] == ["CHECK_FAILED", "CHECK_COMPLETE"]
