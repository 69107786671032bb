"""Profiles, policies and their types: by openstacksdk, and by plain requests where the wire itself counts."""

from typing import Any

import httpx
import pytest
from openstack import exceptions
from openstack.connection import Connection

from tests.wire.clustering.lives import SERVER

SCALING = {
    "type": "senlin.policy.scaling",
    "version": "1.0",
    "properties": {"event": "CLUSTER_SCALE_OUT", "adjustment": {"type": "CHANGE_IN_CAPACITY", "number": 2}},
}


def test_a_profile_lives(clustering: Connection) -> None:
    api: Any = clustering.clustering
    profile = api.create_profile(name="web", spec=SERVER, metadata={"a": "b"})
    assert (profile.type, profile.spec, profile.metadata) == ("os.nova.server-1.0", SERVER, {"a": "b"})
    assert api.find_profile("web").id == api.find_profile(profile.id[:8]).id == profile.id
    assert api.update_profile(profile, name="other", metadata={}).name == "other"
    assert [each.name for each in api.profiles()] == ["other"]
    api.delete_profile(profile)
    assert list(api.profiles()) == []


def test_a_policy_lives(clustering: Connection) -> None:
    api: Any = clustering.clustering
    policy = api.create_policy(name="more", spec=SCALING)
    assert (policy.type, policy.spec) == ("senlin.policy.scaling-1.0", SCALING)
    assert api.update_policy(policy, name="even-more").name == "even-more"
    api.delete_policy(policy)
    assert list(api.policies()) == []


def test_specs_are_validated_without_being_stored(clustering: Connection) -> None:
    api: Any = clustering.clustering
    assert api.validate_profile(spec=SERVER).type == "os.nova.server-1.0"
    assert api.validate_policy(spec=SCALING).type == "senlin.policy.scaling-1.0"
    assert list(api.profiles()) == list(api.policies()) == []


def asking(url: str, **more: Any) -> dict[str, Any]:
    """A health policy that asks a URL."""
    modes = [{"type": "NODE_STATUS_POLL_URL", "options": {"poll_url": url}}]
    properties = {"detection": {"detection_modes": modes, **more}, "recovery": {"actions": [{"name": "RECREATE"}]}}
    return {"type": "senlin.policy.health", "version": "1.2", "properties": properties}


NOT_ALLOWED = "the operator can allow it with --fetch-from"
REFUSED: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("profiles", {"type": "os.nova.server", "version": "9.0", "properties": {}}, 404, "ResourceNotFound", "9.0"),
    ("profiles", {**SERVER, "properties": {}}, 400, "InvalidSpec", "flavor"),
    ("profiles", {**SERVER, "properties": {"flavor": "f", "imagine": "x"}}, 400, "InvalidSpec", "imagine"),
    ("profiles", {"type": "container.dockerinc.docker", "version": "1.0", "properties": {}}, 400, "InvalidSpec", "Zun"),
    ("policies", {**SCALING, "version": "1.3"}, 404, "ResourceNotFound", "senlin.policy.scaling-1.3"),
    ("policies", {**SCALING, "properties": {"event": "SOME"}}, 400, "ESchema", "allowed values"),
    ("policies", {**SCALING, "properties": {}}, 400, "ESchema", "'event' not provided"),
    ("policies", asking("http://10.1.2.3/health"), 400, "InvalidSpec", NOT_ALLOWED),
    ("policies", asking("http://10.1.2.3/{nodename}/health"), 400, "InvalidSpec", NOT_ALLOWED),
    ("policies", asking("http://localhost:8080/health"), 400, "InvalidSpec", NOT_ALLOWED),
    ("policies", asking("http://{nodeip}/", canary_url="http://[fd00::1]/"), 400, "InvalidSpec", NOT_ALLOWED),
]


@pytest.mark.parametrize(("where", "spec", "code", "kind", "says"), REFUSED)
def test_a_wrong_spec_is_refused(
    senlin: httpx.Client, where: str, spec: dict[str, Any], code: int, kind: str, says: str
) -> None:
    answer = senlin.post(f"/{where}", json={where.replace("ies", "y").rstrip("s"): {"name": "x", "spec": spec}})
    fault = answer.json()
    assert (answer.status_code, fault["code"], fault["error"]["type"]) == (code, code, kind), fault
    assert says in fault["error"]["message"]
    assert set(fault) == {"code", "title", "explanation", "error"}
    assert "traceback" not in fault["error"]


def test_what_may_be_asked_or_is_not_known_yet_is_accepted(senlin: httpx.Client) -> None:
    elsewhere = asking("http://10.1.2.3/", vantage_points=[{"name": "office"}])
    for spec in (asking("http://{nodeip}/health"), asking("http://192.0.43.10/{nodename}"), elsewhere):
        answer = senlin.post("/policies", json={"policy": {"name": "p", "spec": spec}})
        assert answer.status_code == 201, answer.text


def test_types_are_shown_as_each_microversion_shows_them(senlin: httpx.Client) -> None:
    newest = {each["name"]: each for each in senlin.get("/profile-types").json()["profile_types"]}
    assert newest["os.nova.server"]["version"] == "1.0"
    assert newest["os.nova.server"]["support_status"]["1.0"][0]["status"] == "SUPPORTED"
    oldest = senlin.get("/profile-types", headers={"OpenStack-API-Version": "clustering 1.4"}).json()["profile_types"]
    assert {"name": "os.nova.server-1.0"} in oldest
    shown = senlin.get("/policy-types/senlin.policy.health-1.2").json()["policy_type"]
    assert shown["schema"]["detection"]["required"] is True
    operations = senlin.get("/profile-types/os.nova.server-1.0/ops").json()["operations"]
    assert operations["reboot"]["parameters"]["type"]["constraints"][0]["constraint"] == ["SOFT", "HARD"]


def test_a_project_sees_its_own_alone(senlin: httpx.Client) -> None:
    mine = senlin.post("/profiles", json={"profile": {"name": "mine", "spec": SERVER}}).json()["profile"]
    other = {"X-Project-Id": "somewhere-else"}
    assert senlin.get("/profiles", headers=other).json() == {"profiles": []}
    assert senlin.get(f"/profiles/{mine['id']}", headers=other).status_code == 404
    assert senlin.delete(f"/profiles/{mine['id']}", headers=other).status_code == 404


def test_lists_are_filtered_sorted_and_paged(senlin: httpx.Client) -> None:
    for name in ("b", "a", "c"):
        senlin.post("/policies", json={"policy": {"name": name, "spec": SCALING}})

    def names(query: str) -> list[str]:
        answer = senlin.get(f"/policies?{query}")
        assert answer.status_code == 200, answer.text
        return [each["name"] for each in answer.json()["policies"]]

    assert names("") == ["b", "a", "c"]
    assert names("sort=name:desc") == ["c", "b", "a"]
    assert names("name=a&name=c") == ["a", "c"]
    first = senlin.get("/policies?sort=name&limit=1").json()["policies"][0]
    assert names(f"sort=name&limit=2&marker={first['id']}") == ["b", "c"]
    assert names("limit=0") == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("colour=red", "Invalid parameter colour"),
        ("sort=age", "Unsupported sort key 'age'"),
        ("sort=name:up", "Unsupported sort dir 'up'"),
        ("limit=-1", "limit"),
        ("marker=first", "not a valid UUID"),
        ("global_project=perhaps", "global_project"),
    ],
)
def test_a_wrong_query_is_refused(senlin: httpx.Client, query: str, says: str) -> None:
    answer = senlin.get(f"/policies?{query}")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "BadRequest")
    assert says in answer.json()["error"]["message"]


def test_an_ambiguous_name_is_refused(clustering: Connection, senlin: httpx.Client) -> None:
    for _ in range(2):
        senlin.post("/policies", json={"policy": {"name": "twin", "spec": SCALING}})
    answer = senlin.get("/policies/twin")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "MultipleChoices")
    with pytest.raises(exceptions.DuplicateResource):
        clustering.clustering.find_policy("twin")


def test_microversions(senlin: httpx.Client) -> None:
    answer = senlin.get("/policies")
    assert answer.headers["OpenStack-API-Version"] == "clustering 1.14"
    assert answer.headers["Vary"] == "OpenStack-API-Version"
    latest = senlin.get("/policies", headers={"OpenStack-API-Version": "clustering latest"})
    assert latest.headers["OpenStack-API-Version"] == "clustering 1.14"
    none = senlin.get("/policies", headers={"OpenStack-API-Version": "compute 2.1"})
    assert none.headers["OpenStack-API-Version"] == "clustering 1.0"
    beyond = senlin.get("/policies", headers={"OpenStack-API-Version": "clustering 1.99"})
    assert (beyond.status_code, beyond.json()["error"]["type"]) == (406, "InvalidGlobalAPIVersion")
    early = senlin.post(
        "/policies/validate",
        json={"policy": {"spec": SCALING}},
        headers={"OpenStack-API-Version": "clustering 1.1"},
    )
    assert (early.status_code, early.json()["error"]["type"]) == (400, "MethodVersionNotFound")


def test_the_version_is_found(senlin: httpx.Client) -> None:
    root = str(senlin.base_url).rstrip("/").removesuffix("/v1")
    listed = httpx.get(root)
    assert listed.status_code == 300
    (version,) = listed.json()["versions"]
    assert (version["min_version"], version["max_version"], version["status"]) == ("1.0", "1.14", "CURRENT")
    assert version["links"][0] == {"href": f"{root}/v1", "rel": "self"}
    assert httpx.get(f"{root}/v1").json() == {"version": version}
