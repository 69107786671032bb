"""What names stand for in the simulated cloud."""

import pytest
from tests.simulation.actors import VirtualClock

from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.model.errors import Rejected, Transient


def test_every_name_is_taken_unless_the_catalogue_lists_the_kind() -> None:
    cloud = SimulatedCloud(VirtualClock().now)
    assert cloud.resolve("image", ["cirros", "anything"]) == ["cirros", "anything"]
    cloud.catalogue["image"] = {"cirros"}
    assert cloud.resolve("image", ["cirros", "anything"]) == ["cirros", None]


def test_what_was_made_is_found_by_name_and_by_id() -> None:
    cloud = SimulatedCloud(VirtualClock().now)
    cloud.catalogue["network"] = ()
    cloud.create("network", [Creation("a", {"name": "lan"})])
    assert cloud.resolve("network", ["lan", "network-1", "wan"]) == ["network-1", "network-1", None]
    cloud.create("network", [Creation("b", {"name": "lan"})])
    with pytest.raises(Rejected, match=r"Multiple physical resources were found with name \(lan\)"):
        cloud.resolve("network", ["lan"])
    cloud.delete("network", ["network-1", "network-2"])
    assert cloud.resolve("network", ["lan", "network-1"]) == [None, None]


def test_a_cloud_that_does_not_answer_says_so() -> None:
    cloud = SimulatedCloud(VirtualClock().now, CloudBehaviour(faults=Faults(unreachable=1.0)))
    with pytest.raises(Transient, match="does not answer"):
        cloud.resolve("image", ["cirros"])


def test_of_joined_clouds_each_answers_for_its_kinds() -> None:
    clock = VirtualClock()
    first, second = SimulatedCloud(clock.now), SimulatedCloud(clock.now)
    second.kinds = frozenset({"hovercraft"})
    first.catalogue["image"] = second.catalogue["image"] = ()
    first.catalogue["hovercraft"] = ()
    joined = JoinedCloud(first, second)
    assert joined.resolve("hovercraft", ["h"]) == ["h"]
    assert joined.resolve("image", ["h"]) == [None], "a kind that nobody makes is a matter of the first"
