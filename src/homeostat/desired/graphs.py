"""Desired graphs of stored revisions, for one shard each."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from homeostat.desired.cache import Cache
from homeostat.desired.compiling import Definitions, compile_desired, registry_of
from homeostat.desired.implied import graph_of, with_content, with_implied
from homeostat.desired.members import chain_members, group_members, shard_count
from homeostat.model.desired import Identity
from homeostat.store.stacks.contents import Address, Content, StoredContent

CACHE_MAX = 20_000
"""Definitions kept in memory. A worker needs its own shards, not whole stacks."""
TEXT_BYTES = 1_000
"""Bytes of the texts of a content that count as one definition more."""


V = TypeVar("V")


class ContentCache(Generic[V]):
    """Values made from contents: revisions of a stack with equal content share one. Safe to share between threads.

    A value counts with its size in definitions, and with the texts of its content: one resource may be large.
    """

    def __init__(self, size_max: int, size: Callable[[V], int]) -> None:
        self._size = size
        self._values: Cache[tuple[str, int, Address], tuple[V, int]] = Cache(size_max, itemgetter(1))
        self._addresses: Cache[tuple[str, int], Address] = Cache(size_max)

    def peek(self, stack_id: str, address: Address, shard: int = 0) -> V | None:
        """Return the value of a content; None if it is not in memory."""
        kept = self._values.peek((stack_id, shard, address))
        return None if kept is None else kept[0]

    def put(self, stack_id: str, address: Address, value: V, size: int) -> None:
        """Keep the value of a content that is about to be stored; `size` is that of the value."""
        self._values.put((stack_id, 0, address), _weighed(value, size, address))

    def get(
        self,
        stack_id: str,
        number: int,
        load: Callable[[], StoredContent],
        make: Callable[[Content], V],
        shard: int = 0,
    ) -> V:
        """Return the value of a revision; `load` reads the revision, and is called only if memory lacks the value."""
        # Revisions never change.
        known = self._addresses.peek((stack_id, number))
        value = None if known is None else self.peek(stack_id, known, shard)
        if value is not None:
            return value
        stored = load()
        address = stored.address
        self._addresses.put((stack_id, number), address)

        def made() -> tuple[V, int]:
            value = make(stored.decoded())
            return _weighed(value, self._size(value), address)

        return self._values.get((stack_id, shard, address), made)[0]


def _weighed(value: V, size: int, address: Address) -> tuple[V, int]:
    return value, size + address.bytes // TEXT_BYTES


class DesiredGraphs:
    """Cache of desired graphs by stack, shard and content. Safe to share between threads."""

    def __init__(self, cache_max: int = CACHE_MAX) -> None:
        """Begin empty; `cache_max` limits the number of definitions, and each graph counts as one more."""
        self._graphs: ContentCache[Definitions] = ContentCache(cache_max, lambda graph: 1 + len(graph))

    def get(self, identity: Identity, revision: int, shard: int, load: Callable[[], StoredContent]) -> Definitions:
        """Return the graph of a shard; `load` reads the revision, and is called only when the graph is not cached."""

        def compiled(content: Content) -> Definitions:
            return compile_graph(content, identity, shard)

        return self._graphs.get(identity.stack_id, revision, load, compiled, shard)


def compile_graphs(content: Content, identity: Identity) -> Iterator[Definitions]:
    """Yield the graph of each shard of a revision."""
    return (compile_graph(content, identity, shard) for shard in range(shard_count(content.group)))


def compile_graph(content: Content, identity: Identity, shard: int) -> Definitions:
    """Return the definitions of one shard.

    Raises:
        Rejected: The stored template does not compile any more.
    """
    group = content.group
    if group is not None:
        return group_members(group, shard, registry_of(content.environment), content.files)
    if content.kind == "empty" or shard > 0:
        return {}
    if content.kind == "chain":
        members = chain_members(content.template, registry_of(content.environment))
        return with_implied(with_content(members, content))
    return graph_of(compile_desired(content, identity), content)
