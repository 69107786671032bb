"""Several callers at once: none is lost, none is told what is not true."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from tests.wire import templates
from tests.wire.running import settled

CALLERS = 8
FIELDS = "\n".join(f"  p{number}: {{type: string, default: unset}}" for number in range(CALLERS))
MANY = f"""
heat_template_version: 2018-08-31
parameters:
{FIELDS}
resources:
  it: {{type: OS::Heat::TestResource, properties: {{value: {{get_param: p0}}}}}}
"""


def at_once(call: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(CALLERS) as pool:
        return list(pool.map(call, range(CALLERS)))


def test_one_of_a_name(http: httpx.Client) -> None:
    body = {"stack_name": "one", "template": templates.HELLO}
    codes = at_once(lambda _: http.post("stacks", json=body).status_code)
    assert sorted(codes) == [201] + [409] * (CALLERS - 1)
    assert len(http.get("stacks").json()["stacks"]) == 1


def test_changes_of_different_things_add_up(http: httpx.Client) -> None:
    stack_id = http.post("stacks", json={"stack_name": "many", "template": MANY}).json()["stack"]["id"]

    def change(number: int) -> int:
        body = {"parameters": {f"p{number}": f"by {number}"}}
        return http.patch(f"stacks/many/{stack_id}", json=body).status_code

    assert at_once(change) == [202] * CALLERS
    parameters = settled(http, stack_id, status="UPDATE_COMPLETE")["parameters"]
    assert [parameters[f"p{number}"] for number in range(CALLERS)] == [f"by {number}" for number in range(CALLERS)]


def test_deleting_and_updating(http: httpx.Client) -> None:
    """The last one wins, and there is no internal error."""
    stack_id = http.post("stacks", json={"stack_name": "going", "template": MANY}).json()["stack"]["id"]

    def act(number: int) -> int:
        if number % 2:
            return http.delete(f"stacks/going/{stack_id}").status_code
        return http.patch(f"stacks/going/{stack_id}", json={"parameters": {"p0": str(number)}}).status_code

    assert set(at_once(act)) <= {202, 204, 404}
    settled(http, stack_id)
    http.delete(f"stacks/going/{stack_id}")
    settled(http, stack_id, status="DELETE_COMPLETE")
