"""Regular expressions of users: what they match, and that none of them takes long or much."""

import time

import pytest
from tests.unit.templates.template_cases import compiled, template

from homeostat.model.errors import Rejected
from homeostat.templates import patterns
from homeostat.templates.parameters import _matches

MATCHES = [
    (r"[a-z]+", "abc", True, "letters"),
    (r"[a-z]+", "abc1", False, "not to the end"),
    (r"a|ab", "ab", True, "the longer of two"),
    (r"(?=.*\d)(?=.*[a-z]).{4,8}", "abc1", True, "looks ahead, as for passwords"),
    (r"(\w)\1", "aa", True, "a reference back"),
    (r"^\d{1,3}(\.\d{1,3}){3}$", "10.0.0.1", True, "an address"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "5b9e8a0c-0000-4000-8000-000000000001", True, "an id"),
    (r"(?i)ABC", "abc", True, "flags within"),
    ("", "", True, "nothing"),
]


@pytest.mark.parametrize(("expression", "text", "expected", "reason"), MATCHES, ids=[case[3] for case in MATCHES])
def test_matches(expression: str, text: str, expected: bool, reason: str) -> None:
    assert patterns.fullmatch(patterns.compiled(expression), text) is expected


HOSTILE = [
    (r"(a{1000}){1000}", "repeats more than", "groups that multiply"),
    (r"((([ab]{1000}){1000}){1000}){1000}", "repeats more than", "groups that multiply to more than any memory"),
    (r"(((a{1000}|b){1000}|c){1000})", "repeats more than", "with bars"),
    ("(?:x{300}[)({}\\]]y){400}", "repeats more than", "a set with brackets"),
    (r"\(a{99999999999}", "repeats more than", "a number beyond all"),
    ("a|" * 3000, "is longer than", "a long expression"),
]


@pytest.mark.parametrize(("expression", "message", "reason"), HOSTILE, ids=[case[2] for case in HOSTILE])
def test_too_large_to_be_compiled(expression: str, message: str, reason: str) -> None:
    with pytest.raises(patterns.TooComplicated, match=f"too complicated: it {message}"):
        patterns.compiled(expression)


@pytest.mark.parametrize("expression", ["(", "[a", "a{2,1}", "(?P<a>x)(?P<a", "*", "(?:" * 900 + ")" * 900])
def test_no_expressions(expression: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        patterns.compiled(expression)
    assert not isinstance(caught.value, patterns.TooComplicated)


@pytest.mark.parametrize(
    ("expression", "text"),
    [(r"(a|aa)+$", "a" * 4000 + "b"), (r"(a+)\1+(\1|b)*(?:\1\1)+$", "a" * 20000 + "c")],
)
def test_matching_ends(expression: str, text: str) -> None:
    """The time is the library's: what is tested is that its limit reaches it, or this would run for years."""
    began = time.process_time()
    with pytest.raises(patterns.TooComplicated, match="too complicated: it can match"):
        patterns.fullmatch(patterns.compiled(expression), text)
    assert time.process_time() - began < 60


def constrained(pattern: str, value: str) -> None:
    parameter = {"type": "string", "constraints": [{"allowed_pattern": pattern}]}
    compiled(template(parameters={"p": parameter}), parameters={"p": value})


def test_a_parameter_cannot_hang_the_service() -> None:
    with pytest.raises(Rejected, match=r"Parameter 'p' is invalid: .* cannot be compared with pattern"):
        constrained(r"(a|aa)+$", "a" * 4000 + "b")
    with pytest.raises(Rejected, match=r"parameters\.p: .* is not a regular expression: .* too complicated"):
        constrained(r"((a{1000}){1000}){1000}", "a")


def test_many_patterns_share_their_time() -> None:
    """Else a template of thousands of them would keep the service busy for an hour."""
    assert patterns.match_s(0) == patterns.match_s(2) == patterns.MATCH_S
    assert patterns.match_s(20_000) < 0.01
    slow = {"type": "string", "constraints": [{"allowed_pattern": r"(a|aa)+$"}], "default": "a" * 4000 + "b"}
    quick = {"type": "string", "constraints": [{"allowed_pattern": "[a-z]+"}], "default": "abc"}
    parameters = {**{f"p{number}": quick for number in range(2000)}, "slow": slow}
    began = time.process_time()
    with pytest.raises(Rejected, match="cannot be compared with pattern"):
        compiled(template(parameters=parameters))
    assert time.process_time() - began < 30


def test_the_patterns_of_cfn_are_counted_too() -> None:
    of_cfn = {f"p{number}": {"Type": "String", "AllowedPattern": "[a-z]"} for number in range(100)}
    of_hot = {"p": {"constraints": [{"allowed_pattern": "[a-z]"}] * 100}}
    assert _matches(of_cfn) == _matches(of_hot) == 200
