"""Many clients at once, reading and writing for a while: how soon they are answered, and whether anything is lost.

Every client has a connection and stacks of its own, which it creates, updates and deletes; it remembers what was
accepted, and compares at the end. Between two requests it waits, as those do that follow a stack.
"""

import asyncio
import contextlib
import random
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import httpx

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string"}},
    "resources": {
        f"r{number}": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "word"}}}
        for number in range(5)
    },
    "outputs": {"said": {"value": {"get_attr": ["r4", "output"]}}},
}
STACKS_MAX = 4
"""Of one client at a time."""
REST_S = 300.0
"""How long what was accepted may take to be done once all clients are silent."""


@dataclass(frozen=True, slots=True)
class CrowdPlan:
    """How many clients for how long. pause_s — between two requests of one client, on average; writes — share of
    requests that change something; large — addresses of large stacks, below the project, that are read, too; least — of
    such changes that have to be answered, for which the clients stay longer on a slow machine."""

    clients: int = 50
    seconds: float = 60.0
    pause_s: float = 1.0
    writes: float = 0.2
    least: int = 0
    large: tuple[str, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    """Bodies that large stacks may be updated with, in turns."""


@dataclass(slots=True)
class Known:
    """A stack as its client knows it. words — one of which it has to say in the end; there — one of which is true."""

    id: str
    words: set[str]
    there: set[bool] = field(default_factory=lambda: {True})


@dataclass(slots=True)
class CrowdResult:
    """What came of it. seconds — of each answer, by kind of request; refused — answers other than wanted, in words;
    unanswered — requests whose connection broke, in words; lost — what was accepted and is not so."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def answers(self) -> int:
        return sum(map(len, self.seconds.values()))

    @property
    def writes(self) -> int:
        return sum(len(self.seconds[kind]) for kind in ("create", "update", "delete"))


def crowd(url: str, plan: CrowdPlan, seed: int = 0) -> CrowdResult:
    """Let the clients live. url — of the API below the project."""
    return asyncio.run(_crowd(url, plan, seed))


async def _crowd(url: str, plan: CrowdPlan, seed: int) -> CrowdResult:
    result = CrowdResult()
    plain = ssl.create_default_context()
    async with contextlib.AsyncExitStack() as connections:
        ends_at = time.monotonic() + plan.seconds
        clients = []
        for number in range(plan.clients):
            http = httpx.AsyncClient(base_url=f"{url}/", timeout=60.0, verify=plain)
            await connections.enter_async_context(http)
            clients.append(Client(number, http, plan, result, random.Random(f"{seed}/{number}")))
        await asyncio.gather(*(client.live(ends_at) for client in clients))
        rests_at = time.monotonic() + REST_S
        for client in clients:
            await client.compare(rests_at)
    return result


class Client:
    def __init__(
        self, number: int, http: httpx.AsyncClient, plan: CrowdPlan, result: CrowdResult, dice: random.Random
    ) -> None:
        self._name = f"client{number}"
        self._http = http
        self._plan = plan
        self._result = result
        self._dice = dice
        self._stacks: dict[str, Known] = {}
        self._made = 0

    async def live(self, ends_at: float) -> None:
        while True:
            pause_s = self._dice.expovariate(1 / self._plan.pause_s)
            if time.monotonic() + pause_s >= ends_at and self._result.writes >= self._plan.least:
                return
            await asyncio.sleep(pause_s)
            writes = self._dice.random() < self._plan.writes
            await (self._write() if writes else self._read())

    async def _request(self, kind: str, method: str, path: str, wanted: int, **more: Any) -> httpx.Response | None:
        """The answer; None when there was none, or another than wanted."""
        began = time.perf_counter()
        try:
            answer = await self._http.request(method, path, **more)
        except httpx.TransportError as error:
            self._result.unanswered.append(f"{kind}: {error!r}")
            return None
        self._result.seconds[kind].append(time.perf_counter() - began)
        if answer.status_code != wanted:
            self._result.refused.append(f"{kind}: {answer.status_code} {answer.text[:200]}")
            return None
        return answer

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stack = self._any()
        address = self._dice.choice([*self._plan.large, *([stack] if stack else [])] or [""])
        if not address:
            await self._request("list stacks", "GET", "stacks?limit=20", 200)
            return
        kind, path = self._dice.choices(
            [
                ("show", f"stacks/{address}"),
                ("list resources", f"stacks/{address}/resources"),
                ("list events", f"stacks/{address}/events?limit=20"),
                ("list stacks", "stacks?limit=20"),
            ],
            weights=[6, 1, 2, 1],
        )[0]
        await self._request(kind, "GET", path, 200)

    def _any(self) -> str:
        """Address of one of its own stacks that is there, "" without one."""
        there = [f"{name}/{known.id}" for name, known in self._stacks.items() if known.there == {True}]
        return self._dice.choice(there) if there else ""

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        if self._plan.changes and self._dice.random() < 0.25:
            place = self._dice.randrange(len(self._plan.changes))
            await self._request(
                "update large", "PUT", f"stacks/{self._plan.large[place]}", 202, json=self._plan.changes[place]
            )
            return
        address = self._any()
        if not address or sum(known.there != {False} for known in self._stacks.values()) < STACKS_MAX:
            await self._create()
        else:
            acts: list[Callable[[str], Coroutine[Any, Any, None]]] = [self._update, self._update, self._delete]
            await self._dice.choice(acts)(address)

    async def _create(self) -> None:
        self._made += 1
        name, word = f"{self._name}-{self._made}", f"word {self._made}"
        body = {"stack_name": name, "template": TEMPLATE, "parameters": {"word": word}}
        answer = await self._request("create", "POST", "stacks", 201, json=body)
        if answer is not None:
            self._stacks[name] = Known(answer.json()["stack"]["id"], {word})

    async def _update(self, address: str) -> None:
        known = self._stacks[address.partition("/")[0]]
        word = f"word {self._dice.random()}"
        body = {"template": TEMPLATE, "parameters": {"word": word}}
        answer = await self._request("update", "PUT", f"stacks/{address}", 202, json=body)
        known.words = {word} if answer is not None else known.words | {word}

    async def _delete(self, address: str) -> None:
        known = self._stacks[address.partition("/")[0]]
        answer = await self._request("delete", "DELETE", f"stacks/{address}", 204)
        known.there = {False} if answer is not None else {True, False}

    # -- comparing ---------------------------------------------------------------------------------------------------

    async def compare(self, rests_at: float) -> None:
        """Is all as it was accepted?"""
        for name, known in self._stacks.items():
            stack = await self._rested(f"{name}/{known.id}", rests_at)
            status = str(stack["stack_status"])
            words = {each["output_key"]: each["output_value"] for each in stack.get("outputs", ())}.get("said")
            gone = status == "DELETE_COMPLETE"
            if (not gone) not in known.there or not status.endswith("COMPLETE"):
                self._result.lost.append(f"{name} is {status}, and should be there: {known.there}")
            elif not gone and words not in known.words:
                self._result.lost.append(f"{name} says {words!r}, and should say {known.words}")

    async def _rested(self, address: str, rests_at: float) -> dict[str, Any]:
        while True:
            try:
                answer = await self._http.get(f"stacks/{address}")
                stack: dict[str, Any] = answer.raise_for_status().json()["stack"]
                if not stack["stack_status"].endswith("IN_PROGRESS") or time.monotonic() > rests_at:
                    return stack
            except httpx.HTTPError:
                if time.monotonic() > rests_at:
                    raise
            await asyncio.sleep(0.1)
