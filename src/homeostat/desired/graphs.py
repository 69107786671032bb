"""Desired graphs of stored revisions, for one shard each."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from homeostat.desired.cache import Cache
from homeostat.desired.compiling import Definitions, compile_desired, registry_of
from homeostat.desired.implied import graph_of, with_content, with_implied
from homeostat.desired.members import chain_members, group_members, shard_count
from homeostat.model.desired import Identity
from homeostat.store.stacks.contents import Content, StoredContent

CACHE_MAX = 20_000
"""Definitions kept in memory. A worker needs its own shards, not whole stacks."""


V = TypeVar("V")


class ContentCache(Generic[V]):
    """Values made from contents: revisions of a stack with equal content share one. Safe to share between threads."""

    def __init__(self, size_max: int, size: Callable[[V], int]) -> None:
        self._values: Cache[tuple[str, int, str], V] = Cache(size_max, size)
        self._addresses: Cache[tuple[str, int], str] = Cache(size_max)

    def peek(self, stack_id: str, address: str, shard: int = 0) -> V | None:
        """Return the value of a content; None if it is not in memory."""
        return self._values.peek((stack_id, shard, address))

    def put(self, stack_id: str, address: str, value: V) -> None:
        """Keep the value of a content that is about to be stored."""
        self._values.put((stack_id, 0, address), value)

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
        address = self._addresses.peek((stack_id, number))
        value = None if address is None else self.peek(stack_id, address, shard)
        if value is not None:
            return value
        stored = load()
        self._addresses.put((stack_id, number), stored.address)
        return self._values.get((stack_id, shard, stored.address), lambda: make(stored.decoded()))


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
