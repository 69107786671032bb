"""Every request of the Orchestration API, asked for by everybody: who gets an answer, and who sees nothing of it.

What is to be expected stands in docs/access.yaml; a route that is not there fails.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.routing import APIRoute
from tests.unit.api.neighbours import OTHER, OWN, TEMPLATE, Neighbours, Things

from homeostat.api.http.path_convertors import ANY_PATH
from homeostat.api.orchestration.routers import ROUTERS

TABLE: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path("docs/access.yaml").read_text())
ROLES = ("admin", "member", "reader", "server", "visitor")
MAY = {
    "readers": {"admin", "member", "reader"},
    "members": {"admin", "member"},
    "admins": {"admin"},
    "servers": {"admin", "member", "reader", "server"},
}


class World(Neighbours):
    """`fresh` brings back what there was at first."""

    def __init__(self) -> None:
        super().__init__()
        self._first = sqlite3.connect(":memory:", check_same_thread=False)
        self._copy(self._connection(), self._first)

    def fresh(self) -> None:
        self._copy(self._first, self._connection())

    def _connection(self) -> sqlite3.Connection:
        found = self.service.db.engine.raw_connection().driver_connection
        assert isinstance(found, sqlite3.Connection)
        return found

    @staticmethod
    def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        source.backup(target)

    def code(self, request: str, role: str, home: str, named: str, at: str | None = None) -> int:
        """Of the answer. home — project of the caller; named — whose things the address names; at — the project in the
        address, that of the caller by default."""
        self.fresh()
        method, _, path = request.partition("#")[0].partition(" ")
        things, own = self.things[named], self.things[home].users if role == "server" else home
        entry = TABLE[request]
        named_there = {**words(things), "resource_name": entry.get("resource", "handle")}
        body = filled(entry["body"], things) if "body" in entry else None
        caller = f"heat_stack_user/{home}-server@{own}" if role == "server" else f"{role}@{own}"
        answer = self.send(method, path.format_map(named_there), caller, at or own, body)
        return int(answer.status_code)


def words(things: Things) -> dict[str, str]:
    return {
        "stack_name": "web",
        "stack_id": things.stack_id,
        "stack": things.stack_id,
        "arn_project": things.project,
        "resource_name": "handle",
        "instance_id": "member",
        "output_key": "text",
        "event_id": things.event_id,
        "below": "resources/handle",
        "snapshot_id": things.snapshot_id,
        "number": "1",
        "config_id": things.config_id,
        "deployment_id": things.deployment_id,
        "server_id": things.handle,
        "type_name": "OS::Heat::RandomString",
        "version": "heat_template_version.2021-04-16",
    }


def filled(body: Any, things: Things) -> Any:
    if isinstance(body, dict):
        return {key: filled(value, things) for key, value in body.items()}
    return {"TEMPLATE": TEMPLATE, "CONFIG": things.config_id}.get(body, body) if isinstance(body, str) else body


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_every_route_is_in_the_table() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    known = {
        f"{method} {each.path.removeprefix('/v1/{project}').replace(f':{ANY_PATH}', '')}"
        for each in routes
        for method in each.methods or ()
    }
    documented = {request.partition("#")[0] for request in TABLE}
    assert not known - documented, f"docs/access.yaml lacks, and needs to say who may: {sorted(known - documented)}"
    assert not documented - known, f"docs/access.yaml has what no route serves: {sorted(documented - known)}"


@pytest.mark.heavy
@pytest.mark.parametrize("request_", TABLE)
def test_who_gets_an_answer(world: World, request_: str) -> None:
    entry = TABLE[request_]
    may = MAY[entry["who"]]
    for role in ROLES:
        code = world.code(request_, role, OWN, OWN)
        if role not in may:
            assert code == 403, f"{role}s must not: {code}"
        elif entry.get("code") is None:
            assert code not in (401, 403, 405), f"{role}s may: {code}"
            assert code < 500
        else:
            assert code == entry["code"], f"{role}s may: {code}"


@pytest.mark.heavy
@pytest.mark.parametrize("request_", TABLE)
def test_only_admins_reach_other_projects(world: World, request_: str) -> None:
    for role in ROLES:
        there = world.things[OTHER]
        for at in (OTHER, there.users):
            code = world.code(request_, role, OWN, OTHER, at)
            if role != "admin":
                assert code == 403, f"{role}s of another project: {code}"
            elif at == OTHER and TABLE[request_].get("code") is not None:
                assert code == TABLE[request_]["code"], f"admins of another project: {code}"


@pytest.mark.heavy
@pytest.mark.parametrize("request_", [each for each in TABLE if "foreign" in TABLE[each]])
def test_things_of_others_are_not_there(world: World, request_: str) -> None:
    """What a caller names by an address of its own project, though it is of another one."""
    entry = TABLE[request_]
    for role in ROLES:
        code = world.code(request_, role, OWN, OTHER)
        if role == "admin":
            assert code != 403
        elif role in ("reader", "server") and "resource" in entry:
            assert code == entry["foreign"], f"what they must not depends on what is named: {code}"
        elif role not in MAY[entry["who"]]:
            assert code == 403, f"{role}s must not: {code}"
        elif role == "server" and "{server_id}" in request_:
            assert code == 403, f"a server asks for another one: {code}"
        elif entry.get("code") is None:
            assert code in (400, entry["foreign"])
        else:
            assert code == entry["foreign"], f"{role}s: {code}"
