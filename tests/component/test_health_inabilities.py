"""What this service is not able to see is unknown: no node is made again since its service may not, or cannot, ask."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from homeostat.clouds.outbound import Outbound, read_rules
from homeostat.convergence.engine import Urls
from homeostat.convergence.health_checks.probes import Answer
from homeostat.model.answers import OWN_INABILITIES, Kind
from homeostat.model.node_health import Finding
from tests.component.checked import HOST, Checked, policy, url

UNKNOWN, UNHEALTHY = Finding.UNKNOWN, Finding.UNHEALTHY
ONCE: dict[str, Any] = {"poll_url_retry_limit": 1, "poll_url_retry_interval": 1}


def left_alone(service: Checked, evidence: str, count: int = 1) -> None:
    """Nothing was recovered, and it is said why nothing is known."""
    before = [service.handle(number) for number in range(count)]
    service.live(120.0)
    assert service.recoveries() == []
    assert [service.handle(number) for number in range(count)] == before
    for number in range(count):
        node = service.health_of(number)
        assert (node.finding, evidence in node.reason) == (UNKNOWN, True), node


def scope(ours: Outbound) -> Urls:
    return Urls(get=lambda address, verify, s: Answer(*ours.answer(address, s, verify_tls=verify)))


def cannot_resolve(_host: str, _port: int) -> list[str]:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.mark.parametrize(
    ("ours", "address", "evidence"),
    [
        (Outbound(), "http://127.0.0.1:9/{nodename}", "(127.0.0.1); the operator can allow it with --fetch-from"),
        (Outbound(resolve=lambda *_: ["10.0.0.9"]), "http://{nodename}/", "(10.0.0.9); the operator can allow it"),
        (Outbound(resolve=cannot_resolve), "http://{nodename}/", "cannot be resolved"),
    ],
)
def test_a_service_that_may_not_ask_or_finds_no_way_destroys_nothing(
    ours: Outbound, address: str, evidence: str
) -> None:
    service = Checked(1, policy(url(poll_url=address, **ONCE)), urls=scope(ours))
    left_alone(service, evidence)
    assert "it could not be asked" in service.health_of(0).reason


def test_a_node_whose_machine_refuses_the_connection_has_answered() -> None:
    ours = Outbound(read_rules(["127.0.0.1"]))
    service = Checked(1, policy(url(poll_url="http://127.0.0.1:9/", **ONCE), mode="observe"), urls=scope(ours))
    service.live(30.0)
    assert service.health_of(0).finding is UNHEALTHY
    assert "no answer" in service.health_of(0).reason


@pytest.mark.heavy
@pytest.mark.parametrize("kind", sorted(OWN_INABILITIES))
def test_none_of_its_inabilities_is_taken_for_a_death(kind: Kind) -> None:
    service = Checked(1, policy(url(**ONCE)))
    service.live(15.0)
    service.answers["n-001"] = Answer(0, "what is wrong here", kind)
    left_alone(service, "it could not be asked: what is wrong here")


@pytest.mark.parametrize("status", [401, 403, 407, 429])
def test_a_node_that_does_not_let_this_service_ask_is_alive(status: int) -> None:
    service = Checked(1, policy(url(**ONCE)))
    service.answers["n-001"] = Answer(status, "who are you?")
    left_alone(service, f"it answered {status}: this service may not ask it")


def test_a_page_that_no_node_has_ever_had_may_be_a_wrong_url() -> None:
    service = Checked(1, policy(url(**ONCE)), urls=Urls(get=lambda *_: Answer(404, "")))
    left_alone(service, "it answered 404; no member has had this page yet, so the poll_url may be wrong")


def test_a_page_that_others_have_or_that_was_there_is_missed() -> None:
    service = Checked(2, policy(url(**ONCE), mode="observe"))
    service.live(15.0)
    service.answers["n-001"] = Answer(404, "")
    service.live(40.0)
    assert [service.health_of(number).finding for number in range(2)] == [UNHEALTHY, Finding.HEALTHY]
    service.answers["n-002"] = Answer(404, "")
    service.live(40.0)
    assert [service.health_of(number).finding for number in range(2)] == [UNHEALTHY, UNHEALTHY]


def test_a_placeholder_without_a_value_is_not_asked_for() -> None:
    service = Checked(1, policy(url(poll_url="http://proxy/{nodeip}/health", **ONCE)))
    handle = service.handle(0)
    service.cloud.change(handle, address="")
    service.asked.clear()
    service.live(60.0)
    assert (service.recoveries(), service.asked) == ([], [])
    assert "its {nodeip} is not known" in service.health_of(0).reason


def test_a_worker_that_asks_no_urls_says_so() -> None:
    left_alone(Checked(1, policy(url(**ONCE)), urls=Urls(get=None)), "this worker asks no URLs")


def fails(error: Exception) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        raise error

    return call


def test_whatever_else_happens_while_a_url_is_asked_is_unknown() -> None:
    service = Checked(1, policy(url(**ONCE)), urls=Urls(get=fails(ZeroDivisionError("by the worker"))))
    left_alone(service, "ZeroDivisionError('by the worker')")


def test_a_cloud_that_knows_no_hosts_says_nothing_about_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Checked(1, policy(HOST))
    observe = service.cloud.observe

    def no_such_kind(kind: str, handles: Any) -> Any:
        return observe(kind, handles) if kind != "hypervisor" else fails(KeyError(kind))()

    monkeypatch.setattr(service.cloud, "observe", no_such_kind)
    left_alone(service, "the adapter of hypervisor failed")


@pytest.mark.parametrize("silent", [1, 2])
def test_silence_beside_what_could_not_be_asked_is_doubted_as_one_cut(silent: int) -> None:
    """An observer without a way to some, which hears nothing of the others either, is cut off."""
    service = Checked(3, policy(url(**ONCE)))
    service.live(15.0)
    for number in range(3):
        cut = Answer(0, "no route", Kind.NO_ROUTE) if number >= silent else Answer(0, "it took more than 1 s")
        service.answers[f"n-00{number + 1}"] = cut
    service.live(120.0)
    assert service.recoveries() == []
