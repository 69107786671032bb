"""What a recovery by request does where a health policy holds for the cluster."""

from typing import Any

import pytest

from homeostat.clustering.decisions.health_policy import recovery_inputs
from homeostat.clustering.decisions.policies import check_policy

HOOK = {"name": "page", "type": "WEBHOOK", "params": {"url": "http://x"}}
SOFT = {"name": "REBOOT", "params": {"type": "soft"}}
LIMITS = {"delete_timeout": 30, "force_recreate": True}


def inputs(given: dict[str, Any], *actions: Any, **recovery: Any) -> Any:
    wanted = {"actions": list(actions), "node_delete_timeout": 30, "node_force_recreate": True, **recovery}
    detection = {"interval": 60, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]}
    properties = {"detection": detection, "recovery": wanted}
    spec = check_policy({"type": "senlin.policy.health", "version": "1.2", "properties": properties})
    return recovery_inputs(spec, given)


@pytest.mark.parametrize("given", [{}, {"operation": None}, {"operation": None, "operation_params": None}])
def test_the_first_action_of_the_service_itself_is_done(given: dict[str, Any]) -> None:
    found = inputs(given, HOOK, SOFT)
    assert found == {"operation": "REBOOT", "operation_params": {"type": "SOFT"}, **LIMITS}


def test_a_node_is_cut_off_before_it_is_made_again() -> None:
    found = inputs({"check": True}, HOOK, fencing=["COMPUTE"])
    assert found == {"operation": "RECREATE", "operation_params": {"fence_compute": True}, **LIMITS, "check": True}


def test_limits_of_the_request_go_first() -> None:
    assert inputs({"delete_timeout": 5}, SOFT)["delete_timeout"] == 5


@pytest.mark.parametrize("given", [{"operation": "REBUILD"}, {"operation_params": {"fence_compute": True}}])
def test_who_says_what_to_do_gets_that(given: dict[str, Any]) -> None:
    assert inputs(given, SOFT) == given
