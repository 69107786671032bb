"""Deploys a stack of the shape of the largest public deployment, and says what each step costs: a JSON object a line.

`python -m conformance.overcloud [ROLES SERVICES NODES]`; the figures in the documentation are those of 2 100 3.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.component.running import PROJECT, Service
from tests.overcloud import overcloud

from homeostat.services.pipeline.request import StackRequest

PASSES_MAX = 1_000_000


def main(roles: int = 2, services: int = 100, nodes: int = 3) -> None:
    """Fails: AssertionError where a step does not end as it should."""
    large = overcloud(roles, services, nodes)
    there = Service(depth_max=large.levels)
    intent = StackRequest(large.template, environment=large.environment, files=large.files)
    _timed("plan", lambda: there.stack_service.preview_new(PROJECT, "overcloud", intent))
    stack_id = _timed("accept", lambda: there.stack_service.create(PROJECT, None, "overcloud", intent))
    _timed("create", lambda: there.work(PASSES_MAX))
    assert there.state(stack_id) == "CREATE_COMPLETE", there.stack(stack_id).reason
    made = _made(there)
    print(json.dumps({"files": len(large.files), "stacks": len(list(there.stacks())), "resources": len(made)}))
    _timed("accept the same", lambda: there.stack_service.update(stack_id, intent))
    _timed("update", lambda: there.work(PASSES_MAX))
    assert (there.state(stack_id), _made(there)) == ("UPDATE_COMPLETE", made)
    there.stack_service.delete(stack_id)
    _timed("delete", lambda: there.work(PASSES_MAX))
    assert there.state(stack_id) == "DELETE_COMPLETE"
    assert there.cloud.things() == {}


def _timed(step: str, act: Callable[[], Any]) -> Any:
    began = time.thread_time()
    answer = act()
    print(json.dumps({"step": step, "cpu_s": round(time.thread_time() - began, 1)}), flush=True)
    return answer


def _made(there: Service) -> dict[str, str]:
    return {row.key: row.handle for each in there.stacks() for row in there.rows(each.id)}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
