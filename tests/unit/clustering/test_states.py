"""Status words, reasons and names of actions."""

import pytest

from homeostat.clustering.decisions.sizes import Sizes
from homeostat.clustering.decisions.states import (
    ActionStatus,
    ClusterAction,
    NodeAction,
    action_name,
    cluster_at_start,
    evaluated,
    node_at_start,
    refused_by_policy,
    webhook_action_name,
)

TARGET = "5bbac2f7-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("states", "sizes", "status", "reason"),
    [
        (["ACTIVE", "ERROR"], Sizes(2, 5, 2), "ERROR", "below min_size (2)"),
        (["ACTIVE", "ACTIVE"], Sizes(2, 5, 3), "WARNING", "below desired_capacity (3)"),
        (["ACTIVE", "ACTIVE"], Sizes(2, 5, 2), "ACTIVE", "equal or above desired_capacity (2)"),
        (["ACTIVE"] * 3, Sizes(0, 2, 2), "WARNING", "above max_size (2)"),
        (["ACTIVE"] * 3, Sizes(0, -1, 2), "ACTIVE", "equal or above desired_capacity (2)"),
        (["ACTIVE"] * 2, Sizes(0, 2, 2), "ACTIVE", "equal or above desired_capacity (2)"),
        (["ACTIVE"], Sizes(0, 0, 0), "WARNING", "above max_size (0)"),
        ([], Sizes(), "ACTIVE", "equal or above desired_capacity (0)"),
        (["WARNING", "CREATING", "OPERATING"], Sizes(0, -1, 1), "WARNING", "below desired_capacity (1)"),
    ],
)
def test_a_cluster_is_evaluated(states: list[str], sizes: Sizes, status: str, reason: str) -> None:
    assert evaluated("CLUSTER_RESIZE", states, sizes) == (
        status,
        f"CLUSTER_RESIZE: number of active nodes is {reason}.",
    )


@pytest.mark.parametrize(
    ("action", "operation", "name"),
    [
        ("CLUSTER_CREATE", "", "cluster_create_5bbac2f7"),
        ("CLUSTER_SCALE_IN", "", "cluster_scale_in_5bbac2f7"),
        ("CLUSTER_ATTACH_POLICY", "", "attach_policy_5bbac2f7"),
        ("CLUSTER_DETACH_POLICY", "", "detach_policy_5bbac2f7"),
        ("CLUSTER_UPDATE_POLICY", "", "update_policy_5bbac2f7"),
        ("NODE_RECOVER", "", "node_recover_5bbac2f7"),
        ("CLUSTER_OPERATION", "reboot", "cluster_reboot_5bbac2f7"),
        ("NODE_OPERATION", "change_password", "node_change_password_5bbac2f7"),
    ],
)
def test_names_of_actions(action: str, operation: str, name: str) -> None:
    assert action_name(action, TARGET, operation) == name


def test_names_of_actions_of_receivers() -> None:
    assert webhook_action_name(TARGET) == "webhook_5bbac2f7"


@pytest.mark.parametrize(
    ("action", "status", "reason"),
    [
        ("CLUSTER_CREATE", "CREATING", "Creation in progress"),
        ("CLUSTER_RESIZE", "RESIZING", "Cluster resize started."),
        ("CLUSTER_SCALE_OUT", "RESIZING", "Cluster scale out started."),
        ("CLUSTER_OPERATION", "OPERATING", "Operation reboot in progress"),
    ],
)
def test_a_cluster_when_an_action_starts(action: str, status: str, reason: str) -> None:
    assert cluster_at_start(action, "reboot") == (status, reason)


@pytest.mark.parametrize(
    ("action", "start"),
    [
        ("NODE_CREATE", ("CREATING", "Creation in progress")),
        ("NODE_RECOVER", ("RECOVERING", "Recovery in progress")),
        ("NODE_OPERATION", ("OPERATING", "Operation 'reboot' in progress")),
        ("NODE_DELETE", ("DELETING", "Deletion in progress")),
        ("NODE_JOIN", None),
    ],
)
def test_a_node_when_an_action_starts(action: str, start: tuple[str, str] | None) -> None:
    assert node_at_start(action, "reboot") == start


@pytest.mark.parametrize("action", [each for each in ClusterAction if "POLICY" in each or "NODES" in each])
def test_some_actions_leave_the_status_of_a_cluster(action: str) -> None:
    assert cluster_at_start(action) is None


def test_other_words_are_no_actions() -> None:
    with pytest.raises(ValueError, match="NODE_CREATE"):
        cluster_at_start(NodeAction.CREATE)


def test_which_states_of_actions_are_final() -> None:
    assert {each for each in ActionStatus if each.is_final} == {"SUCCEEDED", "FAILED", "CANCELLED"}


def test_reasons_of_others() -> None:
    assert refused_by_policy("p", "no") == "Policy check failure: Failed policy 'p': no"
