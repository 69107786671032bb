"""The resources of a stack, read in parts: no transaction is open between two parts."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, dropwhile, islice
from typing import Any, TypeVar

from homeostat.api.context import RequestContext
from homeostat.api.orchestration.inventory import Entry, Inventory
from homeostat.model.errors import Rejected
from homeostat.services.graphs import Graph
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import stacks, views

READ_BYTES = 4 * 1024 * 1024
"""Bytes of properties and metadata that are read at once, approximately."""
READ_FIRST = 32
"""Resources of the first part of a long list, so that its first byte is sent early. The parts double in size."""
READ_MAX = views.NAMES_MAX
"""Resources that are read at once."""
SHOWN_MAX = 16 * 1024 * 1024
"""A part ends once the members and outputs of its nested stacks have this weight."""
T = TypeVar("T")
Show = Callable[[Inventory, Entry], T]
Loaded = tuple[StackRow, Graph]


def some_at_a_time(
    context: RequestContext, stack_id: str, show: Show[T], after: str = "", only: Collection[str] = ()
) -> Iterator[T]:
    """Yield the result of `show` for each resource of a stack. Many or large resources are read in parts.

    A concurrent change of the stack shows in the parts that are read later.

    Args:
        stack_id: The stack; if it is gone, nothing is yielded.
        show: Builds the result for a resource, within the transaction that read the resource.
        after: Name of the resource after which to begin; "" for all.
        only: Names of the resources; empty for all.

    Raises:
        Rejected: HTTPBadRequest: The resource `after` is gone.
    """
    with context.db.read() as tx:
        loaded = _loaded(context, tx, stack_id)
        if loaded is None:
            return
        _, graph = loaded
        if after:
            _check_there(tx, stack_id, graph, after)
        results: list[T] = []
        if not only and _is_small(tx, stack_id, graph):
            results, left = _part(Inventory(tx, *loaded), show, after)
            names: Iterator[str] = iter(left)
        else:
            names = (name for name in _names(context, stack_id, graph.definitions, after) if not only or name in only)
    yield from results
    results.clear()
    yield from _by_name(context, stack_id, names, show)


def _by_name(context: RequestContext, stack_id: str, names: Iterator[str], show: Show[T]) -> Iterator[T]:
    most, ahead = READ_FIRST, list[str]()
    while ahead := [*ahead, *islice(names, max(0, min(most, READ_MAX) - len(ahead)))]:
        with context.db.read() as tx:
            loaded = _loaded(context, tx, stack_id)
            if loaded is None:
                return
            count = _fitting(tx, stack_id, loaded[1], ahead)
            results, left = _part(Inventory(tx, *loaded, ahead[:count]), show)
        yield from results
        results.clear()
        ahead = [*left, *ahead[count:]]
        most = 2 * count


def _loaded(context: RequestContext, tx: Transaction, stack_id: str) -> Loaded | None:
    """Return the stack and its graph; None if the stack is gone."""
    stack = stacks.get(tx, stack_id)
    return (stack, context.service.graphs.wanted(tx, stack)) if stack is not None else None


def _check_there(tx: Transaction, stack_id: str, graph: Graph, name: str) -> None:
    if name not in graph.definitions and not views.stored_bytes(tx, stack_id, [name]):
        message = f"the marker's resource {name} is gone: begin with the first page"
        raise Rejected("HTTPBadRequest", message)


def _is_small(tx: Transaction, stack_id: str, graph: Graph) -> bool:
    """Return whether all resources are read at once."""
    return (
        len(graph.definitions) <= READ_MAX
        and views.are_few(tx, stack_id, READ_MAX)
        and sum(views.stored_bytes(tx, stack_id).values()) <= READ_BYTES
    )


def _part(inventory: Inventory, show: Show[T], after: str = "") -> tuple[list[T], list[str]]:
    """Return the results for the loaded resources, up to `SHOWN_MAX`, and the names of the remaining ones."""
    entries = inventory.entries()
    if after:
        entries = list(islice(dropwhile(lambda entry: entry.name != after, entries), 1, None))
    results: list[T] = []
    for entry in entries:
        if inventory.weight >= SHOWN_MAX:
            break
        results.append(show(inventory, entry))
    return results, [entry.name for entry in entries[len(results) :]]


def _names(context: RequestContext, stack_id: str, wanted: Mapping[str, Any], after: str) -> Iterator[str]:
    """Yield the names of all resources in their order; names of a group's members are made on demand."""

    def others() -> Iterator[str]:
        with context.db.read() as tx:
            further = views.other_names(tx, stack_id, wanted)
        yield from further

    if not after:
        return chain(wanted, others())
    if after not in wanted:
        return (name for name in others() if name > after)
    return chain(islice(dropwhile(lambda name: name != after, wanted), 1, None), others())


def _fitting(tx: Transaction, stack_id: str, graph: Graph, names: Sequence[str]) -> int:
    """Return how many of these resources to read at once."""
    sizes = views.stored_bytes(tx, stack_id, names, graph.shards_of(names))
    total = 0
    for count, name in enumerate(names):
        total += sizes.get(name, 0)
        if total > READ_BYTES:
            return max(count, 1)
    return len(names)
