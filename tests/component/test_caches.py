"""What a process keeps in memory."""

from homeostat.desired.cache import Cache


class Maker:
    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, text: str) -> str:
        self.made.append(text)
        return text


def test_a_value_is_made_once() -> None:
    make, kept = Maker(), Cache[str, str](2)
    assert [kept.get("a", lambda: make("a")) for _ in range(3)] == ["a", "a", "a"]
    assert make.made == ["a"]


def test_what_was_used_least_recently_is_forgotten_first() -> None:
    make, kept = Maker(), Cache[str, str](2)
    for each in "abacab":
        kept.get(each, lambda each=each: make(each))  # type: ignore[misc]
    assert make.made == ["a", "b", "c", "b"]


def test_large_values_push_out_many_and_the_newest_stays() -> None:
    make, kept = Maker(), Cache[str, str](4, len)
    for each in ("a", "b", "longer", "longer", "a"):
        kept.get(each, lambda each=each: make(each))  # type: ignore[misc]
    assert make.made == ["a", "b", "longer", "a"]


def test_what_another_thread_made_meanwhile_stays() -> None:
    kept = Cache[str, str](2)

    def slow() -> str:
        kept.get("a", lambda: "quicker")
        return "slower"

    assert kept.get("a", slow) == "quicker"
    assert kept.get("a", slow) == "quicker"
