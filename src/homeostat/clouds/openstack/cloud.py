"""An OpenStack as one project sees it: the cloud port over the collections of its services."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from cachetools import TTLCache

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.changed_servers import ChangedServers, OwnChangedServers, ServerChanges
from homeostat.clouds.openstack.collection import UNFINISHED, Collection
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import Joined
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.model.errors import HomeostatError, Terminal, Uncertain
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import DELETE_WITH_PARTS

T = TypeVar("T")
U = TypeVar("U")
_THREAD = threading.local()
KNOWN_MAX = 10_000
KNOWN_S = 300.0
"""Seconds for which the id of a name (of a flavor, an image, a network) is cached."""


class OpenStackCloud:
    """The cloud port for one project. Safe to share between threads."""

    name = "openstack"
    listing_lag_s = 0.0
    look_max_s = 30.0

    def __init__(
        self,
        collections: Sequence[type[Collection]],
        service: Callable[[str], Service],
        pool: ThreadPoolExecutor,
        watch: Callable[[Callable[[], bool]], Iterator[ChangeNotice]] = lambda stop: iter(()),
        named_only: Sequence[type[Collection]] = (),
        project: str = "",
        changed_servers: ChangedServers | None = None,
    ) -> None:
        """Take the parts.

        Args:
            collections: Kinds of this cloud.
            service: Type of a service -> its client for the project.
            pool: Threads that send the requests of a batch concurrently.
            watch: Yields change notices.
            named_only: Kinds that are only looked up by name.
            changed_servers: Announced changes of all processes; None if this is the only process.
        """
        self.server_changes = ServerChanges(project, changed_servers or OwnChangedServers())
        self.collections: Mapping[str, Collection] = {cls.kind: cls(self) for cls in (*collections, *named_only)}
        self.kinds = frozenset(cls.kind for cls in collections)
        self.service = service
        self._pool = pool
        self._watch = watch
        self._knowing = threading.Lock()
        self._resolving: dict[tuple[str, str], Future[str | None]] = {}
        self._known: TTLCache[tuple[str, str], str] = TTLCache(KNOWN_MAX, KNOWN_S)
        # Separate from `_known`: a look at many objects would push the names out of the cache.
        self._exist: TTLCache[tuple[str, str], bool] = TTLCache(KNOWN_MAX, KNOWN_S)

    def side_by_side(self, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """Return the results of an action for all items, in order; several run concurrently.

        Calls from within an action run sequentially.
        """
        # A thread of the pool must not wait for the pool: once all threads wait, none is left to do the work.
        if len(items) == 1 or getattr(_THREAD, "of_pool", False):
            return [act(item) for item in items]

        def inside(item: T) -> U:
            _THREAD.of_pool = True
            return act(item)

        return list(self._pool.map(inside, items))

    def known(self, kind: str, name: str, resolve: Callable[[], str | None]) -> str | None:
        """Return the id of a name, from the cache if it was resolved lately; concurrent calls share one request."""
        with self._knowing:
            handle = name if (kind, name) in self._exist else self._known.get((kind, name))
            if handle is not None:
                return handle
            first = (kind, name) not in self._resolving
            answer = self._resolving.setdefault((kind, name), Future())
        if first:
            self._resolve(kind, name, resolve, answer)
        return answer.result()

    def _resolve(self, kind: str, name: str, resolve: Callable[[], str | None], answer: Future[str | None]) -> None:
        """Ask the cloud for the id of a name, and give the answer or the error to all waiting callers."""
        try:
            handle = resolve()
        except BaseException as error:
            answer.set_exception(error)
            raise
        else:
            answer.set_result(handle)
            if handle is not None:
                with self._knowing:
                    self._known[kind, name] = handle
        finally:
            with self._knowing:
                del self._resolving[kind, name]

    def _remember(self, kind: str, handle: str, exists: bool) -> None:
        """Cache whether an object exists, as just seen, so that names of existing objects need no lookup."""
        with self._knowing:
            if exists:
                self._exist[kind, handle] = True
            else:
                self._exist.pop((kind, handle), None)
                self._known.pop((kind, handle), None)

    # -- the port ----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        collection = self.collections[kind]
        things = collection.complete(collection.observe(handles))
        for handle in handles:
            self._remember(kind, handle, handle in things)
        return [_seen(collection, things.get(handle), handle) for handle in handles]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        collection = self.collections[kind]
        things = collection.complete(collection.find(tokens))
        return [_seen(collection, things.get(token)) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        collection = self.collections.get(kind)
        if collection is None:
            return [None] * len(names)

        def resolve(name: str) -> str | None:
            try:
                return collection.resolve(name)
            except Missing:
                return None

        return [resolve(name) for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        collection = self.collections[kind]

        def make(intent: Creation) -> Answer:
            try:
                observation = _seen(collection, self._make(collection, intent))
                self._remember(kind, observation.handle, exists=True)
                return observation
            except Missing as error:
                return Terminal(str(error))
            except Uncertain as error:
                # Joining twice is harmless, so the retry need not wait until the lost request can no longer arrive.
                return Uncertain(str(error)) if isinstance(collection.token, Joined) else error
            except HomeostatError as error:
                return error

        outcomes = collection.create_many(intents)
        alone = [intent for intent in intents if intent.token not in outcomes]
        single = zip((intent.token for intent in alone), self.side_by_side(make, alone) if alone else (), strict=True)
        joint = {
            token: outcome if isinstance(outcome, HomeostatError) else _seen(collection, outcome)
            for token, outcome in outcomes.items()
        }
        answers = {**joint, **dict(single)}
        return [answers[intent.token] for intent in intents]

    def _make(self, collection: Collection, intent: Creation) -> Wire:
        try:
            return collection.create(intent.token, intent.spec)
        except Missing:
            # The specification may name an object whose cached id is outdated, since it was replaced under its name.
            with self._knowing:
                self._known.clear()
                self._exist.clear()
            return collection.create(intent.token, intent.spec)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        of = self.collections[kind]
        return self._answers(of, [(it.handle, partial(of.update, it.handle, it.spec, it.changed)) for it in changes])

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        of = self.collections[kind]
        for handle in handles:
            self._remember(kind, handle, exists=False)
        return self._answers(of, [(handle, partial(of.delete, handle)) for handle in handles], deleting=True)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        of = self.collections[kind]
        acts = [(it.handle, partial(of.operate, it.handle, it.verb, it.arguments)) for it in operations]
        deleted = [it for it in operations if it.verb == DELETE_WITH_PARTS]
        for it in deleted:
            deleted_handles = {kind: [it.handle], **it.arguments["parts"]}
            for of_kind, handle in ((part, handle) for part, handles in deleted_handles.items() for handle in handles):
                self._remember(of_kind, handle, exists=False)
        return self._answers(of, acts, deleting=bool(deleted))

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return self._watch(stop)

    def close(self) -> None:
        """Do nothing: `OpenStack` owns the connections."""

    def _answers(
        self, collection: Collection, acts: Sequence[tuple[str, Callable[[], Wire | None]]], deleting: bool = False
    ) -> list[Answer]:
        def act(item: tuple[str, Callable[[], Wire | None]]) -> Answer:
            handle, call = item
            try:
                thing = call()
                whole = thing if thing is None or deleting else collection.complete({handle: thing})[handle]
                return _seen(collection, whole, handle)
            except Missing as error:
                reason = f"there is no such {collection.kind}: {error}"
                return Observation(Presence.ABSENT, handle, seen_at=time.time(), reason=reason, not_found=deleting)
            except HomeostatError as error:
                return error

        return self.side_by_side(act, acts) if acts else []


def _seen(collection: Collection, thing: Wire | None, handle: str = "") -> Observation:
    """Return the observation of an object; None is absent. `_unseen` has the reason for an unknown presence."""
    now = time.time()
    if thing is None:
        return Observation(Presence.ABSENT, handle, seen_at=now, reason=f"there is no such {collection.kind}")
    if "_unseen" in thing:
        return Observation(Presence.UNKNOWN, handle, seen_at=now, reason=thing["_unseen"])
    unfinished = UNFINISHED in thing
    fields = collection.object_of({name: value for name, value in thing.items() if name != UNFINISHED})
    return Observation(Presence.PRESENT, str(fields["id"]), fields, now, unfinished=unfinished)
