"""Every operation of the OpenAPI document, asked in all the ways that it describes and in some that it does not.

schemathesis makes the requests: each answer has a code, a type and a form that are documented, and none is a 5xx.
"""

import os
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
import requests
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, CheckFunction
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from docs import api_pages
from homeostat.api.cloudformation import routes as cloudformation
from homeostat.api.cloudformation import signed_urls
from homeostat.api.orchestration.routers import ROUTERS
from homeostat.clustering.wire.context import PREFIX
from homeostat.clustering.wire.receivers import WEBHOOKS
from homeostat.clustering.wire.routers import ROUTERS as CLUSTERING
from tests.wire import templates
from tests.wire.clustering.lives import SERVER
from tests.wire.running import Running, settled

EXAMPLES = int(os.environ.get("HOMEOSTAT_EXAMPLES", "15"))
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
EXISTING: dict[str, Any] = {}
"""Path parameters of things that are there."""
CHOSEN: list[tuple[str, str]] = []
"""Method and path of the operation that is tried."""


MORE_ROUTERS = (*CLUSTERING, WEBHOOKS, signed_urls.ROUTER, cloudformation.ROUTER)


OPERATIONS = sorted(
    (method, route.path_format)
    for routes in (api_pages.application().routes, *(router.routes for router in (*ROUTERS, *MORE_ROUTERS)))
    for route in routes
    if isinstance(route, APIRoute) and route.include_in_schema
    for method in route.methods or ()
)


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """Made when the first operation is tried: every process that collects tests would need seconds for it."""
    return api_pages.application().openapi()


@pytest.fixture
def schema(document: dict[str, Any], operation: tuple[str, str]) -> BaseSchema:
    """What the document says of one path, and of those that have its requests too, for other methods.

    Not of all: schemathesis keeps it to the end of the session, with all that it read.
    """
    _, path = operation
    alike = {each: said for each, said in document["paths"].items() if each.count("/") == path.count("/")}
    loaded = schemathesis.openapi.from_dict({**document, "paths": alike})
    loaded.hook(map_path_parameters)
    return loaded


@pytest.fixture(params=OPERATIONS, ids=" ".join)
def operation(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """One operation, which alone is tried: its method and path."""
    request.node._nodeid = request.node.nodeid  # where schemathesis looks for it, and older versions of pytest had it
    CHOSEN.append(request.param)
    yield request.param
    CHOSEN.clear()


def is_chosen(context: Any) -> bool:
    return (context.operation.method.upper(), context.operation.path) in CHOSEN


def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Two thirds of the requests are about what is there."""
    if not path_parameters or sum(map(ord, str(sorted(path_parameters.items())))) % 3 == 0:
        return path_parameters
    return {name: EXISTING.get(name, value) for name, value in path_parameters.items()}


@pytest.fixture(scope="module")
def readable(service: Running) -> dict[str, Any]:
    """What is asked for by the operations that change nothing: made once for all of them."""
    return make(service, "reading")


@pytest.fixture
def existing(request: pytest.FixtureRequest, operation: tuple[str, str], service: Running) -> Iterator[None]:
    method, path = operation
    if path.startswith(PREFIX):
        EXISTING.update(make_cluster(service))
    else:
        reads = method == "GET"
        EXISTING.update(
            request.getfixturevalue("readable") if reads else make(service, request.getfixturevalue("project"))
        )
    yield
    EXISTING.clear()


def make(service: Running, project: str) -> dict[str, Any]:
    """Path parameters of new things in this project."""
    with httpx.Client(base_url=service.endpoint(project)) as http:
        created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
        stack_id = created.json()["stack"]["id"]
        settled(http, stack_id, status="CREATE_COMPLETE")
        events = http.get(f"stacks/hello/{stack_id}/resources/speaker/events").json()["events"]
        config = http.post("software_configs", json={"name": "script", "group": "script"}).json()["software_config"]
        given = {"config_id": config["id"], "server_id": "a-server"}
        deployment = http.post("software_deployments", json=given).json()["software_deployment"]
        snapshot = http.post(f"stacks/hello/{stack_id}/snapshots", json={}).json()
        settled(http, stack_id, status="SNAPSHOT_COMPLETE")
    return {
        "project": project,
        "arn_project": project,
        "stack": "hello",
        "stack_name": "hello",
        "stack_id": stack_id,
        "resource_name": "speaker",
        "event_id": events[0]["id"],
        "output_key": "said",
        "number": 1,
        "config_id": config["id"],
        "deployment_id": deployment["id"],
        "server_id": "a-server",
        "snapshot_id": snapshot["id"],
        "type_name": "OS::Nova::Server",
        "template_version": "heat_template_version.2018-08-31",
    }


def make_cluster(service: Running) -> dict[str, Any]:
    """Path parameters of a new cluster, which has a node, in the project of callers that name none."""
    with httpx.Client(base_url=f"{service.url}{PREFIX}/v1") as http:

        def made(what: str, **values: Any) -> Any:
            answer = http.post(f"/{what}", json={what.replace("ies", "y").rstrip("s"): {"name": "new", **values}})
            assert answer.is_success, answer.text
            return next(iter(answer.json().values()))

        profile = made("profiles", spec=SERVER)["id"]
        policy = made("policies", spec={"type": "senlin.policy.deletion", "version": "1.1", "properties": {}})["id"]
        cluster = made("clusters", profile_id=profile, desired_capacity=1)
        named = {"cluster_id": cluster["id"], "action": "CLUSTER_SCALE_OUT"}
        receiver = made("receivers", type="webhook", **named)["id"]
        action = http.get(f"/actions?target={cluster['id']}").json()["actions"][0]["id"]
        event = http.get(f"/events?cluster_id={cluster['id']}").json()["events"][0]["id"]
    found = {"profile_id": profile, "policy_id": policy, "node_id": cluster["nodes"][0], "action_id": action}
    more = {"receiver_id": receiver, "event": event, "path": "$.status", "type_name": "os.nova.server-1.0"}
    return {"cluster_id": cluster["id"], **found, **more}


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are used again, as clients do."""
    with requests.Session() as one:
        yield one


@schemathesis.pytest.from_fixture("schema").include(is_chosen).parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@pytest.mark.usefixtures("operation", "existing")
@pytest.mark.shows("CV16")
def test_an_operation_answers_as_it_is_documented(
    case: schemathesis.Case[Any], service: Running, session: requests.Session
) -> None:
    checks = cast(list[CheckFunction], CHECKS.get_by_names(CHECKED))
    case.call_and_validate(base_url=service.url, session=session, checks=checks, allow_redirects=False)


def test_every_operation_is_tried(document: dict[str, Any]) -> None:
    operations = schemathesis.openapi.from_dict(document).get_all_operations()
    found = [each.ok() for each in operations if isinstance(each, Ok)]
    assert sorted((each.method.upper(), each.path) for each in found) == OPERATIONS
