"""Where nodes of clusters go, and which of them leave, where several policies have their say."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.clouds.heat_api import KIND, REGION_KIND, VALIDATE
from homeostat.clouds.port import Answer, Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clustering.decisions.sizes import Direction
from homeostat.model.errors import Rejected
from homeostat.model.observed import Observation, Presence
from tests.component.node_clusters import Cluster, server_spec


class Regional(SimulatedCloud):
    """A cloud whose service is in the region `RegionOne`, and knows `east` and `west`."""

    def __init__(self, now: Any) -> None:
        super().__init__(now)
        self.kinds = self.kinds | {REGION_KIND}

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        if kind != REGION_KIND:
            return super().resolve(kind, names)
        known = {"RegionOne": "default", "east": "east", "west": "west"}
        return [known.get(name) for name in names]

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        if kind == KIND and all(each.verb == VALIDATE for each in operations):
            return [Observation(Presence.UNKNOWN, "") for _ in operations]
        return super().operate(kind, operations)


def regional(count: int = 0, **options: Any) -> Cluster:
    return Cluster(count, cloud=lambda clock: Regional(clock.now), **options)


def hints(service: Cluster) -> dict[int, Any]:
    """Index of each node -> the group that its server was made in."""
    servers = service.cloud.things("server")
    nodes = service.nodes()
    return {
        index: (servers[each["physical_id"]].get("scheduler_hints") or {}).get("group") for index, each in nodes.items()
    }


def zones(service: Cluster) -> list[str | None]:
    return [each["data"].get("placement", {}).get("zone") for _, each in sorted(service.nodes().items())]


def regions(service: Cluster) -> Counter[str]:
    return Counter(each["data"].get("placement", {}).get("region", "") for each in service.nodes().values())


# -- affinity --------------------------------------------------------------------------------------------------------


def test_new_nodes_are_made_in_the_group_and_others_stay_as_they_are() -> None:
    service = Cluster(1)
    before = service.servers()
    policy = service.attach("affinity", servergroup={"policies": "soft-anti-affinity"}, availability_zone="az1")
    ((group, fields),) = service.cloud.things("server_group").items()
    assert fields["policies"] == ["soft-anti-affinity"]
    data = {"servergroup_id": group, "inherited_group": False}
    assert service.binding(policy)["data"] == {"AffinityPolicy": {"version": "1.0", "data": data}}
    service.scale(Direction.OUT, 1)
    service.add_node()
    assert (hints(service), zones(service)) == ({1: None, 2: group, 3: group}, [None, "az1", "az1"])
    assert service.nodes()[2]["data"] == {"placement": {"servergroup": group, "zone": "az1"}}
    assert before[0] in service.servers()


def test_a_group_that_exists_is_taken_and_left() -> None:
    service = Cluster(0)
    spec = {"name": "mine", "policies": ["affinity"]}
    (made,) = service.cloud.create("server_group", [Creation("t", spec)])
    assert not isinstance(made, Exception)
    service.cloud.catalogue["server_group"] = [made.handle]
    other = service.attach("affinity", servergroup={"name": made.handle, "policies": "anti-affinity"})
    assert service.ended() == (
        "FAILED",
        "Policies specified (anti-affinity) doesn't match that of the existing servergroup (affinity).",
    )
    assert other not in service.bound()
    policy = service.attach("affinity", servergroup={"name": made.handle, "policies": "affinity"})
    service.scale(Direction.OUT, 1)
    assert hints(service) == {1: made.handle}
    assert service.binding(policy)["data"]["AffinityPolicy"]["data"]["inherited_group"] is True
    service.detach(policy)
    assert made.handle in service.cloud.things("server_group")


def test_detaching_removes_the_group_and_no_server_is_made_again() -> None:
    service = Cluster(0)
    policy = service.attach("affinity")
    service.scale(Direction.OUT, 2)
    before = service.servers()
    service.detach(policy)
    assert (service.ended()[0], service.servers()) == ("SUCCEEDED", before)
    assert service.cloud.things("server_group") == {}
    assert [each["data"] for each in service.nodes().values()] == [{}, {}]
    service.take(server_spec(key_name="k"))
    assert hints(service) == {1: None, 2: None}, "those that replace them are in no group"


def test_a_policy_that_is_switched_off_places_no_node() -> None:
    service = Cluster(0)
    policy = service.attach("affinity")
    service.switch(policy, enabled=False)
    service.scale(Direction.OUT, 1)
    assert hints(service) == {1: None}


# -- zones, with other policies --------------------------------------------------------------------------------------


def test_a_node_that_is_added_by_itself_is_placed_like_others() -> None:
    service = Cluster(0)
    service.attach("zone_placement", zones=[{"name": "az1"}, {"name": "az2"}])
    for _ in range(4):
        service.add_node()
    assert Counter(zones(service)) == {"az1": 2, "az2": 2}


def test_zones_come_before_that_of_an_affinity_policy() -> None:
    service = Cluster(0)
    service.attach("affinity", availability_zone="az9")
    service.attach("zone_placement", zones=[{"name": "az1"}])
    service.scale(Direction.OUT, 1)
    assert zones(service) == ["az1"]


def test_placed_nodes_change_in_batches_like_others() -> None:
    service = Cluster(1)
    service.attach("zone_placement", zones=[{"name": "az1"}, {"name": "az2"}])
    service.attach("batch", min_in_service=2, max_batch_size=1, pause_time=30)
    service.resize(3)
    began = service.clock.now()
    service.take(server_spec(metadata={"v": "2"}))
    assert service.clock.now() - began >= 60.0, "two pauses between three batches"
    assert {each["metadata"]["v"] for each in service.cloud.things("server").values()} == {"2"}
    assert Counter(zones(service)) == {None: 1, "az1": 1, "az2": 1}


def test_the_deletion_policy_says_whether_nodes_that_leave_are_destroyed() -> None:
    service = Cluster(3)
    service.attach("deletion", "1.1", criteria="OLDEST_FIRST", destroy_after_deletion=False)
    service.scale(Direction.IN, 1)
    service.remove(service.nodes()[2]["id"], destroy_after_deletion=True)
    assert (len(service.nodes()), len(service.servers())) == (1, 3)


def test_tainted_nodes_go_first_in_the_zone_that_is_too_full() -> None:
    service = Cluster(0)
    service.attach("zone_placement", zones=[{"name": "az1"}, {"name": "az2"}])
    service.attach("deletion", "1.1", criteria="OLDEST_FIRST")
    service.resize(4)
    kept = [index for index, each in service.nodes().items() if each["data"]["placement"]["zone"] == "az1"]
    service.taint(max(kept))
    service.scale(Direction.IN, 2)
    assert Counter(zones(service)) == {"az1": 1, "az2": 1}
    assert max(kept) not in service.nodes()


# -- scaling ---------------------------------------------------------------------------------------------------------


def out(**adjustment: Any) -> dict[str, Any]:
    return {"event": "CLUSTER_SCALE_OUT", "adjustment": adjustment}


def test_of_several_policies_for_one_action_the_last_one_says_how_many() -> None:
    service = Cluster(1)
    service.attach("scaling", **out(number=1))
    service.clock.time += 1
    service.attach("scaling", **out(number=3))
    service.scale(Direction.OUT)
    assert len(service.nodes()) == 4


@pytest.mark.parametrize("event", ["CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"])
@pytest.mark.parametrize("best_effort", [False, True])
def test_under_a_scaling_policy_a_request_for_more_nodes_than_there_are_takes_none(
    event: str, best_effort: bool
) -> None:
    service = Cluster(3)
    service.attach("scaling", event=event, adjustment={"number": 1, "best_effort": best_effort})
    before = service.servers()
    service.scale(Direction.IN, 5)
    status, reason = service.ended()
    if best_effort:
        assert (status, service.servers()) == ("SUCCEEDED", [])
        return
    assert (status, service.servers()) == ("FAILED", before)
    why = "The target capacity (-2) is less than the cluster's min_size (0)."
    assert reason == f"Policy check failure: Failed policy 'scaling': {why}"


@pytest.mark.heavy
def test_a_cooldown_counts_from_the_end_of_the_action() -> None:
    service = Cluster(1)
    service.attach("deletion", "1.1", grace_period=300)
    service.attach("scaling", event="CLUSTER_SCALE_IN", adjustment={"number": 1, "cooldown": 60})
    service.resize(3)
    began = service.clock.now()
    service.scale(Direction.IN)
    assert service.clock.now() - began >= 300
    with pytest.raises(Rejected, match="cooldown still in progress"):
        service.scale(Direction.IN)
    service.clock.time += 61
    service.scale(Direction.IN)
    assert len(service.nodes()) == 1


# -- regions ---------------------------------------------------------------------------------------------------------

PLACES = [{"name": "RegionOne", "weight": 100}, {"name": "east", "weight": 200, "cap": 3}]


def test_nodes_are_spread_over_regions_by_weights_and_caps() -> None:
    service = regional()
    policy = service.attach("region_placement", regions=PLACES)
    service.resize(3)
    assert regions(service) == {"default": 1, "east": 2}
    service.resize(6)
    assert regions(service) == {"default": 3, "east": 3}, "the cap of the second is reached"
    assert len(service.servers()) == 3
    remote = service.cloud.things("remote_stack").values()
    assert {each["region"] for each in remote} == {"east"}
    assert service.binding(policy)["data"] is None


def test_the_fullest_region_loses_nodes() -> None:
    service = regional()
    policy = service.attach("region_placement", regions=PLACES)
    service.resize(6)
    service.resize(3)
    assert regions(service) == {"default": 1, "east": 2}
    service.detach(policy)
    assert regions(service) == {"default": 1, "east": 2}, "those that are there stay where they are"
    service.resize(4)
    assert regions(service)[""] == 1


def test_caps_that_leave_no_room_refuse_the_request() -> None:
    service = regional()
    service.attach("region_placement", regions=[{"name": "east", "cap": 2}])
    with pytest.raises(Rejected, match="no feasible plan"):
        service.resize(3)


def test_zones_and_groups_are_those_of_the_own_region() -> None:
    service = regional()
    service.attach("region_placement", regions=[{"name": "default"}, {"name": "west"}])
    service.attach("zone_placement", zones=[{"name": "az1"}])
    service.attach("affinity")
    service.resize(2)
    ((group, _),) = service.cloud.things("server_group").items()
    placed = sorted((each["data"]["placement"] for each in service.nodes().values()), key=lambda each: each["region"])
    assert placed == [{"region": "default", "zone": "az1", "servergroup": group}, {"region": "west"}]


def test_a_region_that_is_not_known_is_refused() -> None:
    service = regional()
    service.attach("region_placement", regions=[{"name": "mars"}])
    assert service.ended() == ("FAILED", "region mars is not known here; the operator adds it with --region")
    assert service.bound() == []


def test_a_profile_that_has_no_way_into_another_region_is_refused() -> None:
    stacks = {"type": "os.heat.stack", "version": "1.0"}
    template = {"heat_template_version": "2018-08-31"}
    environment = {"parameter_defaults": {"a": 1}}
    service = regional(spec={**stacks, "properties": {"template": template, "environment": environment}})
    service.attach("region_placement", regions=PLACES)
    assert service.ended()[0] == "FAILED"
    assert "no way into another region" in service.ended()[1]
    service.attach("region_placement", regions=[{"name": "RegionOne"}])
    assert service.ended()[0] == "SUCCEEDED"
