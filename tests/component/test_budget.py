"""One budget: healing, marks, scaling and rolling updates of a group together keep as many members in service as its
template says (ADR 0067)."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.facts.absences import absences
from homeostat.desired import members as desired_members
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.budget import Absence
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.explainer import Explainer
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.stacks import revisions, stacks
from tests.component.running import Service, double, group, server

SLOW = CloudBehaviour(build_s=10.0)
COUNT = 6
LOST_S = 130.0
"""Seconds in which what is lost is missed, and looked for once more."""


def rolling(size: int, in_service: int, pause: float = 0, **more: Any) -> dict[str, Any]:
    policy = {"max_batch_size": size, "min_in_service": in_service, "pause_time": pause}
    return {"update_policy": {"rolling_update": policy, **more}}


def fleet(image: str, policy: dict[str, Any], count: int = COUNT) -> dict[str, Any]:
    """A group of servers, each of which is replaced when its image changes, and a server beside it, which is seen when
    all of the group are gone."""
    one = server(image=image, image_update_policy="REPLACE", name="m%index%")
    return {"g": {**group(count, one), **policy}, "other": server()}


def made(policy: dict[str, Any], behaviour: CloudBehaviour = SLOW) -> tuple[Service, str, str]:
    service = Service(behaviour)
    stack_id = service.create(fleet("i", policy))
    service.rest()
    return service, stack_id, service.child().id


def vanish(service: Service, child: str, *names: str) -> None:
    for name in names:
        service.cloud.vanish(service.row(child, name).handle)


def away(service: Service, child: str) -> dict[str, Absence]:
    with service.db.read() as tx:
        stack = stacks.get(tx, child)
        assert stack is not None
        group = revisions.group_of(tx, stack.id, stack.revision)
        return absences(tx, stacks.facts(stack), group or GroupDefinition({}, None, 0))


def until(service: Service, holds: Callable[[], bool], within_s: float = LOST_S) -> None:
    """Let time pass until it holds."""
    end = service.clock.time + within_s
    while not holds():
        assert service.clock.time < end, f"it does not hold after {within_s:.0f} s: {service.hindered()}"
        service.live(0.5)


def lose(service: Service, child: str, *names: str) -> None:
    """Have members vanish, and wait until they are being healed."""
    vanish(service, child, *names)
    until(service, lambda: away(service, child) == dict.fromkeys(names, Absence.HEALED))


def waiting(service: Service, stack_id: str) -> tuple[str, str] | None:
    """Why the stack itself waits."""
    with service.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), service.clock.now()).page(service.stack(stack_id), 100).waiting
    return None if found is None else (str(found.why), found.reason)


def explained(service: Service, stack_id: str, name: str = "g") -> tuple[str, str]:
    """Why a resource waits."""
    with service.db.read() as tx:
        (found,) = Explainer(tx, DesiredGraphs(), service.clock.now()).of_resource(service.stack(stack_id), name)
    return str(found.explanation.why), found.explanation.reason


def at_most(most: int) -> Callable[[dict[str, Absence]], None]:
    """What is changed is changed within the budget; what is lost is not the decision of the service."""

    def judge(now: dict[str, Absence]) -> None:
        if Absence.CHANGED in now.values():
            assert len(now) <= most, now

    return judge


def watch(
    service: Service, stack_id: str, child: str, judge: Callable[[dict[str, Absence]], None], step_s: float = 0.5
) -> None:
    """Let time pass until the update is complete and all members are back; who is away is judged at each step."""
    for _ in range(600):
        now = away(service, child)
        judge(now)
        if service.state(stack_id) == "UPDATE_COMPLETE" and not now:
            assert images(service, child) == ["j"] * COUNT
            return
        service.live(step_s)
    raise AssertionError(f"no end: {away(service, child)}, {service.hindered()}")


def images(service: Service, child: str) -> list[str]:
    things = service.cloud.things("server")
    return sorted(things[each.handle]["image"] for each in service.rows(child))


@pytest.mark.heavy
@pytest.mark.parametrize("pieces", [1, 3])
def test_an_update_begins_when_those_that_are_healed_are_back(pieces: int) -> None:
    with patch.object(desired_members, "MEMBERS_PER_SHARD", COUNT // pieces):
        policy = rolling(1, 5)
        service, stack_id, child = made(policy)
        lose(service, child, "1")
        service.update(stack_id, fleet("j", policy))
        assert away(service, child).keys() == {"1"}
        words = "1 of 6 members is away: 1 is being healed; the update goes on with at least 5 in service"
        assert explained(service, stack_id) == ("budget", words)
        watch(service, stack_id, child, at_most(1))


def test_a_group_without_a_limit_is_updated_while_a_member_is_healed() -> None:
    policy = rolling(2, 0)
    service, stack_id, child = made(policy)
    lose(service, child, "1")
    service.update(stack_id, fleet("j", policy))
    assert away(service, child).keys() == {"1", "4", "5"}
    watch(service, stack_id, child, lambda now: None)


@pytest.mark.heavy
def test_the_dead_are_healed_in_the_middle_of_a_batch() -> None:
    """Healing takes nobody away, so it does not wait for the update; the next batch waits for it."""
    policy = rolling(2, 4)
    service, stack_id, child = made(policy, CloudBehaviour(build_s=60.0))
    service.update(stack_id, fleet("j", policy))
    assert away(service, child) == {"4": Absence.CHANGED, "5": Absence.CHANGED}
    vanish(service, child, "0", "1")
    both = dict.fromkeys("01", Absence.HEALED) | dict.fromkeys("45", Absence.CHANGED)
    until(service, lambda: away(service, child) == both, within_s=50.0)
    until(service, lambda: not away(service, child).keys() & {"4", "5"})
    assert away(service, child) == dict.fromkeys("01", Absence.HEALED)
    watch(service, stack_id, child, at_most(2))


@pytest.mark.heavy
def test_a_batch_waits_for_a_member_in_another_shard_and_is_woken_by_it() -> None:
    """The shard of the batch is at rest; that of the member is not. It has the new image already, so no batch takes
    it."""
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 2):
        policy = rolling(1, 5)
        service, stack_id, child = made(policy, CloudBehaviour(build_s=100.0))
        service.update(stack_id, fleet("j", policy))
        until(service, lambda: away(service, child) == {"3": Absence.CHANGED}, within_s=250.0)
        service.live(30.0)  # so that it comes back after the batch has come to rest
        vanish(service, child, "5")
        until(service, lambda: away(service, child) == {"5": Absence.HEALED}, within_s=110.0)
        words = "1 of 6 members is away: 5 is being healed; the update goes on with at least 5 in service"
        assert waiting(service, child) == ("budget", words)
        assert explained(service, stack_id) == ("budget", words)
        assert held_back(service) == [words]
        assert service.child().reason == words
        before = claims(service, child, 1)
        service.live(20.0)
        assert claims(service, child, 1) == before, "nobody asks meanwhile but for the server that is built"
        watch(service, stack_id, child, at_most(1), step_s=3.0)
        assert held_back(service) == [words], "one event for each reason"


@pytest.mark.heavy
def test_a_lost_member_in_another_shard_is_the_next_batch() -> None:
    """It is away anyway, so nothing waits, and no event says so; it is made with the new image."""
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 2):
        policy = rolling(1, 5)
        service, stack_id, child = made(policy, CloudBehaviour(build_s=100.0))
        service.update(stack_id, fleet("j", policy))
        assert away(service, child) == {"5": Absence.CHANGED}
        vanish(service, child, "0")
        until(service, lambda: away(service, child) == {"0": Absence.HEALED}, within_s=110.0)
        before = claims(service, child)
        service.live(20.0)
        assert claims(service, child) == before, "nobody asks meanwhile but for the server that is built"
        watch(service, stack_id, child, at_most(1), step_s=3.0)
        assert held_back(service) == []


def held_back(service: Service) -> list[str]:
    """The events of the group's stack that say for whom a batch waits."""
    child = service.child()
    reasons = [each.reason for each in service.events(child.id, child.name)]
    return [reason for reason in reasons if "; the update goes on with at least" in reason]


def claims(service: Service, child: str, number: int = -1) -> int:
    """How often a shard of the group was claimed; the last one if none is named."""
    return int(service.shards(child)[number].epoch)


def test_members_that_are_lost_and_left_alone_come_first() -> None:
    policy = rolling(1, 5)
    service, stack_id, child = made(policy)
    service.actions.switch(stack_id, ConvergenceSettings({"converge": False}))
    vanish(service, child, "2")
    until(service, lambda: away(service, child) == {"2": Absence.GONE})
    service.live(30.0)
    assert away(service, child) == {"2": Absence.GONE}
    service.update(stack_id, fleet("j", policy))
    assert away(service, child).keys() == {"2"}
    watch(service, stack_id, child, at_most(1))


def test_another_update_in_the_middle_of_a_batch_takes_no_other_member_away() -> None:
    policy = rolling(1, 5)
    service, stack_id, child = made(policy)
    service.update(stack_id, fleet("k", policy))
    service.live(3.0)
    assert away(service, child) == {"5": Absence.CHANGED}
    service.update(stack_id, fleet("j", policy))
    assert away(service, child) == {"5": Absence.CHANGED}
    watch(service, stack_id, child, at_most(1))


def test_a_marked_member_waits_for_the_batch_and_goes_before_the_next() -> None:
    policy = rolling(1, 5)
    service, stack_id, child = made(policy)
    service.update(stack_id, fleet("j", policy))
    assert away(service, child) == {"5": Absence.CHANGED}
    Marks(service.db).mark(child, MarkRequest(True, "by a monitor"), {"resources[0]": "0"})
    service.work()
    assert away(service, child) == {"0": Absence.MARKED, "5": Absence.CHANGED}
    words = "by a monitor; 1 of 6 members is away: 5 is being changed; it goes on with at least 5 in service"
    assert explained(service, child, "0") == ("budget", words)
    order: list[str] = []

    def judge(now: dict[str, Absence]) -> None:
        moving = [name for name, why in now.items() if why in (Absence.HEALED, Absence.CHANGED)]
        assert len(moving) <= 1, now
        order.extend(name for name in moving if name not in order)

    watch(service, stack_id, child, judge)
    assert order[:2] == ["5", "0"]


def test_what_has_drifted_waits_for_those_that_are_away() -> None:
    """Repaired in place, it would be one more out of service."""
    service, _, child = made(rolling(1, 5))
    vanish(service, child, "1")
    drifted = service.row(child, "3").handle
    service.cloud.change(drifted, name="odd")
    until(service, lambda: away(service, child) == {"1": Absence.HEALED})
    assert explained(service, child, "3")[0] in ("brake", "budget")
    assert service.cloud.things("server")[drifted]["name"] == "odd"
    until(service, lambda: service.cloud.things("server")[drifted]["name"] == "m3")
    assert away(service, child) == {}


@pytest.mark.heavy
@pytest.mark.parametrize(("limit", "most"), [("2", 2), (2, 2), ("34%", 2), ("1%", 1)])
def test_a_limit_alone_makes_batches(limit: Any, most: int) -> None:
    policy = {"update_policy": {"max_unavailable": limit}}
    service, stack_id, child = made(policy)
    service.update(stack_id, fleet("j", policy))
    assert len(away(service, child)) == most
    watch(service, stack_id, child, at_most(most))


def test_a_limit_cuts_batches() -> None:
    policy = rolling(4, 0, max_unavailable="2")
    service, stack_id, child = made(policy)
    lose(service, child, "1")
    service.update(stack_id, fleet("j", policy))
    assert away(service, child).keys() == {"1", "5"}
    watch(service, stack_id, child, at_most(2))


def test_healing_stays_within_a_limit() -> None:
    """It could do without, since what is lost is away anyway: but a look may be wrong."""
    service, _, child = made({"update_policy": {"max_unavailable": "1"}})
    vanish(service, child, *map(str, range(COUNT)))
    until(service, lambda: Absence.HEALED in away(service, child).values())

    def healed() -> bool:
        now = away(service, child)
        assert list(now.values()).count(Absence.HEALED) <= 1
        return not now

    until(service, healed, within_s=300.0)


@pytest.mark.parametrize("value", ["0", 0, "0%", "101%", "-1", "many", "1.5"])
@pytest.mark.parametrize("kind", ["OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"])
def test_a_limit_that_is_none_is_refused(kind: str, value: Any) -> None:
    scaled = {"type": kind, "properties": {"min_size": 1, "max_size": 2, "resource": double()}}
    one = group(2, double()) if kind == "OS::Heat::ResourceGroup" else scaled
    with pytest.raises(Rejected, match=r"resources\.g\.update_policy\.max_unavailable: .* number of members"):
        Service().create({"g": {**one, "update_policy": {"max_unavailable": value}}})


@pytest.mark.heavy
def test_a_batch_that_waits_ends_with_the_time_of_its_stack() -> None:
    """What is left alone, and has the newest definition, is not changed once more: a user has to bring it back."""
    policy = rolling(1, 5, pause=100)
    service, stack_id, child = made(policy, CloudBehaviour(build_s=1.0))
    service.update(stack_id, fleet("j", policy), timeout_mins=10)
    service.live(10.0)
    service.actions.switch(stack_id, ConvergenceSettings({"converge": False}))
    vanish(service, child, "5")
    until(service, lambda: (waiting(service, child) or ("", ""))[0] == "budget")
    assert away(service, child) == {"5": Absence.GONE}
    before = claims(service, child)
    service.live(300.0)
    assert claims(service, child) == before, "no pass looks whether it is back"
    service.live(300.0)
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.actions.converge(stack_id)
    service.rest(within_s=900.0)
    assert (service.state(stack_id), images(service, child)) == ("UPDATE_COMPLETE", ["j"] * COUNT)
