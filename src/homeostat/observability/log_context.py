"""Context of log lines: the stack, the shard and the resources that they are about.

The formatters add it to each line, so that the text need not repeat it.
"""

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
    """Add fields to what is logged inside the block.

    Another thread starts without them: hand it `fields()`.
    """
    before = _FIELDS.set({**_FIELDS.get(), **more})
    try:
        yield
    finally:
        _FIELDS.reset(before)


def named(names: Iterable[str]) -> str:
    """Return the first few names as one field: a batch may have a thousand."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _NAMED_MAX} more" if len(distinct) > _NAMED_MAX else ""
    return ", ".join(distinct[:_NAMED_MAX]) + more
