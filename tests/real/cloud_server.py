"""One simulated cloud on real time that many processes share: a server process, and an adapter to talk to it."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.model.observed import Observation
from tests.real.processes import CONTEXT, end_with_the_tests

KEY = b"tests"
LATENCY_S = 0.01
"""Each way of a call: a worker may die before its request was sent, and after it was carried out."""


class CountingCloud(SimulatedCloud):
    """Knows how much it was asked to do. Asked twice with one token, it makes two things, and tells of it."""

    def __init__(self) -> None:
        super().__init__(time.time, CloudBehaviour(build_s=0.3, delete_s=0.1, idempotent=False))
        self._acts = 0

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self._acts += len(intents)
        return super().create(kind, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        self._acts += len(changes)
        return super().update(kind, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        """Key pairs have no status: they are gone at once, as in every cloud."""
        self._acts += len(handles)
        answers = super().delete(kind, handles)
        if kind != "keypair":
            return answers
        for handle in handles:
            self.vanish(handle)
        return list(self.observe(kind, handles))

    def acts(self) -> int:
        """How many items it was asked to create, update or delete so far."""
        return self._acts

    def created_twice(self) -> list[tuple[str, str]]:
        return list(self.doubled)


@functools.cache
def _the_cloud() -> CountingCloud:
    return CountingCloud()


class _Manager(BaseManager):
    """Carries calls from any process to the one cloud of its server process."""


_Manager.register(
    "cloud",
    _the_cloud,
    exposed=(
        "observe",
        "find",
        "resolve",
        "create",
        "update",
        "delete",
        "operate",
        "change",
        "things",
        "acts",
        "created_twice",
        "all_snapshots",
    ),
)


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[str]:
    """A cloud in a process of its own. Gives the address for `SharedCloud`."""
    address = str(directory / "cloud.socket")
    manager = _Manager(address, KEY, ctx=CONTEXT)
    manager.start(initializer=end_with_the_tests)
    try:
        yield address
    finally:
        manager.shutdown()


class SharedCloud:
    """Adapter of the cloud port: every call goes to the server process, and takes its time there and back."""

    name = "simulated"
    kinds = frozenset(CLOUD_KINDS)
    listing_lag_s = 0.0

    def __init__(self, address: str) -> None:
        manager = _Manager(address, KEY)
        manager.connect()
        self._there: Any = manager.cloud()  # type: ignore[attr-defined]

    # -- the port ----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return self._call(self._there.observe, kind, handles)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return self._call(self._there.find, kind, tokens)

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        return self._call(self._there.resolve, kind, names)

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return self._call(self._there.create, kind, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._call(self._there.update, kind, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return self._call(self._there.delete, kind, handles)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return self._call(self._there.operate, kind, operations)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """No notices: what changes is seen by looking."""
        return iter(())

    def close(self) -> None:
        """Nothing is held."""

    # -- for the tests -----------------------------------------------------------------------------------------------

    def change(self, handle: str, **fields: Any) -> None:
        """As a user does by hand, or a fault."""
        self._there.change(handle, **fields)

    def things(self, kind: str | None = None) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self._there.things(kind)
        return found

    def all_snapshots(self) -> list[dict[str, Any]]:
        return list(self._there.all_snapshots())

    @property
    def acts(self) -> int:
        return int(self._there.acts())

    @property
    def doubled(self) -> list[tuple[str, str]]:
        """(kind, token) of what was created twice: to stay empty."""
        found: list[tuple[str, str]] = self._there.created_twice()
        return found

    def _call(self, method: Callable[..., list[Any]], kind: str, items: Sequence[Any]) -> list[Any]:
        time.sleep(LATENCY_S)
        answers = method(kind, list(items))
        time.sleep(LATENCY_S)
        return answers
