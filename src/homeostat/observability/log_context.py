"""What a line of the log is about, beside its text: the stack, the shard, the resource it speaks of.

The formatters of the log add it; who logs need not repeat it.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NAMED_MAX = 5
_FIELDS: ContextVar[Mapping[str, str | int]] = ContextVar("homeostat_log_fields", default=MappingProxyType({}))


def fields() -> Mapping[str, str | int]:
    """The fields that hold here: `stack` (id), `shard` (number), `resource` (names), as far as they are known."""
    return _FIELDS.get()


@contextlib.contextmanager
def about(**more: str | int) -> Iterator[None]:
    """What is logged inside is about these too. Another thread starts without them: hand it `fields()`."""
    before = _FIELDS.set({**_FIELDS.get(), **more})
    try:
        yield
    finally:
        _FIELDS.reset(before)


def named(names: Iterable[str]) -> str:
    """Some names in one field: a batch may be of a thousand."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _NAMED_MAX} more" if len(distinct) > _NAMED_MAX else ""
    return ", ".join(distinct[:_NAMED_MAX]) + more
