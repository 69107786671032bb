"""The way of an update from the route to the database: the stages in order, and few calls back up the layers."""

import json
import re
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.component.running import Service
from tests.unit.api.neighbours import Named

from homeostat.api.app import create_app
from homeostat.services.pipeline.request import StackRequest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
STAGES = re.findall(r"^\| \d \w+ \| `([\w.]+)` \|", PAGE, re.MULTILINE)
CLIMBS_MAX = 12
INNER = {
    "heat_template_version": "2021-04-16",
    "parameters": {"name": {"type": "string"}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "name"}}}},
}
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "parameters": {"name": {"type": "string", "default": "a"}},
    "resources": {
        "text": {"type": "OS::Heat::RandomString", "properties": {"length": 8}},
        "value": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["text", "value"]}}},
        "net": {"type": "OS::Neutron::Net", "properties": {"name": {"get_param": "name"}}},
        "port": {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}},
        "nested": {"type": "inner.yaml", "properties": {"name": {"get_param": "name"}}},
    },
    "outputs": {"text": {"value": {"get_attr": ["text", "value"]}}},
}
FILES = {"inner.yaml": json.dumps(INNER)}


def _layers() -> list[str]:
    """Return the packages and modules from the outside in, by the contract of import-linter."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == "layers")
    return ["|".join(f"homeostat.{name.strip()}" for name in layer.split("|")) for layer in layers]


RANKS = {name: rank for rank, layer in enumerate(_layers()) for name in layer.split("|")}


def _rank(module: str) -> int:
    while module not in RANKS:
        module = module.rpartition(".")[0]
    return RANKS[module]


class Calls:
    """What calls what in the package, on all threads that start from now on."""

    def __init__(self) -> None:
        self.climbs: list[str] = []
        self.called: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not (module := _module(frame)).startswith("homeostat"):
            return
        self.called.append(f"{module.rpartition('.')[2]}.{frame.f_code.co_qualname}")
        caller = frame.f_back
        while caller is not None and not _module(caller).startswith("homeostat"):
            caller = caller.f_back
        if caller is not None and _rank(module) < _rank(_module(caller)):
            self.climbs.append(f"{_module(caller)}.{caller.f_code.co_qualname} -> {self.called[-1]}")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


@pytest.fixture
def calls() -> Iterator[Calls]:
    """The calls of one PUT of a stack."""
    service = Service()
    stack_id = service.stack_service.create("own", None, "web", StackRequest(TEMPLATE, files=FILES))
    service.work()
    app = create_app(service.db, service.stack_service, service.clock, access=Named())
    found, before = Calls(), sys.getprofile()
    threading.setprofile(found)
    try:
        body = {"template": TEMPLATE, "files": FILES, "parameters": {"name": "b"}}
        with TestClient(app) as client:
            found.climbs.clear()
            found.called.clear()
            path = f"/v1/own/stacks/web/{stack_id}"
            assert client.put(path, headers={"x-caller": "member@own"}, json=body).status_code == 202
        yield found
    finally:
        threading.setprofile(before)


def test_an_update_passes_the_stages_in_the_order_of_the_page(calls: Calls) -> None:
    first = [calls.called.index(stage) for stage in STAGES]
    assert len(STAGES) == 6
    assert first == sorted(first)
    merged, stored = first[1], first[5]
    assert "bodies.read_request" not in calls.called[merged:]
    assert not any(each.startswith(("merging.", "fetching.", "checking.check")) for each in calls.called[stored:])


def test_an_update_calls_back_up_the_layers_rarely(calls: Calls) -> None:
    assert len(calls.climbs) <= CLIMBS_MAX, "\n".join(calls.climbs)
