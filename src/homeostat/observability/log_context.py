"""Context of log lines: stack, shard and resources, which the formatters add to each line."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NAMED_MAX = 5
_FIELDS: ContextVar[Mapping[str, str | int]] = ContextVar("homeostat_log_fields", default=MappingProxyType({}))


def fields() -> Mapping[str, str | int]:
    """Return the fields of the current context: `stack` (id), `shard` (number), `resource` (names), where known."""
    return _FIELDS.get()


@contextlib.contextmanager
def about(**more: str | int) -> Iterator[None]:
    """Add fields to log lines inside the block. A new thread has no fields: pass it `fields()`."""
    before = _FIELDS.set({**_FIELDS.get(), **more})
    try:
        yield
    finally:
        _FIELDS.reset(before)


def named(names: Iterable[str]) -> str:
    """Join the first few names of a batch, which may have a thousand, with the number of the rest."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _NAMED_MAX} more" if len(distinct) > _NAMED_MAX else ""
    return ", ".join(distinct[:_NAMED_MAX]) + more
