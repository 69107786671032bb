"""A project with things that are as large as they may be, and requests for all of them, made from `openapi.json`.

A request is made from what the document says of an operation: its place in the path, its parameters, its body. What the
document does not say stands in the tables here. What neither says is an error: a new operation has to be made known.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from homeostat.clustering.wire.context import PREFIX
from tests.attack.service import Attacked, ended
from tests.unit.api.test_clustering_matrix import TABLE as CLUSTERING_BODIES
from tests.waiting import until

PROJECT = "attacker"
MEMBERS, MANY = int(os.environ.get("HOMEOSTAT_MEMBERS", "600")), 40
"""Members of the group, and things of each other kind."""
SIZES = (900_000, 200_000, 60_000, 10_000, 250)
"""Characters of a text, in the order in which they are tried: the first that is not refused is as large as may be."""
MEMBER_CHARACTERS = 15_500
WITHIN_S = 900.0
TEMPLATE_TEXT = "x" * 400_000
PROPERTIES = {"flavor": "m1.tiny", "image": "cirros"}
SERVER = {"type": "os.nova.server", "version": "1.0", "properties": PROPERTIES}
DELETION = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
LARGEST_NUMBERS = {"limit": 2**31 - 1, "nested_depth": 5}
"""Values of parameters that are numbers."""
CHOSEN = {"V": "2", "Action": "", "template_type": "hot", "version": "heat_template_version.2021-04-16"}
"""Values of parameters that choose something."""
LEFT_OUT = frozenset(
    {
        "marker",
        "sort_keys",
        "sort_dir",
        "tags",
        "tags_any",
        "not_tags",
        "not_tags_any",
        "status",
        "stack_status",
        "id",
        "name",
        "stack_name",
        "action",
        "stack_action",
        "stack_status_reason",
        "tenant",
        "stack_user_project_id",
        "username",
        "stack_owner",
        "owner_id",
        "parent",
        "timeout_mins",
        "resource_status",
        "resource_action",
        "resource_name",
        "resource_type",
        "resource",
        "finding",
        "type",
        "physical_resource_id",
        "with_attr",
        "support_status",
        "server_id",
        "ContentType",
        "ignore_errors",
        "disable_rollback",
    }
)
"""Parameters that make an answer smaller, or leave its size as it is."""


class Unknown(AssertionError):
    """An operation, or a part of it, of which nothing is known here."""


@dataclass(slots=True)
class World:
    """What there is in the project. named — values of parts of paths."""

    attacked: Attacked
    named: dict[str, Any] = field(default_factory=dict)

    def orchestration(self) -> httpx.Client:
        return self.attacked.client(PROJECT)

    def clustering(self) -> httpx.Client:
        headers = {"X-Project-Id": PROJECT, "OpenStack-API-Version": "clustering 1.14"}
        return httpx.Client(base_url=f"{self.attacked.service.url}{PREFIX}/v1", headers=headers, timeout=WITHIN_S)

    def prepare(self) -> "World":
        with self.orchestration() as http:
            http.timeout = httpx.Timeout(WITHIN_S)
            self._make_stack(http)
            self._make_configs(http)
        with self.clustering() as http:
            self._make_clusters(http)
        return self

    def _make_stack(self, http: httpx.Client) -> None:
        made = http.post("stacks", json={"stack_name": "wide", **stack_of(MEMBERS)})
        assert made.status_code == 201, made.text[:500]
        stack_id = made.json()["stack"]["id"]
        assert ended(http, stack_id, WITHIN_S)["stack_status"] == "CREATE_COMPLETE"
        path = f"stacks/wide/{stack_id}"
        for number in range(MANY):
            answer = http.post(f"{path}/resources/handle/signal", json={"id": str(number), "data": "x" * SIZES[0]})
            if answer.status_code != 200:
                break
        taken = http.post(f"{path}/snapshots", json={"name": "first"})
        assert taken.status_code == 200, taken.text[:500]
        assert ended(http, stack_id, WITHIN_S)["stack_status"] == "SNAPSHOT_COMPLETE"
        events = http.get(f"{path}/resources/text/events").json()["events"]
        links = http.get(f"{path}/resources/group").json()["resource"]["links"]
        (nested,) = [each["href"] for each in links if each["rel"] == "nested"]
        members = http.get(f"{nested}/resources").json()["resources"]
        self.named |= {
            "project": PROJECT,
            "arn_project": PROJECT,
            "stack": "wide",
            "stack_name": "wide",
            "stack_id": stack_id,
            "resource_name": "group",
            "instance_id": members[0]["physical_resource_id"],
            "event_id": events[0]["id"],
            "output_key": "texts",
            "number": 1,
            "below": "resources",
            "snapshot_id": taken.json()["id"],
            "version": "heat_template_version.2021-04-16",
            "arn": f"arn:openstack:heat::{PROJECT}:stacks/wide/{stack_id}/resources/handle",
        }

    def _make_configs(self, http: httpx.Client) -> None:
        # What requests name is made first: what comes may be all that the project may have.
        spare = one(http.post("software_configs", json={"name": "spare"}))
        configs = made_large(
            http, "software_configs", lambda number, text: {"name": f"c{number}", "group": "script", "config": text}
        )
        deployments = made_large(
            http,
            "software_deployments",
            lambda number, text: {
                "config_id": configs[number % len(configs)]["id"],
                "server_id": "a-server",
                "output_values": {"text": text},
            },
        )
        self.named |= {"config_id": spare["id"], "deployment_id": deployments[0]["id"], "server_id": "a-server"}

    def _make_clusters(self, http: httpx.Client) -> None:
        profile = one(http.post("profiles", json={"profile": {"name": "small", "spec": SERVER}}))["id"]
        policy = one(http.post("policies", json={"policy": {"name": "spare", "spec": DELETION}}))["id"]
        given = {"name": "c", "profile_id": profile, "desired_capacity": 2, "metadata": {"text": "x" * SIZES[-1]}}
        cluster_id = one(http.post("clusters", json={"cluster": given}))["id"]
        until(lambda: one(http.get(f"clusters/{cluster_id}"))["status"] == "ACTIVE", "a cluster", within_s=WITHIN_S)
        cluster = one(http.get(f"clusters/{cluster_id}"))
        made_large(http, "profiles", lambda number, text: {"profile": {"name": f"p{number}", "spec": spec_with(text)}})
        made_large(http, "policies", lambda number, text: {"policy": {"name": f"p{number}", "spec": DELETION}})
        for_clusters = {"profile_id": profile, "max_size": -1}
        made_large(
            http,
            "clusters",
            lambda number, text: {"cluster": {**for_clusters, "name": f"c{number}", "metadata": {"text": text}}},
        )
        receivers = made_large(
            http,
            "receivers",
            lambda number, text: {
                "receiver": {
                    "name": f"r{number}",
                    "type": "webhook",
                    "cluster_id": cluster_id,
                    "action": "CLUSTER_SCALE_OUT",
                    "params": {"text": text},
                }
            },
        )
        self.named |= {
            "profile_id": profile,
            "policy_id": policy,
            "cluster_id": cluster_id,
            "node_id": cluster["nodes"][0],
            "receiver_id": receivers[0]["id"],
            "action_id": http.get("actions", params={"target": cluster_id}).json()["actions"][0]["id"],
            "event": http.get("events", params={"cluster_id": cluster_id}).json()["events"][0]["id"],
            "path": "$.status",
            "key": "text",
        }


def spec_with(text: str) -> dict[str, Any]:
    """A profile of servers with user data."""
    return {**SERVER, "properties": {**PROPERTIES, "user_data": text}}


def one(answer: httpx.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text[:500]
    (found,) = answer.json().values()
    return dict(found)


def made_large(http: httpx.Client, path: str, body: Callable[[int, str], Any]) -> list[dict[str, Any]]:
    """Make many things, each with a text that is as long as it may be; fewer or shorter ones where that is refused."""
    found: list[dict[str, Any]] = []
    sizes = iter(SIZES)
    size = next(sizes)
    while len(found) < MANY:
        answer = http.post(path, json=body(len(found), "x" * size))
        if answer.is_success:
            found.append(one(answer))
        elif found or (smaller := next(sizes, None)) is None:
            break
        else:
            size = smaller
    assert found, answer.text[:500]
    return found


def stack_of(members: int) -> dict[str, Any]:
    """A stack with everything that makes answers long: members, outputs, metadata, parameters, files."""
    long = {"value": "x" * MEMBER_CHARACTERS}
    group = {"count": members, "resource_def": {"type": "OS::Heat::Value", "properties": long}}
    resources = {
        "group": {"type": "OS::Heat::ResourceGroup", "properties": group},
        "text": {"type": "OS::Heat::RandomString", "metadata": {"text": "x" * 60_000}},
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
    }
    outputs: dict[str, Any] = {f"o{number}": {"value": {"get_param": "long"}} for number in range(30)}
    outputs["texts"] = {"value": {"get_attr": ["group", "value"]}}
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"long": {"type": "string"}},
        "resources": resources,
        "outputs": outputs,
    }
    return {"template": template, "parameters": {"long": TEMPLATE_TEXT}, "files": {"file.txt": TEMPLATE_TEXT}}


def previewed() -> dict[str, Any]:
    """What is short where it is sent, and long in the answer."""
    one = {"type": "OS::Heat::Value", "properties": {"value": "x" * 500_000}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 9_990, "resource_def": one}}
    return {"stack_name": "new", "template": {"heat_template_version": "2021-04-16", "resources": {"group": group}}}


def nested() -> dict[str, Any]:
    """Many resources of one nested template, which is described once for each of them."""
    long = {"p": {"type": "string", "default": TEMPLATE_TEXT}}
    inner = {"heat_template_version": "2021-04-16", "parameters": long, "resources": {}}
    outer = {f"n{number}": {"type": "inner.yaml"} for number in range(2_000)}
    template = {"heat_template_version": "2021-04-16", "resources": outer}
    return {"template": template, "files": {"inner.yaml": json.dumps(inner)}}


ORCHESTRATION_TABLE: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path("docs/access.yaml").read_text())
LARGEST_BODIES: Mapping[str, Callable[[], Any]] = {
    "POST /v1/{project}/stacks/preview": previewed,
    "PUT /v1/{project}/stacks/{stack_name}/{stack_id}/preview": lambda: {**previewed(), "stack_name": "wide"},
    "PATCH /v1/{project}/stacks/{stack_name}/{stack_id}/preview": lambda: {"parameters": {"long": TEMPLATE_TEXT[1:]}},
    "PATCH /v1/{project}/stacks/{stack_name}/{stack_id}": lambda: {"parameters": {"long": TEMPLATE_TEXT[1:]}},
    "PUT /v1/{project}/stacks/{stack_name}/{stack_id}": lambda: stack_of(MEMBERS),
    "POST /v1/{project}/validate": nested,
    "POST /v1/{project}/software_configs": lambda: {"name": "c", "config": "x" * SIZES[0]},
    f"PUT {PREFIX}/v1/clusters/{{cluster_id}}/metadata/{{key}}": lambda: {"meta": {"text": "x" * 250}},
    f"POST {PREFIX}/v1/profiles/validate": lambda: {"profile": {"spec": spec_with("x" * SIZES[0])}},
    "PUT /v1/waitcondition/{arn}": lambda: {"id": "a", "data": "x" * SIZES[0], "status": "SUCCESS", "reason": "r"},
    "POST /v1/signal/{arn}": lambda: {"id": "a", "data": "x" * SIZES[0]},
    f"POST {PREFIX}/v1/webhooks/{{receiver_id}}/trigger": lambda: {"text": "x" * SIZES[0]},
}
"""Bodies of operations whose answers grow with what is sent."""
CLOUDFORMATION: Mapping[str, Callable[[], dict[str, str]]] = {
    "CancelUpdateStack": lambda: {"StackName": "wide"},
    "CreateStack": lambda: {"StackName": "another", "TemplateBody": json.dumps(previewed()["template"])},
    "DeleteStack": lambda: {"StackName": "another"},
    "DescribeStackEvents": lambda: {"StackName": "wide"},
    "DescribeStackResource": lambda: {"StackName": "wide", "LogicalResourceId": "text"},
    "DescribeStackResources": lambda: {"StackName": "wide"},
    "DescribeStacks": lambda: {"StackName": "wide"},
    "EstimateTemplateCost": lambda: {"TemplateBody": json.dumps(previewed()["template"])},
    "GetTemplate": lambda: {"StackName": "wide"},
    "ListStackResources": lambda: {"StackName": "wide"},
    "ListStacks": dict,
    "SignalResource": lambda: {
        "StackName": "wide",
        "LogicalResourceId": "handle",
        "UniqueId": "a",
        "Status": "SUCCESS",
    },
    "UpdateStack": lambda: {
        "StackName": "wide",
        "TemplateBody": json.dumps(stack_of(MEMBERS)["template"]),
        "Parameters.member.1.ParameterKey": "long",
        "Parameters.member.1.ParameterValue": TEMPLATE_TEXT,
    },
    "ValidateTemplate": lambda: {"TemplateBody": json.dumps(previewed()["template"])},
}
"""Parameters of the actions of the CloudFormation API."""


@dataclass(frozen=True, slots=True)
class Requested:
    """One request. name — of the operation, with the variant of its body, if there are several."""

    name: str
    method: str
    path: str
    params: dict[str, Any]
    body: Any = None
    form: dict[str, str] | None = None

    @property
    def rank(self) -> int:
        """Reads go first, and deletions last: those of a thing after those of its parts."""
        if self.method == "DELETE" or "DeleteStack" in self.name:
            return 1000 - self.path.count("/")
        return self.method != "GET" or "Action" in self.params

    def sent(self, http: httpx.Client) -> "Answered":
        began = time.monotonic()
        size, beginning, first = 0, b"", 0.0
        headers = signed() if self.form is not None else {}
        given: dict[str, Any] = {"params": self.params, "json": self.body, "data": self.form, "headers": headers}
        with http.stream(self.method, self.path, **given) as answer:
            for chunk in answer.iter_raw():
                first = first or time.monotonic() - began
                beginning = beginning if len(beginning) > 500 else beginning + chunk[:500]
                size += len(chunk)
            first = first or time.monotonic() - began
        return Answered(answer.status_code, first, size, beginning.decode(errors="replace"), dict(answer.headers))


@dataclass(frozen=True, slots=True)
class Answered:
    """first_s — seconds to the first byte; beginning — of the body."""

    code: int
    first_s: float
    size: int
    beginning: str
    headers: Mapping[str, str]

    @property
    def is_put_off(self) -> bool:
        return self.code in (429, 503) and "retry-after" in self.headers

    @property
    def is_too_large(self) -> bool:
        words = {400: ("RequestLimitExceeded", "limit exceeded"), 403: ("OverQuota", "uota exceeded")}
        return any(word in self.beginning for word in words.get(self.code, ()))


def signed() -> dict[str, str]:
    """Headers that name the project to the CloudFormation API, which verifies nothing without access control."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"Credential={PROJECT}/{now[:8]}/here/cloudformation/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
    return {"Authorization": authorization, "X-Amz-Date": now}


def requests_of(document: Mapping[str, Any], named: Mapping[str, Any]) -> list[Requested]:
    """Every operation of the document, asked for as much as it may be: reads first, deletions last.

    Raises:
        Unknown: Nothing is known of an operation, or of a part of it.
    """
    found = [
        requested
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for requested in _requests(method.upper(), path, operation, named)
    ]
    return sorted(found, key=lambda each: each.rank)


def _requests(method: str, path: str, operation: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[Requested]:
    name = f"{method} {path}"
    parameters = operation.get("parameters", [])
    actions = [each["schema"]["enum"] for each in parameters if each["name"] == "Action" and each["in"] == "query"]
    if actions:
        for action in actions[0]:
            if action not in CLOUDFORMATION:
                raise Unknown(f"{name}?Action={action}: say in CLOUDFORMATION what it is asked with")
            yield Requested(
                f"{name}?Action={action}", method, "/v1/", {"Action": action}, form=CLOUDFORMATION[action]()
            )
        return
    filled = _filled(path, name, named)
    params = {each["name"]: value for each in parameters if each["in"] == "query" for value in _values(each, name)}
    for variant, body in _bodies(name, operation, named):
        yield Requested(variant, method, filled, params, body)


def _filled(path: str, name: str, named: Mapping[str, Any]) -> str:
    special = {"type_name": _type_name(path), "resource_name": "handle" if path.endswith("/signal") else None}
    if path.endswith("/events/{event_id}") or path.endswith("{resource_name}/metadata"):
        special["resource_name"] = "text"
    values = {**named, **{key: value for key, value in special.items() if value is not None}}
    try:
        return path.format_map(values)
    except KeyError as error:
        raise Unknown(f"{name}: the world has no {error}") from error


def _type_name(path: str) -> str | None:
    of = {"profile-types": "os.nova.server-1.0", "policy-types": "senlin.policy.scaling-1.0"}
    return of.get(path.removeprefix(f"{PREFIX}/v1/").partition("/")[0], "OS::Nova::Server")


def _values(parameter: Mapping[str, Any], name: str) -> list[Any]:
    """The value that makes the answer largest; none where that is to leave it out."""
    known, schema = parameter["name"], parameter["schema"]
    kinds = {each.get("type") for each in (schema, *schema.get("anyOf", ()))}
    if known in LEFT_OUT:
        return []
    if known in LARGEST_NUMBERS:
        bounds = [each["maximum"] for each in (schema, *schema.get("anyOf", ())) if "maximum" in each]
        return [min([LARGEST_NUMBERS[known], *bounds])]
    if known in CHOSEN:
        return [CHOSEN[known]]
    if "boolean" in kinds:
        return ["true"]
    raise Unknown(f"{name}: how large does {known} make the answer?")


def _bodies(name: str, operation: Mapping[str, Any], named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Bodies of a request, each with the name of its variant."""
    if name in LARGEST_BODIES:
        return [(name, LARGEST_BODIES[name]())]
    method, _, path = name.partition(" ")
    if path.startswith(f"{PREFIX}/v1/"):
        entry = CLUSTERING_BODIES.get(f"{method} {path.removeprefix(f'{PREFIX}/v1')}") or CLUSTERING_BODIES.get(
            f"{method} {path.removeprefix(f'{PREFIX}/v1').replace('{path}', '{path:path}')}"
        )
        found = [] if entry is None else [(name, _completed(entry[1], named))]
    else:
        short = f"{method} {path.removeprefix('/v1/{project}')}"
        table = {key: each for key, each in ORCHESTRATION_TABLE.items() if key.partition("#")[0] == short}
        found = [
            (f"{name}#{key.partition('#')[2]}", _completed(each.get("body"), named)) for key, each in table.items()
        ]
    if found:
        return found
    if "requestBody" in operation or method not in ("GET", "POST") or (method == "POST" and path not in NO_BODY):
        raise Unknown(f"{name}: say in LARGEST_BODIES what is sent")
    return [(name, None)]


NO_BODY = frozenset[str]()
"""Paths of the service to which something without a body is posted."""


def _completed(body: Any, named: Mapping[str, Any]) -> Any:
    """The body with what there is in the place of words that stand for it."""
    if isinstance(body, dict):
        return {key: _completed(value, named) for key, value in body.items()}
    if isinstance(body, list):
        return [_completed(each, named) for each in body]
    words = {
        "TEMPLATE": previewed()["template"],
        "CONFIG": named["config_id"],
        "PROFILE": named["profile_id"],
        "CLUSTER": named["cluster_id"],
    }
    return words.get(body, body) if isinstance(body, str) else body
