"""Bodies of requests: the message about a fault names its place, however much is wrong."""

import time
from typing import Any

import pytest

from homeostat.api.http.bodies import RequestBody, read
from homeostat.api.orchestration.locks import LockOptions
from homeostat.api.orchestration.models.configs import NewSoftwareDeployment
from homeostat.api.orchestration.models.convergence import SwitchedConvergence
from homeostat.api.orchestration.models.resources import Mark, Marking
from homeostat.api.orchestration.models.rollouts import Approval
from homeostat.api.orchestration.snapshots import SnapshotRequest
from homeostat.model.errors import Rejected

MARKED = {"mark_unhealthy": True, "resources": ["srv"]}
DEPLOYED = {"config_id": "c", "server_id": "s"}
FAULTS = [
    (Mark, {}, "The body lacks mark_unhealthy"),
    (Mark, {"mark_unhealthy": 1}, "mark_unhealthy: it must be true or false, got 1"),
    (Mark, {"b": 1, "a": 1}, "Unexpected parameter(s) a, b; there may be mark_unhealthy, resource_status_reason"),
    (Marking, {"mark_unhealthy": True}, "resources: it must be a list of names, physical ids or paths"),
    (Marking, {**MARKED, "resources": ["srv", ""]}, "resources[1]: it must be a name, a physical id or a path"),
    (Marking, {**MARKED, "expires_in": "1"}, "expires_in: it must be a number of seconds, at most 31536000"),
    (Marking, {**MARKED, "mark_unhealthy": False, "expires_in": None}, "expires_in: it has no meaning when a mark"),
    (LockOptions, {"until": 1}, "lock.until: there is no such key; there are level, reason, expires_in, expires_at"),
    (LockOptions, {"level": None}, "lock.level: it must be one of all, stacks, not None"),
    (LockOptions, {"expires_in": True}, "lock.expires_in: it must be a number of seconds above 0"),
    (LockOptions, {"expires_at": 7}, "lock.expires_at: it must be a time such as 2030-12-31T18:00:00Z, not 7"),
    (LockOptions, [], "lock: it must be a map that may have level, reason, expires_in, expires_at"),
    (SnapshotRequest, {"name": 7, "more": 1}, "name: a text of at most 255 characters is needed, got 7"),
    (Approval, {"k" * 99: 1}, f"'{'k' * 40}': there is no such key; there may be step"),
    (NewSoftwareDeployment, {"server_id": "s"}, "config_id: the id of a config is needed"),
    (NewSoftwareDeployment, {**DEPLOYED, "server_id": ""}, "server_id: the id of a server is needed"),
    (NewSoftwareDeployment, {**DEPLOYED, "input_values": []}, "input_values: it must be a map"),
    (NewSoftwareDeployment, {**DEPLOYED, "status": "OK"}, "status: it is IN_PROGRESS, COMPLETE or FAILED, not 'OK'"),
    (
        SwitchedConvergence,
        {"convergence": {"resources": {"a": {"enabled": None}}}},
        "convergence.resources.a.enabled: ",
    ),
]


@pytest.mark.parametrize(("model", "body", "message"), FAULTS, ids=[case[2][:60] for case in FAULTS])
def test_a_fault_names_its_place(model: type[RequestBody], body: Any, message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read(model, body, "lock" if model is LockOptions else "")
    assert refusal.value.fault == "HTTPBadRequest"
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (Mark, {f"k{number}": 1 for number in range(100_000)}),
        (Marking, {**MARKED, "resources": [1] * 100_000}),
        (SwitchedConvergence, {"convergence": {"resources": {f"r{number}": 1 for number in range(100_000)}}}),
    ],
)
def test_many_faults_take_no_longer_than_one(model: type[RequestBody], body: Any) -> None:
    begin = time.process_time()
    with pytest.raises(Rejected):
        read(model, body)
    assert time.process_time() - begin < 0.25


def test_absent_switches_are_not_those_that_are_null() -> None:
    switches = read(SwitchedConvergence, {"convergence": {"healing": None, "resources": {"a": None}}}).convergence
    assert switches.columns() == {"healing": None}
    assert switches.resources == {"a": None}
