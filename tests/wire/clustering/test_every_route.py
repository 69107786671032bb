"""Every route of Senlin's API, and every action of clusters and nodes: served from its microversion on, or in the list
of what is not there."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from homeostat.clustering.wire.cluster_actions import ACTIONS
from homeostat.clustering.wire.context import PREFIX
from homeostat.clustering.wire.receivers import WEBHOOKS
from homeostat.clustering.wire.routers import ROUTERS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "clustering.md"
ROUTES = {
    "GET /profile-types": 0,
    "GET /profile-types/{}": 0,
    "GET /profile-types/{}/ops": 4,
    "GET /policy-types": 0,
    "GET /policy-types/{}": 0,
    "GET /profiles": 0,
    "POST /profiles": 0,
    "POST /profiles/validate": 2,
    "GET /profiles/{}": 0,
    "PATCH /profiles/{}": 0,
    "DELETE /profiles/{}": 0,
    "GET /policies": 0,
    "POST /policies": 0,
    "POST /policies/validate": 2,
    "GET /policies/{}": 0,
    "PATCH /policies/{}": 0,
    "DELETE /policies/{}": 0,
    "GET /clusters": 0,
    "POST /clusters": 0,
    "GET /clusters/{}": 0,
    "PATCH /clusters/{}": 0,
    "DELETE /clusters/{}": 0,
    "GET /clusters/{}/attrs/{}": 2,
    "POST /clusters/{}/ops": 4,
    "POST /clusters/{}/actions": 0,
    "GET /clusters/{}/metadata": 0,
    "POST /clusters/{}/metadata": 0,
    "PUT /clusters/{}/metadata": 0,
    "GET /clusters/{}/metadata/{}": 0,
    "PUT /clusters/{}/metadata/{}": 0,
    "DELETE /clusters/{}/metadata/{}": 0,
    "GET /clusters/{}/policies": 0,
    "GET /clusters/{}/policies/{}": 0,
    "GET /nodes": 0,
    "POST /nodes": 0,
    "POST /nodes/adopt": 7,
    "POST /nodes/adopt-preview": 7,
    "GET /nodes/{}": 0,
    "PATCH /nodes/{}": 0,
    "DELETE /nodes/{}": 0,
    "POST /nodes/{}/actions": 0,
    "POST /nodes/{}/ops": 4,
    "GET /receivers": 0,
    "POST /receivers": 0,
    "GET /receivers/{}": 0,
    "PATCH /receivers/{}": 0,
    "DELETE /receivers/{}": 0,
    "POST /receivers/{}/notify": 0,
    "POST /webhooks/{}/trigger": 0,
    "GET /actions": 0,
    "POST /actions": 0,
    "GET /actions/{}": 0,
    "PATCH /actions/{}": 12,
    "GET /events": 0,
    "GET /events/{}": 0,
    "GET /services": 0,
    "GET /build-info": 0,
}
"""Each with the minor number of the first microversion that has it."""
CLUSTER_ACTIONS = {
    "add_nodes": 0,
    "del_nodes": 0,
    "replace_nodes": 3,
    "scale_out": 0,
    "scale_in": 0,
    "resize": 0,
    "check": 0,
    "recover": 0,
    "policy_attach": 0,
    "policy_detach": 0,
    "policy_update": 0,
    "complete_lifecycle": 9,
}
LATER = {"POST /actions": "`POST /actions`"}
"""What is not served -> what the page says of it."""


def served() -> set[str]:
    routes = [each for router in (*ROUTERS, WEBHOOKS) for each in router.routes if isinstance(each, APIRoute)]
    shown = {(method, each.path.removeprefix(f"{PREFIX}/v1")) for each in routes for method in each.methods or ()}
    return {f"{method} {re.sub(r'{[^}]*}', '{}', path)}" for method, path in shown}


def test_what_is_not_served_is_in_the_list() -> None:
    assert ROUTES.keys() - served() == {each for each in LATER if " " in each}
    assert CLUSTER_ACTIONS.keys() - ACTIONS.keys() == {each for each in LATER if " " not in each}
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in LATER.values() if reason not in page] == []


def test_nothing_else_is_served() -> None:
    assert served() - ROUTES.keys() == set()
    assert ACTIONS.keys() <= CLUSTER_ACTIONS.keys()


def version(minor: int) -> dict[str, str]:
    return {"OpenStack-API-Version": f"clustering 1.{minor}"}


def refusal(answer: httpx.Response) -> Any:
    return answer.json()["error"]["type"] if answer.status_code == 400 else None


@pytest.mark.parametrize(("route", "minor"), [each for each in ROUTES.items() if each[1] and each[0] in served()])
def test_a_route_is_there_from_its_microversion_on(senlin: httpx.Client, route: str, minor: int) -> None:
    method, path = route.replace("{}", "x").split(" ")
    older, newer = (
        senlin.request(method, path, json={} if method != "GET" else None, headers=version(number))
        for number in (minor - 1, minor)
    )
    assert refusal(older) == "MethodVersionNotFound"
    assert refusal(newer) != "MethodVersionNotFound"


@pytest.mark.parametrize(("action", "minor"), [each for each in CLUSTER_ACTIONS.items() if each[1]])
def test_an_action_is_there_from_its_microversion_on(senlin: httpx.Client, action: str, minor: int) -> None:
    older, newer = (
        senlin.post("/clusters/x/actions", json={action: {}}, headers=version(number)) for number in (minor - 1, minor)
    )
    assert refusal(older) == "MethodVersionNotFound"
    assert refusal(newer) != "MethodVersionNotFound"
