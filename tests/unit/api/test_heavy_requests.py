"""Places for requests that take much work: bounded, shared fairly among projects, given back whatever happens."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastapi.routing import APIRoute

from homeostat.api.context import HEAVY
from homeostat.api.http.fair_places import ClientGone
from homeostat.api.http.heavy_requests import TURN_S, ClientWatch, HeavyRequests
from homeostat.api.orchestration import snapshots
from homeostat.model.errors import TooManyRequests, Transient


class Client:
    """One request. It works until it is told to end."""

    def __init__(self, places: HeavyRequests, project: str, log: list[str] | None = None, name: str = "") -> None:
        self._places = places
        self._project = project
        self._log = [] if log is None else log
        self._name = name or project
        self._hung_up = asyncio.Event()
        self._end = asyncio.Event()
        self.watch = ClientWatch()
        self.works = False
        self.task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        async with self._places.one((("project", self._project),), self.watch, self._receive):
            self._log.append(self._name)
            self.works = True
            try:
                await self._end.wait()
            finally:
                self.works = False

    async def _receive(self) -> dict[str, Any]:
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    def hang_up(self) -> None:
        self._hung_up.set()

    async def end(self) -> None:
        self._end.set()
        await self.task


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


def test_one_project_leaves_places_for_the_others() -> None:
    async def story() -> None:
        places = HeavyRequests(4)
        greedy = [Client(places, "greedy") for _ in range(12)]
        await settled()
        assert sum(each.works for each in greedy) == 2
        modest = Client(places, "modest")
        await settled()
        assert modest.works
        await asyncio.gather(*(each.end() for each in (modest, *greedy)))

    run(story)


def test_a_place_is_given_back_by_a_client_that_goes_in_the_moment_it_gets_it() -> None:
    async def story() -> None:
        places = HeavyRequests(2)
        first, second = Client(places, "p"), Client(places, "p")
        await settled()
        assert (first.works, second.works) == (True, False)
        second.hang_up()
        await asyncio.sleep(0)  # it is just about to be noticed when the place becomes free
        await first.end()
        with pytest.raises(ClientGone):
            await second.task
        third = Client(places, "p")
        await settled()
        assert third.works
        await third.end()

    run(story)


def test_threads_take_short_turns_while_a_place_is_taken() -> None:
    """So reads do not wait for each of them; otherwise long turns are cheaper."""

    async def story() -> None:
        usual = sys.getswitchinterval()
        places = HeavyRequests(4)
        one, other = Client(places, "a"), Client(places, "b")
        await settled()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        assert usual > 2 * TURN_S
        await one.end()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        await other.end()
        assert sys.getswitchinterval() == pytest.approx(usual)

    run(story)


def test_waiting_projects_take_turns() -> None:
    async def story() -> None:
        places, order = HeavyRequests(1), list[str]()
        first = Client(places, "a")
        await settled()
        waiting = [Client(places, "a", order, f"a{n}") for n in range(3)]
        await settled()
        waiting += [Client(places, "b", order, f"b{n}") for n in range(2)]
        await settled()
        await first.end()
        while len(order) < 5:
            await settled()
            await next(each for each in waiting if each.works).end()
        assert order == ["a0", "b0", "a1", "b1", "a2"]

    run(story)


def test_too_many_that_wait_are_refused_and_learn_when_to_come_again() -> None:
    async def story() -> None:
        places = HeavyRequests(1, waiting_max=2)
        there = [Client(places, "a") for _ in range(3)]
        await settled()
        with pytest.raises(TooManyRequests, match="2 requests of this project") as caught:
            await Client(places, "a").task
        assert caught.value.headers == {"Retry-After": "5"}
        other = Client(places, "b")
        await asyncio.gather(*(each.end() for each in (*there, other)))

    run(story)


def test_a_request_that_waits_too_long_is_refused_and_takes_no_place() -> None:
    async def story() -> None:
        places = HeavyRequests(1, patience_s=0.01)
        first = Client(places, "a")
        await settled()
        with pytest.raises(Transient, match="all places"):
            await Client(places, "b").task
        await first.end()
        again = Client(places, "b")
        await settled()
        assert again.works
        await again.end()

    run(story)


def test_who_hangs_up_stops_waiting() -> None:
    async def story() -> None:
        places = HeavyRequests(1)
        first, second = Client(places, "a"), Client(places, "b")
        await settled()
        second.hang_up()
        with pytest.raises(ClientGone):
            await second.task
        await first.end()
        third = Client(places, "c")
        await settled()
        assert third.works
        await third.end()

    run(story)


def test_work_for_a_client_that_hangs_up_is_cancelled() -> None:
    async def story() -> None:
        client = Client(HeavyRequests(1), "a")
        await settled()
        client.watch.check()
        client.hang_up()
        await settled()
        with pytest.raises(ClientGone):
            client.watch.check()
        await client.end()

    run(story)


def test_a_place_comes_back_however_the_request_ends() -> None:
    """Also where it is cancelled just when it has been given its place."""

    async def story() -> None:
        places = HeavyRequests(1)
        for _ in range(3):
            first, second = Client(places, "a"), Client(places, "b")
            await settled()
            first._end.set()
            await asyncio.sleep(0)
            second.task.cancel()
            await asyncio.gather(first.task, second.task, return_exceptions=True)
        last = Client(places, "c")
        await settled()
        assert last.works
        await last.end()

    run(story)


def test_to_restore_a_snapshot_needs_a_place() -> None:
    """Its template is checked anew."""
    (route,) = [each for each in snapshots.ROUTER.routes if getattr(each, "path", "").endswith("/restore")]
    assert isinstance(route, APIRoute)
    assert HEAVY in route.dependencies
