"""The request for the stack of a cluster: what nodes share, what single ones have, and how much that may be."""

from typing import Any

import pytest

from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.service.stack_requests import OWN_MAX, ClusterFacts, OwnNode, stack_request
from homeostat.model.errors import Rejected


def profile(**properties: Any) -> Spec:
    values = {"flavor": "f", "image": "i", **properties}
    return check_profile({"type": "os.nova.server", "version": "1.0", "properties": values})


def properties_of(facts: ClusterFacts) -> Any:
    template: Any = stack_request(facts).template
    return template["resources"]["nodes"]["properties"]


def test_nodes_that_are_alike_share_a_definition_of_their_own() -> None:
    large = profile(flavor="large")
    own = (OwnNode(4, large), OwnNode(1, large), OwnNode(2, profile(), "named"))
    found = properties_of(ClusterFacts("s", "c", "", profile(), 5, own=own))["own"]
    assert [each["numbers"] for each in found] == [[[1, 2], [4, 5]], [[2, 3]]]
    assert found[1]["resource_def"]["properties"]["name"] == "named"


def test_all_others_get_names_that_follow_from_their_numbers() -> None:
    one = properties_of(ClusterFacts("s", "c", "n-$2I", profile(), 1))["resource_def"]["properties"]
    assert one["name"] == "%node_name%"
    assert one["metadata"] == {
        "cluster_node_id": "%node_id%",
        "cluster_id": "c",
        "cluster_node_index": "%node_index%",
    }


def test_nodes_that_all_differ_by_much_are_refused() -> None:
    text = "x" * 100_000
    own = [OwnNode(number, profile(user_data=f"{number}{text}")) for number in range(OWN_MAX // 100_000 + 1)]
    with pytest.raises(Rejected, match="weigh too much together"):
        stack_request(ClusterFacts("s", "c", "", profile(), len(own), own=own))
