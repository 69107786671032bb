"""Rollouts zone by zone: where members were seen decides when they get the new metadata."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.convergence.nested_stacks import revisions
from homeostat.desired import members
from homeostat.services import graphs
from homeostat.store.stacks import rollout_members
from tests.component.test_metadata_rollouts import Group

ZONES = ("b", "a", "", "b", "a", "a")
IN_ORDER = [2, 1, 4, 5, 0, 3]


class Zoned(Group):
    """A group whose members were seen in these zones; "" for none."""

    def __init__(self, zones: Sequence[str] = ZONES, **policy: Any) -> None:
        super().__init__(len(zones), order="zone", **policy)
        for member, zone in zip(self.members, zones, strict=True):
            if zone:
                self.cloud.change(member, availability_zone=zone)
        self.live(300)
        inside = self.child().id
        assert [self.seen(inside, str(number)).get("availability_zone", "") for number in range(len(zones))] == list(
            zones
        )

    def reached(self) -> list[int]:
        """Have members report until all have the new metadata; the numbers of those that were reached, in order."""
        found: list[int] = []
        for _ in range(2 * len(self.members)):
            new = [number for number, value in enumerate(self.values()) if value == "2" and number not in found]
            found += new
            for number in new:
                self.report(number)
        return found


def shards_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have shards of so many members."""
    for each in (members, graphs, revisions):
        monkeypatch.setattr(each, "MEMBERS_PER_SHARD", size)
    monkeypatch.setattr(rollout_members, "ZONED_SHARDS", 1)


@pytest.mark.parametrize("size", [1000, 2])
def test_all_members_of_one_zone_come_before_those_of_the_next(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    shards_of(monkeypatch, size)
    service = Zoned()
    assert service.child().shards == (1 if size > 6 else 3)
    service.change("2")
    assert service.reached() == IN_ORDER
    service.rest()
    assert (service.values(), service.state(service.id)) == ("222222", "UPDATE_COMPLETE")


@pytest.mark.parametrize("size", [1000, 2])
def test_steps_of_several_members_keep_the_order(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    shards_of(monkeypatch, size)
    service = Zoned(pattern="canary", steps=["4", "100%"])
    service.change("2")
    assert {number for number, value in enumerate(service.values()) if value == "2"} == set(IN_ORDER[:4])


def test_a_member_that_moves_to_another_zone_meanwhile_is_reached_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    shards_of(monkeypatch, 2)
    service = Zoned()
    service.change("2")
    service.cloud.change(service.members[0], availability_zone="z")
    service.live(30)
    assert sorted(service.reached()) == [0, 1, 2, 3, 4, 5]
    service.rest()
    assert (service.values(), service.state(service.id)) == ("222222", "UPDATE_COMPLETE")
