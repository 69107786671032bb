"""Refusals have the texts of Senlin, which clients and suites compare; what to do about it is in `error.remedy`."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.wire.clustering.lives import SERVER, made, members

NOWHERE = "087ef694-55d2-4616-a58b-1073cacb2bcd"
NOT_FOUND = "The {} '087ef694-55d2-4616-a58b-1073cacb2bcd' could not be found."
BOOLEANS = "acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'"
ITEMS = "Value for 'nodes' must have at least 1 item(s)."
UNIQUE = "Items for 'nodes' must be unique"
NO_MAP = "The data provided is not a map"
STACK = {
    "type": "os.heat.stack",
    "version": "1.0",
    "properties": {"template": {"heat_template_version": "2018-08-31", "resources": {}}},
}
SCALING = {
    "type": "senlin.policy.scaling",
    "version": "1.0",
    "properties": {"event": "CLUSTER_SCALE_IN", "adjustment": {"number": 1}},
}


def wrong(spec: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {**spec, "properties": {**spec["properties"], **properties}}


def act(**data: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/clusters/cluster_id/actions", data


MISSING = "Malformed request data, missing '{}' key in request body."
REFUSALS: list[tuple[tuple[str, str, Any], int, str]] = [
    # -- actions of clusters: what is asked for is checked before the cluster is looked up
    (act(), 400, "No action specified"),
    (act(resize={}, check={}), 400, "Multiple actions specified"),
    (act(bogus={}), 400, "Unrecognized action 'bogus' specified"),
    (act(policy_attach="POLICY_ID"), 400, NO_MAP),
    (act(recover=["k1"]), 400, NO_MAP),
    (act(resize={}), 400, "Not enough parameters to do resize action."),
    (
        act(resize={"adjustment_type": "bogus", "number": 5}),
        400,
        "Value 'bogus' is not acceptable for field 'adjustment_type'.",
    ),
    (act(resize={"number": 5}), 400, "Missing adjustment_type value for size adjustment."),
    (act(resize={"adjustment_type": "CHANGE_IN_CAPACITY"}), 400, "Missing number value for size adjustment."),
    (
        act(resize={"adjustment_type": "EXACT_CAPACITY", "number": -1}),
        400,
        "The 'number' must be non-negative integer for adjustment type 'EXACT_CAPACITY'.",
    ),
    (
        act(resize={"max_size": 10, "min_size": 20}),
        400,
        "The specified min_size (20) is greater than the specified max_size (10).",
    ),
    (act(resize={"min_size": -1}), 400, "The value for the min_size field must be greater than or equal to 0."),
    (act(resize={"max_size": 9999}), 400, "The value for the max_size field must be less than or equal to 1000."),
    (act(resize={"max_size": "many"}), 400, "The value for max_size must be an integer: 'many'."),
    (act(resize={"max_size": 1, "strict": "maybe"}), 400, f"Unrecognized value 'maybe', {BOOLEANS}"),
    (act(scale_out={"count": -1}), 400, "Value must be >= 0 for field 'count'."),
    (act(scale_in={"count": "bad-count"}), 400, "The value for count must be an integer: 'bad-count'."),
    (act(add_nodes={}), 400, ITEMS),
    (act(add_nodes={"nodes": []}), 400, ITEMS),
    (act(add_nodes={"nodes": "node_id"}), 400, UNIQUE),
    (act(add_nodes={"nodes": ["id1", "id1"]}), 400, UNIQUE),
    (act(del_nodes={}), 400, ITEMS),
    (act(del_nodes={"nodes": ["a"], "destroy_after_deletion": "x"}), 400, f"Unrecognized value 'x', {BOOLEANS}"),
    (act(replace_nodes={"nodes": []}), 400, NO_MAP),
    (act(replace_nodes={"nodes": {}}), 400, NO_MAP),
    (act(replace_nodes={}), 400, NO_MAP),
    (act(replace_nodes={"nodes": {"old": None}}), 400, "Field `nodes[old]' cannot be None"),
    (act(replace_nodes={"nodes": {"a": "new", "b": "new"}}), 400, "Map contains duplicated values"),
    (act(policy_attach={}), 400, "'policy_id' is a required property"),
    (act(policy_attach={"poilicy_id": "x"}), 400, "'policy_id' is a required property"),
    (act(policy_attach={"policy_id": "x", "enabled": "not-bool"}), 400, f"Unrecognized value 'not-bool', {BOOLEANS}"),
    (
        act(policy_attach={"policy_id": "x", "a": 1, "b": 2}),
        400,
        "Additional properties are not allowed ('a', 'b' were unexpected)",
    ),
    (act(policy_detach={"policy_id": None}), 400, "Field `policy_id' cannot be None"),
    (act(complete_lifecycle={}), 400, "Field `lifecycle_action_token' cannot be None"),
    (("POST", f"/clusters/{NOWHERE}/actions", {"recover": {"k1": "v1"}}), 404, NOT_FOUND.format("cluster")),
    (("POST", f"/clusters/{NOWHERE}/actions", {"scale_out": {"count": 1}}), 404, NOT_FOUND.format("cluster")),
    (("POST", "/clusters/c/ops", {}), 400, "No operation specified"),
    (("POST", "/clusters/c/ops", {"a": {}, "b": {}}), 400, "Multiple operations specified"),
    (("GET", "/clusters/c/attrs/None", None), 400, "Required path attribute is missing."),
    # -- clusters
    (("POST", "/clusters", {"bad": {}}), 400, "Request body missing 'cluster' key."),
    (("POST", "/clusters", {"cluster": {"name": "c"}}), 400, "'profile_id' is a required property"),
    (
        ("POST", "/clusters", {"cluster": {"name": "c", "profile_id": NOWHERE}}),
        400,
        f"The specified profile '{NOWHERE}' could not be found.",
    ),
    (
        ("POST", "/clusters", {"cluster": {"name": "c d", "profile_id": "p"}}),
        400,
        "The value for the 'name' (c d) contains illegal characters. It must contain only alphanumeric or \"_-.~\" "
        "characters and must start with letter.",
    ),
    (
        ("POST", "/clusters", {"cluster": {"name": "", "profile_id": "p"}}),
        400,
        "The value for the name field must be at least 1 characters long.",
    ),
    (
        ("POST", "/clusters", {"cluster": {"name": "c" * 256, "profile_id": "p"}}),
        400,
        "The value for the name field must be less than 255 characters long.",
    ),
    (("PATCH", "/clusters/c", {}), 400, MISSING.format("cluster")),
    (
        ("PATCH", f"/clusters/{NOWHERE}", {"cluster": {"bad": "x"}}),
        400,
        "Additional properties are not allowed ('bad' was unexpected)",
    ),
    (("PATCH", f"/clusters/{NOWHERE}", {"cluster": {"name": "n"}}), 404, NOT_FOUND.format("cluster")),
    (("DELETE", "/clusters/c?force=maybe", None), 400, "Invalid value 'maybe' specified for 'force'"),
    # -- lists
    (("GET", "/clusters?bogus=1", None), 400, "Invalid parameter 'bogus'"),
    (("GET", "/nodes?bogus=1", None), 400, "Invalid parameter bogus"),
    (("GET", "/events?limit=not-int", None), 400, "The value for limit must be an integer: 'not-int'."),
    (("GET", "/nodes?limit=-5", None), 400, "Value must be >= 0 for field 'limit'."),
    (("GET", "/clusters?global_project=x", None), 400, "Invalid value 'x' specified for 'global_project'"),
    (("GET", "/nodes?sort=bad", None), 400, "Unsupported sort key 'bad' for 'sort'."),
    (("GET", "/nodes?sort=name:up", None), 400, "Unsupported sort dir 'up' for 'sort'."),
    (("GET", "/clusters?marker=bad-marker", None), 400, "The value for marker is not a valid UUID: 'bad-marker'."),
    (("GET", "/clusters?status=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/nodes?status=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/events?level=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/events?action=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/actions?action=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/receivers?type=bad", None), 400, "Field value bad is invalid"),
    (("GET", "/nodes?cluster_id=fake", None), 400, "Cannot find the given cluster: fake."),
    # -- nodes
    (("POST", "/nodes", {}), 400, "Request body missing 'node' key."),
    (("POST", "/nodes", {"node": {"profile_id": "p"}}), 400, "'name' is a required property"),
    (("PATCH", "/nodes/n", {}), 400, MISSING.format("node")),
    (("PATCH", f"/nodes/{NOWHERE}", {"node": {"name": "n"}}), 404, NOT_FOUND.format("node")),
    (("POST", "/nodes/n/actions", {}), 400, "No action specified."),
    (("POST", "/nodes/n/actions", {"check": {}, "recover": {}}), 400, "Multiple actions specified."),
    (("POST", "/nodes/n/actions", {"bogus": {}}), 400, "Unrecognized action 'bogus' specified"),
    (("POST", "/nodes/n/actions", {"check": ["a"]}), 400, "The params provided is not a map."),
    (("POST", "/nodes/n/actions", {"recover": ["a"]}), 400, "The params provided is not a map."),
    (
        ("POST", "/profiles/validate", {"profile": {"spec": wrong(STACK, bogus=1)}}),
        400,
        "Unrecognizable spec item 'bogus'",
    ),
    (("POST", "/nodes/n/ops", {}), 400, "No operation specified."),
    (("POST", "/nodes/n/ops", {"a": {}, "b": {}}), 400, "Multiple operations specified."),
    # -- profiles and policies
    (("POST", "/profiles", {"profile": {"name": "p"}}), 400, "'spec' is a required property"),
    (("POST", "/profiles", {"profile": {"name": "p", "spec": []}}), 400, "[] is not of type 'object'"),
    (
        ("POST", "/profiles", {"profile": {"name": "p", "spec": wrong(SERVER, bogus="foo")}}),
        400,
        "Failed in creating profile p: Unrecognizable spec item 'bogus'",
    ),
    (
        ("POST", "/profiles", {"profile": {"name": "p", "spec": {**SERVER, "type": "senlin.profile.bogus"}}}),
        404,
        "The profile_type 'senlin.profile.bogus-1.0' could not be found.",
    ),
    (("PATCH", "/profiles/p", {}), 400, MISSING.format("profile")),
    (("POST", "/profiles/validate", {}), 400, "Request body missing 'profile' key."),
    (("POST", "/policies/validate", {}), 400, "Request body missing 'policy' key."),
    (
        ("POST", "/policies/validate", {"policy": {"name": "fake", "spec": {}}}),
        400,
        "Additional properties are not allowed ('name' was unexpected)",
    ),
    (
        ("POST", "/policies", {"policy": {"name": "p", "spec": wrong(SCALING, bogus="foo")}}),
        400,
        "Unrecognizable spec item 'bogus'",
    ),
    (
        ("POST", "/policies", {"policy": {"name": "p", "spec": {**SCALING, "version": "9"}}}),
        404,
        "The policy_type 'senlin.policy.scaling-9' could not be found.",
    ),
    (("PATCH", "/policies/p", {}), 400, MISSING.format("policy")),
    (
        ("PATCH", "/policies/p", {"policy": {"name": "n", "spec": {}, "boo": 1}}),
        400,
        "Additional properties are not allowed ('spec', 'boo' were unexpected)",
    ),
    # -- receivers and actions
    (("PATCH", "/receivers/r", {}), 400, MISSING.format("receiver")),
    (
        ("POST", "/receivers", {"receiver": {"name": "r", "type": "bogus"}}),
        400,
        "Value 'bogus' is not acceptable for field 'type'.",
    ),
    (
        ("POST", "/receivers", {"receiver": {"name": "r", "type": "webhook", "action": "CLUSTER_SCALE_IN"}}),
        400,
        "Cluster identity is required for creating webhook receiver.",
    ),
    (
        ("POST", "/receivers", {"receiver": {"name": "r", "type": "webhook", "cluster_id": "c"}}),
        400,
        "Action name is required for creating webhook receiver.",
    ),
    (
        (
            "POST",
            "/receivers",
            {"receiver": {"name": "r", "type": "webhook", "cluster_id": "c", "action": "CLUSTER_CREATE"}},
        ),
        400,
        "Action name cannot be any of ['CLUSTER_CREATE'].",
    ),
    (
        (
            "POST",
            "/receivers",
            {"receiver": {"name": "r", "type": "webhook", "cluster_id": "none", "action": "CLUSTER_SCALE_IN"}},
        ),
        400,
        "The referenced cluster 'none' could not be found.",
    ),
    (("PATCH", "/actions/a", {}), 400, MISSING.format("action")),
    (("PATCH", "/actions/a", {"action": {"status": "READY"}}), 400, "Unknown status READY for action a."),
    (("GET", "/profile-types/none/ops", None), 400, "The profile_type 'none' could not be found."),
]


@pytest.mark.parametrize(
    ("request_", "code", "message"), REFUSALS, ids=[f"{each[0][0]}-{each[2][:50]}" for each in REFUSALS]
)
def test_a_refusal_has_the_text_of_senlin(
    senlin: httpx.Client, request_: tuple[str, str, Any], code: int, message: str
) -> None:
    method, path, body = request_
    answer = senlin.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["message"]) == (code, message)


@dataclass(frozen=True)
class World:
    """Two clusters of one node each, the first of which can have no other size, and two nodes without one."""

    cluster: str
    other: str
    member: str
    foreign: str
    node: str
    unlike: str
    profile: str
    stacks: str
    policy: str

    def act(self, cluster: str, **data: Any) -> tuple[str, str, Any]:
        return "POST", f"/clusters/{cluster}/actions", data


def of_membership(w: World) -> list[tuple[tuple[str, str, Any], str]]:
    def replace(old: str, new: str) -> tuple[str, str, Any]:
        return w.act(w.cluster, replace_nodes={"nodes": {old: new}})

    return [
        (w.act(w.other, add_nodes={"nodes": [NOWHERE]}), f"Nodes not found: ['{NOWHERE}']."),
        (
            w.act(w.other, add_nodes={"nodes": [w.member, "none"]}),
            f"Nodes ['{w.member}'] already owned by some cluster.\nNodes not found: ['none'].",
        ),
        (
            w.act(w.other, add_nodes={"nodes": [w.unlike]}),
            f"Profile type of nodes ['{w.unlike}'] does not match that of the cluster.",
        ),
        (
            w.act(w.cluster, add_nodes={"nodes": [w.node]}),
            "The target capacity (2) is greater than the cluster's max_size (1).",
        ),
        (
            w.act(w.cluster, del_nodes={"nodes": [w.member]}),
            "The target capacity (0) is less than the cluster's min_size (1).",
        ),
        (
            w.act(w.cluster, del_nodes={"nodes": [w.foreign, "none"]}),
            f"Nodes not found: ['none'].\nNodes not members of specified cluster: ['{w.foreign}'].",
        ),
        (replace("old", w.node), "Original nodes not found: ['old']."),
        (replace(w.member, "new"), "Replacement nodes not found: ['new']."),
        (replace(w.member, w.foreign), f"Nodes ['{w.foreign}'] already member of a cluster."),
        (replace(w.member, w.unlike), f"Profile type of nodes ['{w.unlike}'] do not match that of the cluster."),
        (
            replace(w.unlike, w.node),
            f"The specified nodes ['{w.unlike}'] to be replaced are not members of the cluster {w.cluster}.",
        ),
    ]


def of_operations(w: World) -> list[tuple[tuple[str, str, Any], str]]:
    ops = f"/clusters/{w.cluster}/ops"
    kind = "Type field 'x' in operation_params has to be one of the following: SOFT, HARD."
    return [
        (w.act(w.cluster, scale_out={"count": 0}), "Count for scale-out request cannot be 0."),
        (w.act(w.cluster, recover={"k1": "v1"}), "Action parameter ['k1'] is not recognizable."),
        (
            w.act(w.cluster, recover={"operation": "fly"}),
            "Operation value 'fly' has to be one of the following: REBOOT, REBUILD, RECREATE.",
        ),
        (w.act(w.cluster, recover={"operation": "REBOOT", "operation_params": {"type": "x"}}), kind),
        (
            ("POST", ops, {"fly": {}}),
            "The requested operation 'fly' is not supported by the profile type 'os.nova.server-1.0'.",
        ),
        (("POST", ops, {"reboot": {"filters": {"x": "y"}}}), "Filter key 'x' is unsupported."),
        (("POST", ops, {"reboot": {"filters": {"name": "no"}}}), "No node (matching the filter) could be found."),
    ]


def of_profiles_and_policies(w: World) -> list[tuple[tuple[str, str, Any], str]]:
    new = {"name": "n", "profile_id": w.stacks, "cluster_id": w.other}
    other = "Cannot update a {} to a different profile type, operation aborted."
    return [
        (
            w.act(w.cluster, policy_attach={"policy_id": NOWHERE}),
            f"The specified policy '{NOWHERE}' could not be found.",
        ),
        (
            w.act(w.cluster, policy_update={"policy_id": w.policy}),
            f"The policy '{w.policy}' is not attached to the specified cluster '{w.cluster}'.",
        ),
        (("POST", "/nodes", {"node": new}), "Node and cluster have different profile type, operation aborted."),
        (("PATCH", f"/nodes/{w.node}", {"node": {"profile_id": w.stacks}}), other.format("node")),
        (("PATCH", f"/clusters/{w.cluster}", {"cluster": {"profile_id": w.stacks}}), other.format("cluster")),
        (("PATCH", f"/clusters/{w.cluster}", {"cluster": {}}), "No property needs an update."),
        (
            ("DELETE", f"/profiles/{w.profile}", None),
            f"The profile '{w.profile}' cannot be deleted: still referenced by some clusters and/or nodes.",
        ),
    ]


def test_refusals_by_what_is_there_have_the_texts_of_senlin(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=1, min_size=1, max_size=1)
    other = made(api, profile, desired_capacity=1)
    (member,), (foreign,) = members(api, cluster).values(), members(api, other).values()
    stacks = api.create_profile(name="stacks", spec=STACK)
    node, unlike = (
        api.wait_for_status(api.create_node(name=name, profile_id=of.id), "ACTIVE", wait=60)
        for name, of in (("one", profile), ("two", stacks))
    )
    policy = api.create_policy(name="p", spec=SCALING)
    there = (cluster, other, member, foreign, node, unlike, profile, stacks, policy)
    world = World(*(each.id for each in there))
    for (method, path, body), text in [
        *of_membership(world),
        *of_operations(world),
        *of_profiles_and_policies(world),
    ]:
        answer = senlin.request(method, path, json=body)
        code = 409 if method == "DELETE" else 400
        assert (answer.status_code, answer.json()["error"]["message"]) == (code, text)


def test_a_remedy_stands_beside_the_text(senlin: httpx.Client) -> None:
    error = senlin.post("/clusters/c/actions", json={"bogus": {}}).json()["error"]
    assert error.keys() == {"code", "type", "message", "remedy"}
    assert "scale_out" in error["remedy"]


def test_what_changes_nothing_needs_no_content_type_and_explains_what_to_change(senlin: httpx.Client) -> None:
    modes = {"type": "NODE_STATUS_POLLING", "options": {"interval": 90}}
    spec = {
        "type": "senlin.policy.health",
        "version": "1.1",
        "properties": {"detection": modes, "recovery": {"actions": [{"name": "RECREATE"}]}},
    }
    body = json.dumps({"policy": {"spec": spec}})
    answer = senlin.post("/policies/validate", content=body)
    assert answer.status_code == 200, answer.text
    (warning,) = answer.json()["policy"]["warnings"]
    assert "detection.type is the former form" in warning
    stored = senlin.post("/policies", json={"policy": {"name": "h", "spec": spec}}).json()["policy"]
    assert stored["warnings"] == [warning]
    assert senlin.post("/policies", content=body).status_code == 400
