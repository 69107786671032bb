"""The OpenAPI document tells of every route."""

import re
from typing import Any

import httpx
import pytest

from homeostat.api.orchestration.actions import ON_STACKS
from tests.wire.running import Running

FAULTS = {"400", "401", "403", "404", "405", "500", "503"}
OPEN = {"/", "/versions", "/v1", "/healthcheck", "/clustering", "/clustering/v1"}
SIGNED = ("/v1/waitcondition/", "/v1/signal/", "/v1/metadata/")
"""Addresses that name their project in another way, and answer as their callers always knew it."""


@pytest.fixture(scope="module")
def document(service: Running) -> dict[str, Any]:
    return dict(httpx.get(f"{service.url}/openapi.json").json())


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, found in document["paths"].items() for method, each in found.items()]


def test_every_operation_is_documented(document: dict[str, Any]) -> None:
    found = operations(document)
    assert len(found) > 60
    for path, method, operation in found:
        place = f"{method} {path}"
        assert operation["summary"], place
        codes = set(operation["responses"])
        assert any(code.startswith(("2", "3")) for code in codes), place
        if path not in OPEN:
            assert codes >= FAULTS, place
            names = (
                {"arn"} if path.startswith(SIGNED) else {"project"} if not path.startswith("/clustering/") else set()
            )
            parameters = operation.get("parameters", ())
            assert {each["name"] for each in parameters if each["in"] == "path"} >= names, place
        if method in ("put", "patch") and "302" not in codes and not path.startswith(SIGNED):
            assert operation["requestBody"]["content"]["application/json"]["schema"], place


def test_bodies_of_the_clustering_api_are_described(document: dict[str, Any]) -> None:
    bodies = {
        (method, path): operation["requestBody"]["content"]["application/json"]["schema"]
        for path, method, operation in operations(document)
        if path.startswith("/clustering/") and "requestBody" in operation
    }
    made = {path for method, path in bodies if method == "post"}
    assert made >= {f"/clustering/v1/{each}" for each in ("clusters", "nodes", "profiles", "policies", "receivers")}
    (cluster,) = bodies["post", "/clustering/v1/clusters"]["properties"].values()
    assert cluster["required"] == ["name", "profile_id"]
    assert cluster["properties"]["max_size"]["minimum"] == -1
    resize = bodies["post", "/clustering/v1/clusters/{cluster_id}/actions"]["properties"]["resize"]
    assert "EXACT_CAPACITY" in resize["properties"]["adjustment_type"]["enum"]


def test_no_operation_says_a_422(document: dict[str, Any]) -> None:
    assert [path for path, _, operation in operations(document) if "422" in operation["responses"]] == []


def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))


def test_every_action_is_described(document: dict[str, Any]) -> None:
    described = document["paths"]["/v1/{project}/stacks/{stack_name}/{stack_id}/actions"]["post"]["description"]
    found = dict(re.findall(r"^- `(\w+)`: (.+)$", described, re.MULTILINE))
    assert set(found) == set(ON_STACKS)
    assert found["resume"] == "resume a suspended stack"


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    """Each `$ref` names a schema that is there."""

    def references(part: Any) -> set[str]:
        if isinstance(part, dict):
            here = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
            return here.union(*(references(each) for each in part.values()))
        return set().union(*(references(each) for each in part)) if isinstance(part, list) else set()

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document["paths"]) | references(document["components"]) <= known


def test_successes_have_bodies(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        described = path not in OPEN and "not supported" not in operation["summary"]
        if method == "get" and "200" in operation["responses"] and described:
            assert operation["responses"]["200"]["content"]["application/json"]["schema"], f"{method} {path}"
