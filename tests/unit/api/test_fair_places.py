"""Shares of what there is little of: none of those who ask gets more than its own, whatever it sends."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable

import pytest

from homeostat.api.http.connection_shares import ConnectionShares
from homeostat.api.http.event_streams import FOLLOWERS_EACH, FOLLOWERS_MAX, EventTail
from homeostat.api.http.fair_places import FairPlaces, address_of, prefix, sharers_of
from homeostat.api.http.rate_limits import TokenBuckets
from homeostat.model.errors import TooManyRequests, Transient
from homeostat.model.rates import Rate
from homeostat.store.database import Database


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_user_has_one_share_in_all_projects_and_a_project_one_of_all_users() -> None:
    async def story() -> None:
        for taken in ([("p1", "eve"), ("p2", "eve")], [("p", "eve"), ("p", "mallory")]):
            places = FairPlaces(4, "that count")
            for project, user in taken:
                await places.take(sharers_of(project, user))
            project, user = taken[0]
            third = ("p3", user) if taken[1][1] == user else (project, "oscar")
            beyond = asyncio.ensure_future(places.take(sharers_of(*third)))
            await settled()
            assert not beyond.done()
            await places.take(sharers_of("neighbour", "alice"))  # at once
            places.give_back(sharers_of(*taken[0]))
            await beyond

    run(story)


def test_who_waits_in_one_project_is_refused_in_another_too() -> None:
    async def story() -> None:
        places = FairPlaces(1, "that count", waiting_max=2)
        await places.take(sharers_of("p0", "eve"))
        waiting = [asyncio.ensure_future(places.take(sharers_of(f"p{n}", "eve"))) for n in (1, 2)]
        await settled()
        with pytest.raises(TooManyRequests, match="2 requests of this user that count wait already"):
            await places.take(sharers_of("p3", "eve"))
        neighbour = asyncio.ensure_future(places.take(sharers_of("p0", "alice")))
        await settled()
        places.give_back(sharers_of("p0", "eve"))
        for each, sharers in ((waiting[0], ("p1", "eve")), (waiting[1], ("p2", "eve")), (neighbour, ("p0", "alice"))):
            await each
            places.give_back(sharers_of(*sharers))
        assert not places.taken

    run(story)


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", ""),
    ],
)
def test_addresses_are_counted_as_those_that_one_client_has(address: str, counted: str) -> None:
    assert prefix(address) == counted
    assert address_of({"type": "http", "client": (address, 1)}) == (("address", counted),)


class Socket:
    """A connection, which is told when it has to make room."""

    def __init__(self, shares: ConnectionShares, address: str) -> None:
        self._shares = shares
        self.closed = False
        self.came_in = shares.enter(self, address)

    def make_room(self) -> None:
        self.closed = True


def test_the_oldest_that_waits_makes_room_within_its_address() -> None:
    shares = ConnectionShares(8)
    neighbour = Socket(shares, "10.0.0.2")
    half_open = [Socket(shares, "10.0.0.1") for _ in range(100)]
    assert all(each.came_in for each in half_open)
    assert [each.closed for each in half_open] == [True] * 96 + [False] * 4
    assert not neighbour.closed


def test_who_has_most_that_wait_makes_room_where_all_are_taken() -> None:
    shares = ConnectionShares(8)
    several = [Socket(shares, f"10.0.{n % 3}.1") for n in range(5)]
    many = [Socket(shares, "10.9.0.1") for _ in range(3)]
    newcomer = Socket(shares, "10.8.0.1")
    assert newcomer.came_in
    assert [each.closed for each in many] == [True, False, False]
    assert not any(each.closed for each in several)


def test_what_is_worked_on_does_not_make_room() -> None:
    shares = ConnectionShares(8)
    busy = [Socket(shares, "10.0.0.1") for _ in range(4)]
    for each in busy:
        shares.note(each, owes=False)
    assert not Socket(shares, "10.0.0.1").came_in
    assert Socket(shares, "10.0.0.2").came_in
    shares.note(busy[2], owes=True)  # its answer is written, and it idles
    assert Socket(shares, "10.0.0.1").came_in
    assert [each.closed for each in busy] == [False, False, True, False]


def test_a_trusted_proxy_may_have_all_connections() -> None:
    shares = ConnectionShares(8, [ipaddress.ip_network("10.0.0.0/24")])
    through = [Socket(shares, "10.0.0.1") for _ in range(8)]
    for each in through:
        shares.note(each, owes=False)
    assert not any(each.closed for each in through)
    assert not Socket(shares, "10.0.0.1").came_in
    shares.leave(through[0])
    assert Socket(shares, "10.0.0.1").came_in


def test_what_has_left_counts_no_longer() -> None:
    shares = ConnectionShares(4)
    for _ in range(20):
        one = Socket(shares, "10.0.0.1")
        shares.note(one, owes=False)
        assert one.came_in
        shares.leave(one)
        shares.leave(one)
    assert Socket(shares, "10.0.0.1").came_in


def test_one_project_or_user_follows_a_quarter() -> None:
    """The others find room, until all together have all of it."""

    async def story() -> None:
        db = Database("sqlite://", lambda: 0.0)
        tail = EventTail(db)
        sharers = sharers_of("greedy", "eve")
        held = [tail._following("root", sharers) for _ in range(FOLLOWERS_EACH)]
        for each in held:
            each.__enter__()
        for project, user in (("greedy", "alice"), ("other", "eve")):
            with pytest.raises(TooManyRequests, match=f"{FOLLOWERS_EACH} clients of this") as caught:
                tail.check_room(sharers_of(project, user))
            assert caught.value.headers == {"Retry-After": "5"}
        tail.check_room(sharers_of("neighbour", "bob"))
        others = [tail._following("root", sharers_of(f"p{n}", None)) for n in range(FOLLOWERS_MAX - FOLLOWERS_EACH)]
        for each in others:
            each.__enter__()
        with pytest.raises(Transient):
            tail.check_room(sharers_of("neighbour", "bob"))
        for each in (*held, *others):
            each.__exit__(None, None, None)
        tail.check_room(sharers)
        tail.close()
        db.close()

    run(story)


def test_a_bucket_costs_the_same_however_long_its_key_is() -> None:
    """Signed addresses are counted before their signature is checked, and projects without passwords are any text."""
    buckets = TokenBuckets(Rate(1, 1), lambda: 0.0)
    for number in range(100):
        buckets.take("/v1/signal/arn:openstack:heat::" + "x" * 30_000, number)
    assert sum(map(len, buckets._full_at)) == 100 * 16
