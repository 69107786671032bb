"""Every request of the Clustering API, by callers of every role: who gets an answer, and who sees nothing of others."""

from collections.abc import Mapping
from typing import Any

import pytest
from fastapi.routing import APIRoute
from tests.unit.api.neighbours import OTHER, OWN
from tests.unit.api.test_matrix import World

from homeostat.api.http.heavy_requests import HeavyRequests
from homeostat.clustering.wire.context import PREFIX
from homeostat.clustering.wire.routers import ROUTERS
from homeostat.store import events

PROFILE = {"type": "os.nova.server", "version": "1.0", "properties": {"flavor": "f", "image": "i"}}
POLICY = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
READERS, MEMBERS, ADMINS = "readers", "members", "admins"
MAY = {READERS: {"admin", "member", "reader"}, MEMBERS: {"admin", "member"}, ADMINS: {"admin"}}
TABLE: dict[str, tuple[str, Any]] = {
    "GET /profile-types": (READERS, None),
    "GET /profile-types/{type_name}": (READERS, None),
    "GET /profile-types/{type_name}/ops": (READERS, None),
    "GET /policy-types": (READERS, None),
    "GET /policy-types/{type_name}": (READERS, None),
    "GET /profiles": (READERS, None),
    "POST /profiles": (MEMBERS, {"profile": {"name": "new", "spec": PROFILE}}),
    "POST /profiles/validate": (READERS, {"profile": {"spec": PROFILE}}),
    "GET /profiles/{profile_id}": (READERS, None),
    "PATCH /profiles/{profile_id}": (MEMBERS, {"profile": {"name": "renamed"}}),
    "DELETE /profiles/{profile_id}": (MEMBERS, None),
    "GET /policies": (READERS, None),
    "POST /policies": (MEMBERS, {"policy": {"name": "new", "spec": POLICY}}),
    "POST /policies/validate": (READERS, {"policy": {"spec": POLICY}}),
    "GET /policies/{policy_id}": (READERS, None),
    "PATCH /policies/{policy_id}": (MEMBERS, {"policy": {"name": "renamed"}}),
    "DELETE /policies/{policy_id}": (MEMBERS, None),
    "GET /clusters": (READERS, None),
    "POST /clusters": (MEMBERS, {"cluster": {"name": "new", "profile_id": "PROFILE"}}),
    "GET /clusters/{cluster_id}": (READERS, None),
    "PATCH /clusters/{cluster_id}": (MEMBERS, {"cluster": {"name": "renamed"}}),
    "DELETE /clusters/{cluster_id}": (MEMBERS, None),
    "POST /clusters/{cluster_id}/actions": (MEMBERS, {"scale_out": {}}),
    "POST /clusters/{cluster_id}/ops": (MEMBERS, {"reboot": {}}),
    "GET /clusters/{cluster_id}/metadata": (READERS, None),
    "POST /clusters/{cluster_id}/metadata": (MEMBERS, {"metadata": {"a": "b"}}),
    "PUT /clusters/{cluster_id}/metadata": (MEMBERS, {"metadata": {"a": "b"}}),
    "GET /clusters/{cluster_id}/metadata/{key}": (READERS, None),
    "PUT /clusters/{cluster_id}/metadata/{key}": (MEMBERS, {"meta": {"a": "b"}}),
    "DELETE /clusters/{cluster_id}/metadata/{key}": (MEMBERS, None),
    "GET /clusters/{cluster_id}/policies": (READERS, None),
    "GET /clusters/{cluster_id}/policies/{policy_id}": (READERS, None),
    "GET /clusters/{cluster_id}/attrs/{path:path}": (READERS, None),
    "GET /nodes": (READERS, None),
    "POST /nodes": (MEMBERS, {"node": {"name": "new", "profile_id": "PROFILE"}}),
    "POST /nodes/adopt": (MEMBERS, {"identity": "none", "type": "os.nova.server-1.0"}),
    "POST /nodes/adopt-preview": (MEMBERS, {"identity": "none", "type": "os.nova.server-1.0"}),
    "GET /nodes/{node_id}": (READERS, None),
    "POST /nodes/{node_id}/actions": (MEMBERS, {"check": {}}),
    "POST /nodes/{node_id}/ops": (MEMBERS, {"reboot": {}}),
    "PATCH /nodes/{node_id}": (MEMBERS, {"node": {"role": "other"}}),
    "DELETE /nodes/{node_id}": (MEMBERS, None),
    "GET /receivers": (READERS, None),
    "POST /receivers": (
        MEMBERS,
        {"receiver": {"name": "new", "type": "webhook", "cluster_id": "CLUSTER", "action": "CLUSTER_SCALE_OUT"}},
    ),
    "POST /receivers/{receiver_id}/notify": (MEMBERS, {}),
    "GET /receivers/{receiver_id}": (READERS, None),
    "PATCH /receivers/{receiver_id}": (MEMBERS, {"receiver": {"name": "renamed"}}),
    "DELETE /receivers/{receiver_id}": (MEMBERS, None),
    "GET /actions": (READERS, None),
    "GET /actions/{action_id}": (READERS, None),
    "PATCH /actions/{action_id}": (MEMBERS, {"action": {"status": "CANCELLED"}}),
    "GET /events": (READERS, None),
    "GET /events/{event}": (READERS, None),
    "GET /build-info": (READERS, None),
    "GET /services": (ADMINS, None),
}
ROLES = ("admin", "member", "reader", "visitor", "heat_stack_user/x")
WITH_IDS = [request for request in TABLE if "_id}" in request or "{event}" in request]


class Clusters(World):
    """In each project a profile, a policy, and a cluster of one node to which the policy is attached."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = {project: self._made(project) for project in (OWN, OTHER)}
        self._copy(self._connection(), self._first)

    def _made(self, project: str) -> dict[str, str]:
        def post(path: str, body: Any) -> Any:
            answer = self.asked("POST", path, "member", project, body)
            assert answer.status_code < 300, answer.text
            return answer.json()

        profile = post("/profiles", {"profile": {"name": "p", "spec": PROFILE}})["profile"]["id"]
        policy = post("/policies", {"policy": {"name": "p", "spec": POLICY}})["policy"]["id"]
        new = {"name": "c", "profile_id": profile, "desired_capacity": 1}
        cluster = post("/clusters", {"cluster": new})["cluster"]
        self.service.rest()
        post(f"/clusters/{cluster['id']}/actions", {"policy_attach": {"policy_id": policy}})
        hook = {"name": "r", "type": "webhook", "cluster_id": cluster["id"], "action": "CLUSTER_SCALE_OUT"}
        receiver = post("/receivers", {"receiver": hook})["receiver"]["id"]
        (action, *_) = self.asked("GET", "/actions", "reader", project).json()["actions"]
        with self.service.db.read() as tx:
            event = events.event_id(cluster["id"], events.newest(tx, [cluster["id"]]))
        found = {
            "profile_id": profile,
            "policy_id": policy,
            "cluster_id": cluster["id"],
            "node_id": cluster["nodes"][0],
        }
        return {**found, "action_id": action["id"], "event": event, "receiver_id": receiver}

    def asked(self, method: str, path: str, role: str, project: str, body: Any = None, named: str | None = None) -> Any:
        """The answer. named — in `X-Project-Id`."""
        headers = {"x-caller": f"{role}@{project}", "OpenStack-API-Version": "clustering 1.14"}
        headers |= {"x-project-id": named} if named is not None else {}
        return self.client.request(method, f"{PREFIX}/v1{path}", json=body, headers=headers)

    def answered(self, request: str, role: str, things: str) -> int:
        """The code of the answer to a caller of the own project that names things of this one."""
        self.fresh()
        method, _, path = request.partition(" ")
        ids = {**self.ids[things], "type_name": "os.nova.server-1.0", "key": "a"}
        kind = "senlin.policy.deletion-1.1" if "policy-types" in path else ids["type_name"]
        path = path.replace("{path:path}", "$.status").format_map({**ids, "type_name": kind})
        return int(self.asked(method, path, role, OWN, filled(TABLE[request][1], ids)).status_code)


def filled(body: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(body, dict):
        return {key: filled(value, ids) for key, value in body.items()}
    return (
        {"PROFILE": ids["profile_id"], "CLUSTER": ids["cluster_id"]}.get(body, body) if isinstance(body, str) else body
    )


@pytest.fixture(scope="module")
def all_clusters() -> Clusters:
    return Clusters()


@pytest.fixture
def world(all_clusters: Clusters) -> Clusters:
    all_clusters.fresh()
    return all_clusters


def test_every_route_is_in_the_table() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    known = {f"{method} {each.path.removeprefix(f'{PREFIX}/v1')}" for each in routes for method in each.methods or ()}
    assert known == set(TABLE)


@pytest.mark.heavy
@pytest.mark.parametrize("request_", TABLE)
def test_who_gets_an_answer(world: Clusters, request_: str) -> None:
    for role in sorted(ROLES, key=lambda role: role in MAY[TABLE[request_][0]]):
        code = world.answered(request_, role, OWN)
        if role not in MAY[TABLE[request_][0]]:
            assert code == 403, f"{role}s must not: {code}"
        else:
            assert code not in (401, 403, 405), f"{role}s may: {code}"
            assert code < 500
            break


@pytest.mark.parametrize("request_", WITH_IDS)
def test_things_of_others_are_not_there(world: Clusters, request_: str) -> None:
    for role in ("member", "reader"):
        if role in MAY[TABLE[request_][0]]:
            assert world.answered(request_, role, OTHER) == 404


def test_nothing_of_another_project_is_listed(world: Clusters) -> None:
    for path in ("profiles", "policies", "clusters", "nodes", "actions", "events", "receivers"):
        shown = world.asked("GET", f"/{path}", "reader", OWN).json()[path]
        assert shown
        assert {each["project"] for each in shown} == {OWN}


def test_a_project_that_is_named_has_to_be_the_callers(world: Clusters) -> None:
    assert world.asked("GET", "/profiles", "member", OWN, named=OTHER).status_code == 403
    assert world.asked("GET", "/profiles", "member", OWN, named=OWN).status_code == 200
    assert world.asked("GET", "/profiles", "member", "").status_code == 403


def test_what_others_have_cannot_be_used(world: Clusters) -> None:
    foreign = world.ids[OTHER]
    new = {"name": "c", "profile_id": foreign["profile_id"]}
    refused = world.asked("POST", "/clusters", "member", OWN, {"cluster": new})
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "BadRequest")
    node = {"name": "n", "profile_id": world.ids[OWN]["profile_id"], "cluster_id": foreign["cluster_id"]}
    assert world.asked("POST", "/nodes", "member", OWN, {"node": node}).status_code == 400
    attach = {"policy_attach": {"policy_id": foreign["policy_id"]}}
    mine = world.ids[OWN]["cluster_id"]
    assert world.asked("POST", f"/clusters/{mine}/actions", "member", OWN, attach).status_code == 400


NEED_A_PLACE = {
    "POST /profiles",
    "POST /profiles/validate",
    "POST /clusters",
    "PATCH /clusters/{cluster_id}",
    "POST /clusters/{cluster_id}/actions",
    "POST /nodes",
    "POST /nodes/adopt",
    "POST /nodes/adopt-preview",
    "PATCH /nodes/{node_id}",
    "DELETE /nodes/{node_id}",
    "POST /receivers",
    "POST /receivers/{receiver_id}/notify",
}


@pytest.fixture
def full(world: Clusters, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    """No place is free."""
    monkeypatch.setattr(HeavyRequests, "one", HeavyRequests(0, patience_s=0.01).one)
    return world


def test_what_checks_templates_waits_for_a_place(full: Clusters) -> None:
    waited = {each for each in TABLE if full.answered(each, "admin", OWN) == 503}
    assert waited == NEED_A_PLACE


def test_a_webhook_waits_for_a_place_of_its_project(full: Clusters) -> None:
    answer = full.client.post(f"{PREFIX}/v1/webhooks/{full.ids[OWN]['receiver_id']}/trigger?V=2")
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "ServiceUnavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert "traceback" not in answer.json()["error"]
