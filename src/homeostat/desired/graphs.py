"""Desired graphs of stored revisions, for one shard each.

Graphs are cached by the address of their content: revisions of equal content share one graph.
"""

from collections.abc import Callable, Iterator
from functools import cache

from homeostat.desired.cache import Cache
from homeostat.desired.compiling import Definitions, compile_desired, registry_of
from homeostat.desired.implied import graph_of, with_content, with_implied
from homeostat.desired.members import chain_members, group_members, shard_count
from homeostat.model.desired import Identity
from homeostat.store.stacks.contents import Content, StoredContent

CACHE_MAX = 20_000
"""Definitions kept in memory. A worker needs its own shards, not whole stacks."""


class DesiredGraphs:
    """Cache of desired graphs by stack, shard and content. Safe to share between threads."""

    def __init__(self, cache_max: int = CACHE_MAX) -> None:
        """Begin empty; `cache_max` limits the number of definitions, and each graph counts as one more."""
        self._cache: Cache[tuple[Identity, int, str], Definitions] = Cache(cache_max, lambda graph: 1 + len(graph))
        self._addresses: Cache[tuple[str, int], str] = Cache(cache_max)

    def get(self, identity: Identity, revision: int, shard: int, load: Callable[[], StoredContent]) -> Definitions:
        """Return the graph of a shard; `load` reads the revision, and is called only when the graph is not cached."""
        read = cache(load)
        # Revisions never change.
        address = self._addresses.get((identity.stack_id, revision), lambda: read().address)
        return self._cache.get((identity, shard, address), lambda: compile_graph(read().decoded(), identity, shard))


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
