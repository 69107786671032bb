"""Limits of what requests add up to: what they say, and that the documentation lists them."""

from pathlib import Path

import pytest

from homeostat.model import limits
from homeostat.model.errors import FAULT_CODES, Rejected
from homeostat.model.limits import KI, MI, SumLimit

PAGE = Path(__file__).parents[2] / "docs/howto/protect-the-api.md"
LIMIT = SumLimit("Files of a stack", 3, 10, "have fewer files")


def row(each: SumLimit) -> str:
    size = "" if each.size is None else f"{each.size // MI} MiB" if each.size >= MI else f"{each.size // KI} KiB"
    count = "" if each.count is None else f"{each.count:,}"
    return f"| {each.what} | {count} | {size} | {FAULT_CODES[each.fault]} `{each.fault}` |"


def test_the_documentation_lists_every_limit_and_no_other() -> None:
    section = PAGE.read_text().split("## Limits of accumulated data", 1)[1].split("\n## ", 1)[0]
    listed = [line for line in section.splitlines() if line.startswith("| ") and "`" in line]
    assert listed == [row(each).replace("|  |", "| |").replace("|  |", "| |") for each in limits.ALL]
    assert f"first {limits.EVENT_REASON_MAX:,} characters" in section


def test_all_limits_of_the_module_are_among_all() -> None:
    assert [each for each in vars(limits).values() if isinstance(each, SumLimit)] == list(limits.ALL)


@pytest.mark.parametrize(
    ("count", "size", "more", "message"),
    [
        (3, 0, 1, "Request limit exceeded: files of a stack are at most 3: have fewer files"),
        (0, 8, 3, "Request limit exceeded: files of a stack may have 10 bytes in all, not 11: have fewer files"),
    ],
)
def test_what_is_too_much_is_refused_with_number_and_remedy(count: int, size: int, more: int, message: str) -> None:
    with pytest.raises(Rejected) as refused:
        LIMIT.check(count, size, more)
    assert (refused.value.fault, str(refused.value)) == ("RequestLimitExceeded", message)


def test_what_fits_is_taken_and_what_takes_away_always_is() -> None:
    LIMIT.check(2, 9, 1)
    LIMIT.check(9, 99, -5, parts=0)
