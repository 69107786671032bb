"""Every operation of all three APIs is asked for as much as it may be, of things that are as large as they may be.

The requests are made from `openapi.json` (`tests.attack.largest`). Each is answered within its bounds: the processes
keep theirs of memory, the first byte comes in time, and a neighbour reads and makes stacks meanwhile.
"""

from typing import Any

import httpx
import pytest

from tests.attack.largest import PROJECT, WITHIN_S, Requested, Unknown, World, requests_of
from tests.attack.service import MEMORY_MAX_MB, READ_S, Attacked, Neighbour
from tests.waiting import QUIET

FIRST_BYTE_S = 2.0 if QUIET else 60.0
REFUSED: dict[str, set[int]] = {
    "actions#": {400},
    "/rollout": {404},
    "/rollout/approval": {404},
    "signal#unset_hook": {400},
    "adopt": {400, 404},
    "/attrs/": {400, 404},
    "/policies/{policy_id}": {404},
    "/metadata/{arn}": {403},
    "/waitcondition/{arn}": {403},
    "/signal/{arn}": {403},
    "/notify": {400},
    "PATCH /clustering/v1/actions/{action_id}": {400},
    "DELETE /clustering/": {404},
    "Action=CancelUpdateStack": {400},
    "Action=SignalResource": {400},
}
"""Answers to requests about what is not there, or not now, by a part of the name of the operation."""


@pytest.fixture(scope="module")
def document(attacked: Attacked) -> Any:
    return httpx.get(f"{attacked.service.url}/openapi.json", timeout=WITHIN_S).json()


@pytest.mark.timeout(1800)
def test_no_answer_takes_the_service_from_others(attacked: Attacked, document: Any) -> None:
    world = World(attacked).prepare()
    before = attacked.pids()
    headers = {"X-Project-Id": PROJECT, "OpenStack-API-Version": "clustering 1.14"}
    with (
        Neighbour(attacked).living() as neighbour,
        httpx.Client(base_url=attacked.service.url, headers=headers, timeout=WITHIN_S) as http,
    ):
        wrong = [line for each in requests_of(document, world.named) for line in answered(attacked, http, each)]
    assert attacked.pids() == before, "a process has died"
    reads = neighbour.percentile(neighbour.reads, 99)
    print(f"{len(neighbour.reads)} reads: {reads * 1000:.0f} ms")
    assert wrong == []
    assert neighbour.errors == []
    assert reads <= READ_S


def answered(attacked: Attacked, http: httpx.Client, requested: Requested) -> list[str]:
    """What is wrong with the answer, or with what it cost."""
    attacked.forget_peaks()
    answer = requested.sent(http)
    peaks = attacked.peaks_mb()
    costs = ", ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items())
    print(f"{requested.name}: {answer.code}, {answer.size} bytes, first after {answer.first_s:.2f} s; {costs}")
    wrong = []
    allowed = {code for part, codes in REFUSED.items() if part in requested.name for code in codes}
    if requested.method != "GET":
        allowed.add(409)  # what the request before has begun may go on
    fine = answer.code < 400 or answer.code in allowed or answer.is_put_off or answer.is_too_large
    if not fine:
        wrong.append(f"{requested.name}: {answer.code} {answer.beginning[:300]}")
    if answer.first_s > FIRST_BYTE_S:
        wrong.append(f"{requested.name}: the first byte after {answer.first_s:.1f} s")
    if max(peaks.values()) > MEMORY_MAX_MB:
        wrong.append(f"{requested.name}: {costs}")
    return wrong


PARAMETER = {"name": "new", "in": "query", "schema": {"type": "string"}}
ACTION = {"name": "Action", "in": "query", "schema": {"enum": ["ListStacks", "ListNew"]}}


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/v1/{project}/new/{thing}", {"get": {}}),
        ("/v1/{project}/new", {"post": {"requestBody": {}}}),
        ("/v1/{project}/stacks", {"get": {"parameters": [PARAMETER]}}),
        ("/v1", {"post": {"parameters": [ACTION]}}),
    ],
)
def test_an_operation_that_is_new_has_to_be_made_known(path: str, operation: Any) -> None:
    named = {"project": PROJECT, "config_id": "c", "profile_id": "p", "cluster_id": "c"}
    with pytest.raises(Unknown):
        requests_of({"paths": {path: operation}}, named)
