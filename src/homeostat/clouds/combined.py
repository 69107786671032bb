"""Several clouds joined into one: each serves its kinds."""

from collections.abc import Callable, Iterator, Sequence

from homeostat.clouds.port import Answer, Change, ChangeNotice, Cloud, Creation, Operation, look_max_s
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation


class JoinedCloud:
    """The cloud port over several clouds; each kind is served by one of them."""

    def __init__(self, first: Cloud, *others: Cloud) -> None:
        """Join clouds.

        Args:
            first: The cloud whose change notices are used.
            others: Clouds for the kinds that `first` lacks; earlier clouds take precedence.
        """
        self._first = first
        self._by_kind = {kind: cloud for cloud in (*reversed(others), first) for kind in cloud.kinds}
        self.name = "+".join(cloud.name for cloud in (first, *others))
        self.kinds = frozenset(self._by_kind)
        self.listing_lag_s = max(cloud.listing_lag_s for cloud in (first, *others))
        self.look_max_s = max(look_max_s(cloud) for cloud in (first, *others))

    def _of(self, kind: str) -> Cloud:
        """Return the cloud that serves a kind.

        Raises:
            Transient: No cloud serves the kind; a plug-in whose adapter fails now may be available later.
        """
        cloud = self._by_kind.get(kind)
        if cloud is None:
            raise Transient(f"no cloud here has things of the kind {kind}; `homeostat doctor` names broken plug-ins")
        return cloud

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return self._of(kind).observe(kind, handles)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return self._of(kind).find(kind, tokens)

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Resolve names; kinds that no cloud serves, such as availability zones, go to the first cloud."""
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
        """Do nothing: each cloud is closed by its owner."""
