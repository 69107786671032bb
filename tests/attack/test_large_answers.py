"""Requests whose answers are larger than they are: what is shared in a template is written as often as it occurs.

Each is refused, or answered piece by piece, with its first byte in time; the memory of the processes is bounded.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.attack.frame import Outcome, withstood
from tests.attack.service import Attacked
from tests.waiting import QUIET

AT_ONCE = 4
"""As many as have places at the same time."""
FIRST_BYTE_S = 2.0 if QUIET else 60.0
LONG = "x" * 500_000
PUT_OFF = (429, 503)


def template(resources: Mapping[str, Any], **sections: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": resources, **sections}


def group(count: int, properties: Mapping[str, Any]) -> dict[str, Any]:
    one = {"type": "OS::Heat::Value", "properties": properties}
    return {"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": one}}


def previewed(resources: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"stack_name": "many", "template": template(resources), **more}


def many_nested(count: int, text: str) -> dict[str, Any]:
    """Many resources of one nested template, whose parameter has a long description."""
    inner = template({"a": {"type": "OS::Heat::RandomString"}}, parameters={"p": {"type": "string", "default": text}})
    outer = template({f"n{number}": {"type": "inner.yaml"} for number in range(count)})
    return {"template": outer, "files": {"inner.yaml": json.dumps(inner)}}


@dataclass(frozen=True, slots=True)
class Attack:
    """name; path — below the project; body; refused — part of the refusal, "" for what is answered."""

    name: str
    path: str
    body: dict[str, Any]
    refused: str = ""


LIMIT = "RequestLimitExceeded"
ATTACKS = [
    Attack("a long text", "stacks/preview", previewed({"g": group(9_990, {"value": LONG})}), LIMIT),
    Attack("numbered texts", "stacks/preview", previewed({"g": group(9_990, {"value": "%index%" + LONG})}), LIMIT),
    Attack("long lists", "stacks/preview", previewed({"g": group(9_990, {"value": [1] * 250_000})}), LIMIT),
    Attack("small members", "stacks/preview", previewed({"g": group(9_990, {"value": "x" * 100})})),
    Attack("nested descriptions", "validate?show_nested=true", many_nested(2_000, LONG[:400_000]), LIMIT),
    Attack("small nested", "validate?show_nested=true", many_nested(500, "x")),
]


@pytest.mark.timeout(900)
def test_answers_are_not_larger_than_a_process_bears(attacked: Attacked) -> None:
    withstood(attacked, ATTACKS, _made)


def _made(attacked: Attacked, attack: Attack) -> Outcome:
    """Send as many as are served at once."""
    found = Outcome()
    firsts: list[float] = []

    def send() -> None:
        began = time.monotonic()
        with attacked.client("attacker") as http, http.stream("POST", attack.path, json=attack.body) as answer:
            text = _read(answer, began, firsts)
        refused = answer.status_code == 400 and attack.refused.encode() in text
        if answer.status_code not in PUT_OFF and not (refused if attack.refused else answer.status_code == 200):
            found.wrong.append(f"{answer.status_code} {text[:300]!r}")

    threads = [threading.Thread(target=send) for _ in range(AT_ONCE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found.figures = f"first bytes after {', '.join(f'{first:.1f} s' for first in sorted(firsts))}"
    if max(firsts) > FIRST_BYTE_S * AT_ONCE:
        found.wrong.append(found.figures)
    return found


def _read(answer: httpx.Response, began: float, firsts: list[float]) -> bytes:
    """Return the beginning of an answer, and read all of it."""
    beginning = b""
    for chunk in answer.iter_bytes():
        if not beginning:
            firsts.append(time.monotonic() - began)
            beginning = chunk
    return beginning
