"""Health policies whose URLs are asked from several places, which differ in how much they count (ADR 0080)."""

from collections.abc import Collection
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import select

from homeostat.convergence.health_checks.probes import Answer
from homeostat.convergence.health_checks.rounds import HealthRounds
from homeostat.convergence.health_checks.vantage_rounds import VantageRounds
from homeostat.model.node_health import Finding
from homeostat.store import schema
from tests.component.checked import Checked, actions, policy, url

SILENT, ILL = Answer(0, "no route to host"), Answer(500, "ill")
HEALTHY, UNHEALTHY, UNKNOWN = Finding.HEALTHY, Finding.UNHEALTHY, Finding.UNKNOWN
PLACES = [{"name": "a"}, {"name": "b"}, {"name": "c", "weight": 3}]


class Everywhere:
    """Rounds of all places that have workers, and then those that put together what they found."""

    def __init__(self, service: "Viewed", there: Collection[str]) -> None:
        self._rounds = [VantageRounds(service.db, each, service.see_from(each)) for each in there]
        self._health = service.rounds

    def round(self) -> int:
        for each in self._rounds:
            each.round()
        return int(self._health.round())


class Viewed(Checked):
    """views — place and name of a node -> the answer that its URL gives there, for others that of `answers`."""

    def __init__(self, count: int, *there: str, places: Any = PLACES, **more: Any) -> None:
        self.views: dict[tuple[str, str], Answer] = {}
        modes = url(poll_url_retry_limit=more.pop("attempts", 1), poll_url_retry_interval=1)
        detection = {"vantage_points": places, **more.pop("detection", {})}
        super().__init__(count, policy(modes, detection=detection, **more))
        self.rounds: Any = self.health
        self.health: Any = Everywhere(self, there)
        self.live(15.0)

    def see_from(self, place: str) -> Any:
        def get(address: str, verify: bool, patience_s: float) -> Answer:
            node = address.split("/")[2]
            return (
                self.views.get((place, node)) or self.views.get((place, "")) or self._get(address, verify, patience_s)
            )

        return get

    def findings(self) -> list[Finding]:
        return [self.health_of(number).finding for number in range(self.count)]


def test_as_much_weight_as_the_quorum_has_to_agree() -> None:
    service = Viewed(2, "a", "b", "c", mode="observe", detection={"vantage_quorum": 4})
    assert service.findings() == [HEALTHY, HEALTHY]
    service.views["c", "n-001"] = ILL
    service.live(30.0)
    assert service.findings() == [HEALTHY, HEALTHY], "3 of 5 are not enough"
    service.views["a", "n-001"] = SILENT
    service.live(30.0)
    assert service.findings() == [UNHEALTHY, HEALTHY]
    evidence = service.health_of(0).detected[0].evidence
    assert evidence == "4 of 5: a: no answer: no route to host; c: it answered 500"


def test_a_place_that_is_cut_off_is_outvoted() -> None:
    service = Viewed(3, "a", "b", "c", places=[{"name": each} for each in "abc"])
    service.views["a", ""] = SILENT
    service.live(60.0)
    assert (service.findings(), service.recoveries()) == ([HEALTHY] * 3, [])
    service.answers["n-001"] = ILL
    service.live(30.0)
    assert service.recoveries()[:1] == ["RECREATE"]


@pytest.mark.parametrize(("there", "expected"), [(("c",), UNHEALTHY), (("a", "b"), UNKNOWN), ((), UNKNOWN)])
def test_places_without_workers_count_for_nothing(there: tuple[str, ...], expected: Finding) -> None:
    service = Viewed(1, *there, mode="observe")
    service.answers["n-001"] = ILL
    service.live(30.0)
    assert service.findings() == [expected]


def test_a_place_whose_workers_have_gone_counts_no_more() -> None:
    service = Viewed(1, "a", "b", places=[{"name": "a"}, {"name": "b"}], mode="observe")
    assert service.findings() == [HEALTHY]
    service.health = Everywhere(service, ())
    service.live(120.0)
    assert service.findings() == [UNKNOWN]
    assert "no worker there has looked for" in service.health_of(0).detected[0].evidence


@pytest.mark.parametrize(("there", "expected"), [(("a", "b"), UNHEALTHY), (("b",), HEALTHY), ((), HEALTHY)])
def test_what_a_place_has_found_once_counts_as_one_look(there: tuple[str, ...], expected: Finding) -> None:
    """Rounds that were made more often than a place looked counted each of its looks again."""
    places = [{"name": "a"}, {"name": "b"}]
    service = Viewed(1, "a", "b", places=places, mode="observe", detection={"failures": 2})
    service.answers["n-001"] = ILL
    service.live(8.0)
    service.health = Everywhere(service, there)
    service.live(30.0)
    assert service.findings() == [expected]


def test_what_was_found_before_an_action_does_not_say_that_it_was_in_vain() -> None:
    """A server that a reboot had mended was made again, though no place had looked since."""
    actions_tried = actions("REBOOT", "RECREATE")
    service = Viewed(1, "a", places=[{"name": "a"}], actions=actions_tried, verify_timeout=2, by_hint=False)
    service.answers["n-001"] = ILL
    while not service.recoveries():
        service.live(0.5)
    service.answers.clear()
    service.health = Everywhere(service, ())
    service.live(20.0)
    assert service.recoveries() == ["REBOOT"]
    service.health = Everywhere(service, ["a"])
    service.live(20.0)
    assert (service.recoveries(), service.findings()) == (["REBOOT"], [HEALTHY])


def test_each_place_asks_as_often_as_the_policy_says() -> None:
    service = Viewed(1, "a", places=[{"name": "a"}], attempts=3, mode="observe")
    service.answers["n-001"] = ILL
    before = len(service.asked)
    service.live(10.5)
    assert service.findings() == [HEALTHY], "so far it was asked once"
    service.live(10.0)
    service.live(10.0)
    assert service.findings() == [UNHEALTHY]
    assert len(service.asked) - before >= 3


def test_one_that_is_being_made_is_not_asked_and_another_policy_forgets_what_was_found() -> None:
    service = Viewed(2, "a", places=[{"name": "a"}], mode="observe")
    service.answers["n-001"] = ILL
    service.live(30.0)
    assert service.findings() == [UNHEALTHY, HEALTHY]
    service.detach()
    service.attach(policy(url(poll_url_retry_limit=1), detection={"vantage_points": [{"name": "b"}]}))
    service.health = Everywhere(service, ["a", "b"])
    service.live(1.0)
    assert UNHEALTHY not in service.findings()
    service.answers.clear()
    service.live(30.0)
    assert service.findings() == [HEALTHY, HEALTHY]


def test_a_deleted_group_is_asked_no_more_also_from_a_place_without_workers() -> None:
    """Found by the simulation: what such a place was to ask stayed until the deleted stack was forgotten."""
    service = Viewed(1, "a", places=[{"name": "a"}, {"name": "nowhere"}])
    service.delete(service.id)
    service.rest()
    service.live(60.0)
    with service.db.read() as tx:
        assert tx.execute(select(schema.vantage_look.c.vantage)).scalars().all() == []


def test_a_policy_that_is_detached_while_a_round_goes_on_leaves_nothing_to_be_asked() -> None:
    """Found by the simulation: nothing would ever have taken away what the round stored for it."""
    service = Viewed(1, "a", places=[{"name": "a"}, {"name": "nowhere"}])
    put_together = HealthRounds._take_from_elsewhere

    def after_that(rounds: HealthRounds, current: Any, *more: Any) -> None:
        service.detach()
        put_together(rounds, current, *more)

    with patch.object(HealthRounds, "_take_from_elsewhere", after_that):
        service.live(30.0)
    with service.db.read() as tx:
        assert tx.execute(select(schema.vantage_look.c.vantage)).scalars().all() == []
