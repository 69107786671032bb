"""Requests that make the API work: wide nesting, queries that walk through one another. Many at once, by one project.

Each is refused or answered within bounds, others read and make their stacks meanwhile, and the memory comes back.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.attack.frame import Outcome, withstood
from tests.attack.service import Attacked

AT_ONCE = 4
"""More than one project has places for."""
PUT_OFF = (429, 503)
LEAF = "OS::Heat::RandomString"


def template(**sections: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", **sections}


def wide(width: int, depth: int, *, differing: bool = False) -> dict[str, Any]:
    """Each resource of a template is the next template, `depth` times; differing — each is given its own place."""
    kinds = [f"{level}.yaml" for level in range(1, depth)] + [LEAF]

    def level_of(kind: str) -> dict[str, Any]:
        resources: dict[str, Any] = {}
        for number in range(width):
            one: dict[str, Any] = {"type": kind}
            resources[f"r{number}"] = one
            if differing and kind != LEAF:
                one["properties"] = {"at": {"list_join": [".", [{"get_param": "at"}, str(number)]]}}
        return template(parameters={"at": {"type": "string", "default": ""}}, resources=resources)

    files = {f"{level}.yaml": json.dumps(level_of(kinds[level])) for level in range(1, depth)}
    return {"template": level_of(kinds[0]), "files": files}


def queries(expression: str, count: int = 30) -> dict[str, Any]:
    """So many outputs, each with another query."""
    call = {f"o{n}": {"value": {"yaql": {"expression": f"[{expression}, {n}]", "data": {}}}} for n in range(count)}
    return {"template": template(outputs=call)}


@dataclass(frozen=True, slots=True)
class Attack:
    """name; path — below the project; body; refused — part of the refusal, "" for what is accepted."""

    name: str
    path: str
    body: dict[str, Any]
    refused: str = ""


def preview(body: dict[str, Any]) -> dict[str, Any]:
    return {"stack_name": "wide", **body}


ATTACKS = [
    Attack("four times twelve, checked", "validate", wide(12, 4)),
    Attack("four times twelve, previewed", "stacks/preview", preview(wide(12, 4)), "--previewed-max"),
    Attack("five times twelve, previewed", "stacks/preview", preview(wide(12, 5)), "RequestLimitExceeded"),
    Attack("five times twenty, checked", "validate", wide(20, 5), "--resources-max"),
    Attack("five times twenty, created", "stacks", preview(wide(20, 5)), "--resources-max"),
    Attack("all different", "validate", wide(20, 4, differing=True), "RequestLimitExceeded"),
    Attack("all described", "validate?show_nested=true", wide(12, 5), "RequestLimitExceeded"),
    Attack("loops in loops", "validate", queries("range(100).select(range(100).select(range(100)))"), "steps"),
    Attack("constants", "validate", queries("range(199).select(range(199).select(range(199).select(1)))"), "steps"),
    Attack("pairs", "validate", queries("range(199).select(range(199).join(range(199), true, 1).len())"), "steps"),
    Attack("many that are short", "validate", queries("range(47).select(range(190).select(1))", 200), "steps together"),
]


@pytest.mark.timeout(900)
def test_expensive_requests_do_not_delay_others(attacked: Attacked) -> None:
    withstood(attacked, ATTACKS, _made)


def _made(attacked: Attacked, attack: Attack) -> Outcome:
    """Send as many as are served at once."""
    found = Outcome()

    def send() -> None:
        with attacked.client("attacker") as http:
            answer = http.post(attack.path, json=attack.body)
        refused = answer.status_code == 400 and attack.refused in answer.text
        put_off = answer.status_code in PUT_OFF and "Retry-After" in answer.headers
        if not put_off and not (refused if attack.refused else answer.status_code == 200):
            found.wrong.append(f"{answer.status_code} {answer.text[:300]}")

    began = time.monotonic()
    _at_once(send)
    found.figures = f"{AT_ONCE} in {time.monotonic() - began:.1f} s"
    return found


def _at_once(act: Callable[[], None]) -> None:
    threads = [threading.Thread(target=act) for _ in range(AT_ONCE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def test_work_for_clients_that_have_hung_up_ends(attacked: Attacked) -> None:
    """A client that has hung up takes no place from those that wait."""
    body = preview(wide(20, 3))
    for _ in range(20):
        with pytest.raises(httpx.TimeoutException):
            httpx.post(f"{attacked.service.url}/v1/attacker/stacks/preview", json=body, timeout=0.05)
    with attacked.client("attacker") as http:
        began = time.monotonic()
        assert http.post("validate", json=wide(2, 2)).status_code == 200
        print(f"answered after {time.monotonic() - began:.1f} s")
