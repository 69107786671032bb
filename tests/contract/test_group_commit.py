"""Group commit: what several threads ask for at once is committed together, and the error of one is its own."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.waiting import PATIENCE_S, until

from homeostat.model.errors import Rejected, Transient
from homeostat.store.sql.group_commit import ALONE, Alone, Answer, GroupCommit

Commit = Callable[[str, Sequence[int]], Sequence[str | Exception | Alone]]


class Held(GroupCommit[int, str]):
    """Groups that are committed when the test lets them; the first thread of each key leads a group of one."""

    def __init__(self, commit: Commit, group_max: int = 200) -> None:
        super().__init__(self._held, group_max)
        self.store = commit
        self.go_on = threading.Event()
        self.groups: list[tuple[str, list[int]]] = []

    def _held(self, key: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
        self.groups.append((key, list(asked)))
        assert self.go_on.wait(PATIENCE_S)
        return self.store(key, asked)

    def queued(self, key: str = "k") -> int:
        return len(self._waiting.get(key, ()))

    @contextmanager
    def asked(self, *whats: int) -> Iterator[list[Future[Answer[str]]]]:
        """What these threads get, the first of which leads before the others ask."""
        with ThreadPoolExecutor(len(whats)) as pool:
            try:
                futures = [pool.submit(self.ask, "k", whats[0])]
                until(lambda: bool(self.groups), "the first one leads")
                for number, what in enumerate(whats[1:], 1):
                    futures.append(pool.submit(self.ask, "k", what))
                    until(lambda: self.queued() == number, "it waits")  # noqa: B023 -- called at once
                self.go_on.set()
                yield futures
            finally:
                self.go_on.set()


def named(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
    return [f"n{each}" for each in asked]


def test_those_that_come_meanwhile_are_committed_together() -> None:
    held = Held(named)
    with held.asked(1, 2, 3, 4) as futures:
        assert [each.result(PATIENCE_S).value() for each in futures] == ["n1", "n2", "n3", "n4"]
    assert held.groups == [("k", [1]), ("k", [2, 3, 4])]
    assert held.queued() == 0


def test_one_thread_of_a_group_sees_the_answers_of_all() -> None:
    with Held(named).asked(1, 2, 3) as futures:
        assert [list(each.result(PATIENCE_S).led) for each in futures] == [["n1"], ["n2", "n3"], []]


def test_a_group_has_a_limit() -> None:
    held = Held(named, group_max=2)
    with held.asked(1, 2, 3, 4) as futures:
        assert [each.result(PATIENCE_S).value() for each in futures] == ["n1", "n2", "n3", "n4"]
    assert held.groups == [("k", [1]), ("k", [2, 3]), ("k", [4])]


def test_other_keys_do_not_wait() -> None:
    held = Held(named)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(held.ask, "k", 1)
        until(lambda: len(held.groups) == 1, "one group is being committed")
        second = pool.submit(held.ask, "other", 2)
        until(lambda: len(held.groups) == 2, "and another beside it")
        held.go_on.set()
        assert [each.result(PATIENCE_S).value() for each in (first, second)] == ["n1", "n2"]


def refusing(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
    if 3 in asked:
        raise ValueError("a database cannot store three")
    return named(_, asked)


def test_what_the_database_refuses_of_one_is_stored_of_the_others() -> None:
    held = Held(refusing)
    with held.asked(1, 2, 3, 4) as futures:
        answers = [each.result(PATIENCE_S) for each in futures]
    assert [answers[place].value() for place in (0, 1, 3)] == ["n1", "n2", "n4"]
    with pytest.raises(ValueError, match="three"):
        answers[2].value()
    assert held.groups == [("k", [1]), ("k", [2, 3, 4]), ("k", [2]), ("k", [3]), ("k", [4])]


def test_an_answer_may_be_an_error_and_what_has_to_be_alone_is_asked_for_again() -> None:
    def store(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
        errors: dict[int, Exception | Alone] = {2: Rejected("Forbidden", "not two")}
        if len(asked) > 1:
            errors[3] = ALONE
        return [errors.get(each, f"n{each}") for each in asked]

    held = Held(store)
    with held.asked(1, 2, 3, 4) as futures:
        answers = [each.result(PATIENCE_S) for each in futures]
    with pytest.raises(Rejected, match="not two"):
        answers[1].value()
    assert [answers[place].value() for place in (0, 2, 3)] == ["n1", "n3", "n4"]
    assert list(answers[1].led) == ["n3", "n4"], "also who leads may be refused"
    assert held.groups == [("k", [1]), ("k", [2, 3, 4]), ("k", [3])]


def test_a_database_that_does_not_answer_is_asked_once_for_all() -> None:
    def silent(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
        if len(asked) > 1:
            raise Transient("it does not answer", 7.0)
        return named(_, asked)

    held = Held(silent)
    with held.asked(1, 2, 3) as futures:
        first, *others = [each.result(PATIENCE_S) for each in futures]
    assert first.value() == "n1"
    errors = [each.outcome for each in others]
    assert [isinstance(each, Transient) and each.retry_after_s for each in errors] == [7.0, 7.0]
    assert errors[0] is not errors[1], "threads that raise the same error write into it"
    assert held.groups == [("k", [1]), ("k", [2, 3])]


def test_who_leads_may_be_ended_and_the_others_go_on() -> None:
    def ends(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
        if 2 in asked:
            raise SystemExit
        return named(_, asked)

    held = Held(ends, group_max=2)
    with held.asked(1, 2, 3, 4) as futures:
        with pytest.raises(SystemExit):
            futures[1].result(PATIENCE_S)
        assert futures[0].result(PATIENCE_S).value() == "n1"
        with pytest.raises(Transient, match="broken off"):
            futures[2].result(PATIENCE_S).value()
        assert futures[3].result(PATIENCE_S).value() == "n4"


def test_nothing_is_lost_among_many_threads() -> None:
    """Each answer is that to what was asked, and is given after the commit that contains it."""
    stored: set[int] = set()

    def store(_: str, asked: Sequence[int]) -> Sequence[str | Exception | Alone]:
        stored.update(asked)
        return named(_, asked)

    commits: GroupCommit[int, str] = GroupCommit(store)

    def ask(number: int) -> bool:
        return commits.ask(f"k{number % 3}", number).value() == f"n{number}" and number in stored

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(3000)))
    assert stored == set(range(3000))
