"""URLs that rollouts are approved by: those of one project that do not answer hold up no rollout of another."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update
from tests.contract.store_cases import NOW, add_stack, resource
from tests.waiting import until

from homeostat.clouds.outbound import Outbound, read_rules
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.convergence.threads.fair_turns import FairTurns, Turn
from homeostat.model.rollout import Rollout, RolloutBegin, RolloutSettings
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.sql import lock_order
from homeostat.store.stacks import rollouts

ASKED_S = 600.0
"""Longer than the test: what does not answer holds its place to the end."""
SLOW, QUICK = "slow", "quick"


class Server:
    """Answers 200 at once, or sends its answer byte by byte and so slowly that it never ends; `open` — connections
    that wait for the rest of theirs."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._over = threading.Event()
        self.open = 0
        self.most = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if SLOW.encode() not in connection.recv(4096):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            with self._lock:
                self.open += 1
                self.most = max(self.most, self.open)
            try:
                for letter in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 1000:
                    connection.sendall(bytes([letter]))
                    if self._over.wait(0.2):
                        return
            finally:
                with self._lock:
                    self.open -= 1

    def close(self) -> None:
        self._over.set()
        self._socket.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with contextlib.closing(Server()) as found:
        yield found


def rollout_of(database: Database, project: str, number: int, url: str) -> str:
    """A rollout without a gate of a group of two in a stack of this project, approved by this URL: key of the group."""
    stack_id, key = add_stack(database, f"web{number}", project=project), f"{project}-group{number}"
    writes = Writes()
    writes.insert(resource(key, stack_id, "group"))
    members = add_stack(
        database,
        f"members{number}",
        project=project,
        parent_id=stack_id,
        parent_key=key,
        parent_shard=0,
        root_id=stack_id,
        depth=1,
    )
    inside = Writes()
    for name in ("0", "1"):
        inside.insert(resource(f"{key}-{name}", members, name, handle=f"{key}-{name}"))
    begun = Rollout(key, stack_id, 0, "group", members, "running", RolloutSettings(checks=(url,), progress_s=600.0))
    with database.write() as tx:
        shard_state.record(tx, stack_id, writes, NOW)
        shard_state.record(tx, members, inside, NOW)
        tx.execute(update(schema.stack).where(schema.stack.c.id == members).values(status="COMPLETE", size=2))
        locked = rollouts.lock_stacks(tx, stack_id)
        lock_order.take(tx, [(stack_id, 0)])
        rollouts.apply(tx, locked, [RolloutBegin(begun)], database.now(), 60.0)
    return key


def test_urls_of_one_project_that_do_not_answer_hold_up_no_other(database: Database, server: Server) -> None:
    pool = ThreadPoolExecutor(8)
    outbound = Outbound(read_rules(["127.0.0.1"]))
    going = RolloutEngine(database, lambda url: outbound.status(url, ASKED_S), FairTurns(pool, 8, 2))
    slow = [rollout_of(database, "hog", number, f"http://127.0.0.1:{server.port}/{SLOW}") for number in range(20)]

    def has_its_share() -> bool:
        due(database, slow)
        going.round()
        return server.open == 2

    until(has_its_share, "the share of the project to be taken")
    quick = rollout_of(database, "other", 0, f"http://127.0.0.1:{server.port}/{QUICK}")

    def ended() -> bool:
        due(database, [quick])
        going.round()
        with database.read() as tx:
            found = rollouts.of_group(tx, quick)
        return found is not None and found.state == "succeeded"

    until(ended, "the rollout of the other project to end")
    assert server.most == 2, "the slow ones have their share, and had no more"
    assert server.open == 2, "they are still at it"
    server.close()
    pool.shutdown(cancel_futures=True)


def test_a_request_has_one_time_limit_in_all(server: Server) -> None:
    """Each byte comes in time, and yet the answer does not."""
    outbound = Outbound(read_rules(["127.0.0.1"]))
    assert outbound.status(f"http://127.0.0.1:{server.port}/{SLOW}", 0.5) == "it took more than 0.5 s"
    until(lambda: not server.open, "the connection to be closed")


def due(database: Database, keys: list[str]) -> None:
    with database.write() as tx:
        tx.execute(update(schema.rollout).where(schema.rollout.c.key.in_(keys)).values(due_at=1.0))


class Slow:
    """Turns that wait until they are let go on."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = threading.Event()
        self._lock = threading.Lock()

    def turn(self, project: str, times: int = 1) -> Turn:
        left = [times]

        def take() -> bool:
            with self._lock:
                self.begun.append(project)
            self.go_on.wait(30)
            left[0] -= 1
            return left[0] > 0

        return take


def test_a_project_has_its_share_of_the_places_and_no_more() -> None:
    slow = Slow()
    with ThreadPoolExecutor(4) as pool:
        turns = FairTurns(pool, 4, 2)
        for _ in range(5):
            turns.add("a", slow.turn("a"))
        turns.add("b", slow.turn("b"))
        until(lambda: len(slow.begun) == 3, "two turns of one project, and one of another")
        slow.go_on.set()
        until(lambda: len(slow.begun) == 6, "the others")
    assert sorted(slow.begun[:3]) == ["a", "a", "b"]


def test_projects_take_turns() -> None:
    slow = Slow()
    with ThreadPoolExecutor(1) as pool:
        turns = FairTurns(pool, 1, 1)
        for project in ("a", "a", "a", "a", "b", "c"):
            turns.add(project, slow.turn(project))
        slow.go_on.set()
        until(lambda: len(slow.begun) == 6, "all turns")
    assert slow.begun == ["a", "a", "b", "c", "a", "a"]


def test_work_of_several_turns_lets_others_go_between_them() -> None:
    slow = Slow()
    with ThreadPoolExecutor(1) as pool:
        turns = FairTurns(pool, 1, 1)
        turns.add("a", slow.turn("a", 3))
        turns.add("b", slow.turn("b", 2))
        slow.go_on.set()
        until(lambda: len(slow.begun) == 5, "all turns")
    assert slow.begun == ["a", "b", "a", "b", "a"]


def test_a_turn_that_breaks_gives_its_place_back() -> None:
    taken = threading.Event()

    def breaks() -> bool:
        raise ValueError("a bug")

    def take() -> bool:
        taken.set()
        return False

    with ThreadPoolExecutor(1) as pool:
        turns = FairTurns(pool, 1, 1)
        turns.add("a", breaks)
        turns.add("a", take)
        assert taken.wait(30)
