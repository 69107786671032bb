"""Workflows and webhooks as recovery actions, called until they end or time out (ADR 0079).

The arguments are read from the health policy at each call. Each call has a token, by which the receiver recognizes a
repetition after a crash or a lost answer.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from homeostat.clock import Clock
from homeostat.clouds.port import Answer, Cloud, Operation
from homeostat.clustering.decisions.placeholders import expanded, expanded_url
from homeostat.convergence.threads.fair_turns import FairTurns
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain
from homeostat.model.health_policy import ActionType, RecoveryAction
from homeostat.model.node_health import NodeNames
from homeostat.model.observed import Observation
from homeostat.model.plan import Operate, Step
from homeostat.model.world import Resource, World

CALLED = {action_type.lower(): action_type for action_type in (ActionType.WORKFLOW, ActionType.WEBHOOK)}
"""Operation -> type of the action."""
LOOK_PART, LOOK_S_MIN, LOOK_S_MAX = 0.2, 0.2, 5.0
"""Pause between two looks at a running call: a part of its time so far, and the bounds of the pause."""
CALLS_MAX = 10_000
"""Webhook calls in flight in this process, at most."""
ANSWER_S_MAX = 30.0
"""Time limit of one request in seconds: a hanging request must not delay other turns for longer."""
LATER = frozenset({0, 408, 425, 429})
"""Status codes after which a webhook is called again, besides the server errors; 0 for no answer."""
SAID_MAX = 200
"""Characters of an answer that an error quotes."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a webhook; `timeout_s` is the time limit of its answer in seconds."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_s: float


Call = Callable[[Request], tuple[int, str]]
"""Sends a request: returns the status code and the begin of the text; 0 and the reason without answer. Raises nothing.
"""


@dataclass(slots=True)
class _Pending:
    """A sent request; `answer` is None until it arrives."""

    request: Request
    answer: tuple[int, str] | None = field(default=None)


class RecoveryCalls:
    """Calls workflows and webhooks, and keeps the pending calls."""

    def __init__(self, clock: Clock, call: Call | None = None, turns: FairTurns | None = None) -> None:
        """Prepare the calls.

        Args:
            clock: Clock of deadlines.
            call: Calls webhooks; None if this process calls none.
            turns: Threads for the calls; None for the caller's thread.
        """
        self._clock, self._call, self._turns = clock, call, turns
        self._lock = threading.Lock()
        self._pending: LRUCache[str, _Pending] = LRUCache(CALLS_MAX)

    def answers(self, world: World, cloud: Cloud, kind: str, steps: Sequence[Step]) -> dict[str, Answer]:
        """Make the calls of steps; return row key -> the answer, for the steps that are calls.

        After success the answer is an observation of the thing; while the call runs Transient; after a failure
        Terminal.
        """
        answers: dict[str, Answer] = {}
        ended: list[Step] = []
        for step in steps:
            if not isinstance(step.act, Operate) or step.act.operation not in CALLED:
                continue
            failure = self._carry_out(world, cloud, step.row, step.act)
            if failure is None:
                ended.append(step)
            else:
                answers[step.row.key] = failure
        if ended:
            looks = _looks(cloud, kind, [step.row.handle for step in ended])
            answers |= {step.row.key: look for step, look in zip(ended, looks, strict=True)}
        return answers

    def _carry_out(self, world: World, cloud: Cloud, row: Resource, act: Operate) -> HomeostatError | None:
        """Return None if a call has succeeded, else the error: Transient if it may yet succeed."""
        action, since, token = _action(world, row, act), _since(row), str(act.arguments["token"])
        if action is None:
            return Terminal("its health policy has changed")
        now = self._clock.now()
        left_s = (now if since is None else since) + action.timeout_s - now
        if action.type is ActionType.WORKFLOW:
            answer = self._run(world, cloud, row, token, action, left_s)
        else:
            answer = self._ask(world, row, token, action, left_s)
        if isinstance(answer, Transient | Uncertain):
            if left_s <= 0:
                return Terminal(f"{action.name} has not succeeded within {action.timeout_s} s: {answer}")
            taken_s = action.timeout_s - left_s
            return Transient(str(answer), min(max(LOOK_PART * taken_s, LOOK_S_MIN), LOOK_S_MAX))
        return answer

    def _run(
        self, world: World, cloud: Cloud, row: Resource, token: str, action: RecoveryAction, left_s: float
    ) -> HomeostatError | None:
        """Run a workflow, or cancel it when its time is over."""
        if "workflow" not in cloud.kinds:
            return Terminal(f"the workflow {action.name} cannot be run: this cloud has no workflows")
        inputs = expanded(dict(action.params), _names(world, row))
        arguments = {"token": token, "input": inputs, "cancel": left_s <= 0}
        try:
            (answer,) = cloud.operate("workflow", [Operation(action.name, "run", arguments)])
        except HomeostatError as error:
            return error
        if isinstance(answer, Observation):
            return None if answer.present else Terminal(f"there is no workflow {action.name}")
        return answer

    def _ask(
        self, world: World, row: Resource, token: str, action: RecoveryAction, left_s: float
    ) -> HomeostatError | None:
        """Call a webhook, or return the outcome of its call."""
        if self._call is None:
            return Transient("this process calls no webhooks")
        with self._lock:
            pending = self._pending.get(token)
        if pending is None and left_s > 0:
            try:
                pending = _Pending(_request(world, row, token, action, left_s))
            except ValueError as error:
                return Terminal(f"webhook {action.name}: {error}")
            with self._lock:
                self._pending[token] = pending
            # Outside the lock: without threads the call happens right here, and takes as long as the webhook.
            self._send(world.stack.project, pending)
        if pending is None or pending.answer is None:
            return Transient(f"webhook {action.name} is being called")
        failure = _judged(action, *pending.answer)
        if failure is not None:
            # A success stays in memory: if the observation after it fails, the call is judged again, not repeated.
            with self._lock:
                self._pending.pop(token, None)
        return failure

    def _send(self, project: str, pending: _Pending) -> None:
        def turn() -> bool:
            if self._call is not None:
                pending.answer = self._call(pending.request)
            return False

        if self._turns is None:
            turn()
        else:
            self._turns.add(project, turn)


def _looks(cloud: Cloud, kind: str, handles: Sequence[str]) -> Sequence[Answer]:
    """Observe things; an error of the cloud is the answer for all, and leaves the other calls their answers."""
    try:
        return cloud.observe(kind, handles)
    except HomeostatError as error:
        return [error] * len(handles)


def _action(world: World, row: Resource, act: Operate) -> RecoveryAction | None:
    """Return the action that an operation calls; None if its policy has no such action any more."""
    policy = world.health.policy_of(row.name) if world.health is not None else None
    number = int(act.arguments["step"])
    if policy is None or number >= len(policy.actions):
        return None
    action = policy.actions[number]
    same = (action.type, action.name) == (CALLED[act.operation], act.arguments["name"])
    return action if same else None


def _since(row: Resource) -> float | None:
    """Return the start time of an action."""
    recovery = row.marks.recovery if row.marks is not None else None
    return None if recovery is None else recovery.acted_at


def _names(world: World, row: Resource) -> NodeNames:
    names = world.health.names.get(row.key) if world.health is not None else None
    return names or NodeNames(row.name, row.key, row.handle)


def _request(world: World, row: Resource, token: str, action: RecoveryAction, left_s: float) -> Request:
    """Return the request to a webhook.

    Raises:
        ValueError: A header is invalid after its placeholders are expanded.
    """
    names, params = _names(world, row), action.params
    headers = {"Content-Type": "application/json"} | expanded(dict(params["headers"]), names)
    for name, value in headers.items():
        # A placeholder may stand for a text of users, which must not add lines to the request.
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the header {name} is no line of ASCII characters for {names.name}")
    method = str(params["method"]).upper()
    body = expanded(dict(params["body"]), names) or _facts(world, row, action, names)
    text = b"" if method == "GET" else json.dumps(body).encode()
    url = expanded_url(params["url"], names)
    patience_s = min(left_s, ANSWER_S_MAX)
    return Request(method, url, {**headers, "Idempotency-Key": token}, text, patience_s)


def _facts(world: World, row: Resource, action: RecoveryAction, names: NodeNames) -> dict[str, Any]:
    """Return the default body of a webhook call."""
    node = world.health.nodes.get(row.key) if world.health is not None else None
    facts = {"id": names.id, "name": names.name, "physical_id": names.physical_id, "address": names.address}
    return {
        "action": action.name,
        "reason": "" if node is None else node.reason,
        "node": facts,
        "cluster": {"id": names.cluster_id, "name": names.cluster_name},
    }


def _judged(action: RecoveryAction, status: int, text: str) -> HomeostatError | None:
    if 200 <= status < 300:
        return None
    result = f"it answered {status}" + (f": {text[:SAID_MAX]}" if text else "") if status else f"no answer: {text}"
    message = f"webhook {action.name}: {result}"
    return Transient(message) if status in LATER or status >= 500 else Terminal(message)
