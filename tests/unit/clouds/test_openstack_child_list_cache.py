"""What is remembered of parts that are listed for one thing at a time."""

from typing import Any

from homeostat.clouds.openstack.child_list_cache import FULL_S, SETTLED_S, ChildListCache

Wire = dict[str, Any]


class Lists:
    """A service with pools, and how often their members were listed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.members: list[Wire] = [{"id": "m"}]
        self.count = 0
        self.quiet = ChildListCache(self._members_of, lambda: self.now)

    def _members_of(self, pool: str) -> list[Wire]:
        self.count += 1
        return self.members

    def look(self, updated_at: str, after_s: float) -> int:
        """Look once more, so much later; return how many lists that took."""
        self.now += after_s
        before = self.count
        assert self.quiet.of("pool", {"id": "pool", "updated_at": updated_at}) == self.members
        return self.count - before


def test_a_quiet_one_is_listed_until_its_entry_is_old_enough() -> None:
    lists = Lists()
    looks = [lists.look("1", after_s) for after_s in (0, SETTLED_S / 2, SETTLED_S / 2, 60, 60)]
    # A change in the same second would not show in the entry.
    assert looks == [1, 1, 1, 0, 0]


def test_one_that_has_changed_is_listed_anew() -> None:
    lists = Lists()
    for _ in range(3):
        lists.look("1", SETTLED_S)
    lists.members = []
    assert [lists.look("2", after_s) for after_s in (1, SETTLED_S, 1)] == [1, 1, 0]


def test_even_a_quiet_one_is_listed_now_and_then() -> None:
    lists = Lists()
    for _ in range(2):
        lists.look("1", SETTLED_S)
    assert [lists.look("1", FULL_S / 2) for _ in range(4)] == [0, 1, 0, 1]


def test_each_one_is_remembered_by_itself() -> None:
    lists = Lists()
    for _ in range(2):
        lists.look("1", SETTLED_S)
    lists.quiet.of("other", {"id": "other", "updated_at": "1"})
    assert lists.count == 3
