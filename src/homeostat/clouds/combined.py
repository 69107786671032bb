"""Several clouds as one: each answers for its kinds."""

from collections.abc import Callable, Iterator, Sequence

from homeostat.clouds.port import Answer, Change, ChangeNotice, Cloud, Creation, Operation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation


class JoinedCloud:
    """Takes: first — the cloud that tells of changes; others — for kinds that it does not have."""

    def __init__(self, first: Cloud, *others: Cloud) -> None:
        self._first = first
        self._by_kind = {kind: each for each in (*reversed(others), first) for kind in each.kinds}
        self.name = "+".join(each.name for each in (first, *others))
        self.kinds = frozenset(self._by_kind)
        self.listing_lag_s = max(each.listing_lag_s for each in (first, *others))

    def _of(self, kind: str) -> Cloud:
        """Fails: Transient for a kind of none of them; an adapter that could not be made now may come back."""
        found = self._by_kind.get(kind)
        if found is None:
            raise Transient(f"no cloud here has things of the kind {kind}; `homeostat doctor` names broken plug-ins")
        return found

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return self._of(kind).observe(kind, handles)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return self._of(kind).find(kind, tokens)

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """A kind that none of them makes is a matter of the first."""
        return self._by_kind.get(kind, self._first).resolve(kind, names)

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return self._of(kind).create(kind, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._of(kind).update(kind, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return self._of(kind).delete(kind, handles)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return self._of(kind).operate(kind, operations)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return self._first.watch(stop)

    def close(self) -> None:
        """Those who made the clouds close them."""
