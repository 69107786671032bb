"""What is too large, too deep or too much is refused, and the message names the limit."""

from typing import Any

import httpx
import pytest

HEAD = {"heat_template_version": "2018-08-31"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("depth", [110, 900, 1100, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_deep_bodies(http: httpx.Client, depth: int, opening: str, closing: str) -> None:
    """Nothing walks them, wherever they go."""
    nested = opening * depth + "1" + closing * depth
    stack = '{"stack_name": "deep", "template": {"heat_template_version": "2018-08-31"}, "parameters": %s}'
    config = '{"name": "deep", "group": "g", "config": "", "options": %s}'
    signal = '{"a": %s}'
    addresses = {"stacks": stack, "software_configs": config, "stacks/a/b/resources/c/signal": signal}
    for address, body in addresses.items():
        answer = http.post(address, content=body % nested, headers=JSON)
        assert answer.status_code == 400, address
        assert "deep" in answer.text or "depth limit" in answer.text


def test_bodies_that_are_not_too_deep(http: httpx.Client) -> None:
    """Brackets in texts, and side by side, are no depth."""
    options = {"text": "{" * 300, "list": [[] for _ in range(300)]}
    config = {"name": "flat", "group": "g", "config": "", "options": options}
    assert http.post("software_configs", json=config).status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"files": {f"f{number}": "" for number in range(5_001)}}, "files: there are 5001, more than 5000"),
        ({"environment_files": ["a"] * 501}, "environment_files: there are 501, more than 500"),
        ({"tags": [f"t{number}" for number in range(101)]}, "tags: there are 101, more than 100"),
    ],
)
def test_too_many(http: httpx.Client, body: dict[str, Any], message: str) -> None:
    answer = http.post("stacks", json={"stack_name": "much", "template": HEAD, **body})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_large_heads(http: httpx.Client) -> None:
    for answer in (http.get("stacks", params={"x": "a" * 40_000}), http.get("stacks", headers={"X": "a" * 40_000})):
        assert answer.status_code == 400
        assert "HTTPBadRequest" in answer.text or "larger than 32768 bytes" in answer.text
    assert http.get("stacks", params={"x": "a" * 20_000}).status_code == 200
