"""What the answers of OpenStack's services mean: the table, and how words are read."""

from typing import Any

import pytest
from tests.openstack.answer_examples import EXAMPLES, Example

from homeostat.clouds.openstack.answers import (
    MESSAGE_MAX,
    RULES,
    Forbidden,
    Meaning,
    Missing,
    Unauthenticated,
    error_of,
    meaning_of,
    words_of,
)
from homeostat.model.errors import Terminal, Transient, Uncertain

ERRORS = {
    Meaning.MISSING: Missing,
    Meaning.UNAUTHENTICATED: Unauthenticated,
    Meaning.TRANSIENT: Transient,
    Meaning.TERMINAL: Terminal,
    Meaning.UNCERTAIN: Uncertain,
}


def test_each_row_has_an_example() -> None:
    assert {each.rule for each in EXAMPLES} == set(RULES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_an_example_means_what_it_says(example: Example) -> None:
    body = {"fault": {"message": example.words}}
    error = error_of(example.service, example.method, example.code, body, {})
    assert isinstance(error, ERRORS[example.meaning])
    remedy = f" ({example.rule.remedy})" if example.rule.remedy else ""
    assert str(error) == f"{example.service}: {example.words}{remedy}"


def test_only_a_look_can_be_forbidden_for_now() -> None:
    words = {"message": "Share status must be available"}
    assert isinstance(error_of("compute", "GET", 403, words, {}), Forbidden)
    assert type(error_of("shared-file-system", "DELETE", 403, words, {})) is Transient


@pytest.mark.heavy
@pytest.mark.parametrize("code", range(300, 600))
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_every_refusal_has_a_meaning(code: int, method: str) -> None:
    assert meaning_of("any", method, code, "") in RULES


@pytest.mark.parametrize(
    ("service", "method", "code", "words", "meaning"),
    [
        ("network", "POST", 400, "Invalid volume: it is already attached", Meaning.TERMINAL),
        ("compute", "GET", 400, "Invalid volume: it is already attached", Meaning.TERMINAL),
        ("compute", "POST", 409, "Cannot 'resize' instance 6c0 while it is in vm_state building", Meaning.TRANSIENT),
        ("compute", "POST", 409, "Cannot 'resize' instance 6c0 while it is in vm_state rescued", Meaning.TERMINAL),
        ("load-balancer", "PUT", 409, "Load Balancer 91b is immutable and cannot be updated.", Meaning.TRANSIENT),
        ("compute", "DELETE", 409, "already exists", Meaning.TRANSIENT),
        ("block-storage", "POST", 403, "Policy doesn't allow volume:create", Meaning.TERMINAL),
        ("network", "DELETE", 503, "", Meaning.UNCERTAIN),
        ("compute", "GET", 403, "Policy doesn't allow os_compute_api:os-quota-sets:show", Meaning.TRANSIENT),
    ],
)
def test_rows_are_of_their_service_method_and_words(
    service: str, method: str, code: int, words: str, meaning: Meaning
) -> None:
    assert meaning_of(service, method, code, words).meaning is meaning


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"badRequest": {"code": 400, "message": "Invalid\n  input"}}, "Invalid input"),
        ({"NeutronError": {"type": "X", "message": "No more.", "detail": ""}}, "No more."),
        ({"faultcode": "Client", "faultstring": "It is PENDING_UPDATE", "debuginfo": None}, "It is PENDING_UPDATE"),
        ({"errors": [{"status": 406, "title": "Not Acceptable"}]}, "Not Acceptable"),
        ({"title": "Forbidden", "description": "Secret creation"}, "Secret creation"),
        ({"message": "", "code": 500}, ""),
        (["oops"], ""),
        (None, ""),
        ({"message": "x" * 5000}, "x" * MESSAGE_MAX),
    ],
)
def test_words_are_found_wherever_a_service_puts_them(body: Any, words: str) -> None:
    assert words_of(body) == words


@pytest.mark.parametrize(("reason", "words"), [("Bad Gateway", "Bad Gateway"), ("", "HTTP 502")])
def test_an_answer_without_words(reason: str, words: str) -> None:
    assert str(error_of("network", "POST", 502, None, {}, reason)) == f"network: {words}"


@pytest.mark.parametrize(("code", "seconds"), [(429, 30.0), (413, 30.0), (503, 30.0), (500, None)])
def test_an_error_says_when_to_ask_again(code: int, seconds: float | None) -> None:
    error = error_of("network", "GET", code, None, {"Retry-After": "30"})
    assert isinstance(error, Transient)
    assert error.retry_after_s == seconds
