"""A load balancer is deleted together with its parts, and only with those that may go (ADR 0070)."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.test_clouds import NOWHERE, Subject, local, others, present

from homeostat.clouds.heat_api import Regions
from homeostat.clouds.port import Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.kinds.registry import KINDS, PART_KINDS
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import DELETE_WITH_PARTS

__all__ = ["others"]
WHOLE = "load_balancer"
PARTS = ("listener", "pool", "pool_member", "health_monitor")


def simulated(path: Path, others: Regions) -> Iterator[Subject]:
    now = [0.0]

    def rest(seconds: float) -> None:
        now[0] += seconds

    yield Subject(SimulatedCloud(lambda: now[0]), rest)


ADAPTERS: dict[str, Callable[[Path, Regions], Iterator[Subject]]] = {"local": local, "simulated": simulated}


@pytest.fixture(params=sorted(ADAPTERS))
def subject(request: pytest.FixtureRequest, tmp_path: Path, others: Regions) -> Iterator[Subject]:
    with contextlib.contextmanager(ADAPTERS[request.param])(tmp_path, others) as opened:
        yield opened


def parts(subject: Subject) -> dict[str, list[str]]:
    return {kind: [subject[kind]] for kind in PARTS}


def cascade(subject: Subject, allowed: dict[str, list[str]], handle: str = "") -> object:
    operation = Operation(handle or subject[WHOLE], DELETE_WITH_PARTS, {"parts": allowed})
    (answer,) = subject.cloud.operate(WHOLE, [operation])
    return answer


def test_a_balancer_goes_with_all_its_parts(subject: Subject) -> None:
    answer = cascade(subject, parts(subject))
    assert isinstance(answer, Observation)
    assert not answer.not_found
    for kind in (WHOLE, *PARTS):
        subject.until_absent(kind, subject[kind])
        assert subject.cloud.find(kind, [f"ground-{kind}"])[0].presence is Presence.ABSENT


def test_it_is_repeated_without_harm(subject: Subject) -> None:
    allowed = parts(subject)
    cascade(subject, allowed)
    subject.until_absent(WHOLE, subject[WHOLE])
    again = cascade(subject, allowed)
    assert isinstance(again, Observation)
    assert again.presence is Presence.ABSENT
    assert again.not_found


def test_more_parts_may_be_allowed_than_there_are(subject: Subject) -> None:
    allowed = parts(subject)
    subject.cloud.delete("pool_member", [subject["pool_member"]])
    subject.until_absent("pool_member", subject["pool_member"])
    assert isinstance(cascade(subject, allowed), Observation)
    subject.until_absent(WHOLE, subject[WHOLE])


@pytest.mark.parametrize("kind", PARTS)
def test_nothing_is_deleted_if_one_part_may_not_go(subject: Subject, kind: str) -> None:
    allowed = parts(subject)
    refused = cascade(subject, {**allowed, kind: [NOWHERE]})
    assert isinstance(refused, Terminal)
    assert allowed[kind][0].rpartition("/")[2] in str(refused)
    for each, handles in allowed.items():
        present(subject.cloud.observe(each, handles)[0])
    assert isinstance(subject.cloud.delete(WHOLE, [subject[WHOLE]])[0], Transient), "it has parts"


def test_parts_of_another_balancer_stay(subject: Subject) -> None:
    other = subject.create(WHOLE, "other", name="other").handle
    listener = subject.create("listener", "its", loadbalancer=other).handle
    assert isinstance(cascade(subject, parts(subject)), Observation)
    subject.until_absent(WHOLE, subject[WHOLE])
    present(subject.cloud.observe(WHOLE, [other])[0])
    present(subject.cloud.observe("listener", [listener])[0])


def test_what_never_was_is_absent(subject: Subject) -> None:
    answer = cascade(subject, {}, NOWHERE)
    assert isinstance(answer, Observation)
    assert (answer.presence, answer.not_found) == (Presence.ABSENT, True)


def test_kinds_with_parts_have_the_operation() -> None:
    for kind in KINDS.values():
        assert bool(kind.parts) == (DELETE_WITH_PARTS in kind.operations)
        assert set(kind.parts) <= KINDS.keys()
    assert set(PARTS) < PART_KINDS
