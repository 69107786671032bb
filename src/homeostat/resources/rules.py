"""Rules across properties that several types share. Values may be `schema.UNKNOWN`, which counts as given."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeostat.model.errors import Rejected, invalid


def is_set(values: Mapping[str, Any], name: str) -> bool:
    """Return whether a property has a value that is neither null nor empty."""
    value = values.get(name)
    return value is not None and value not in ("", [], {})


def conflict(path: Sequence[str | int], *names: str) -> Rejected:
    listed = ", ".join(names)
    return invalid(
        f"Cannot define the following properties at the same time: {listed}",
        *path,
        error="ResourcePropertyConflict",
    )


def at_most_one(values: Mapping[str, Any], path: Sequence[str | int], *names: str) -> None:
    """Check that at most one of the properties `names` is given.

    Raises:
        Rejected: Several are given; the message names them.
    """
    provided = [name for name in names if is_set(values, name)]
    if len(provided) > 1:
        raise conflict(path, *provided)


def exactly_one(values: Mapping[str, Any], path: Sequence[str | int], *names: str) -> None:
    """Check that exactly one of the properties `names` is given.

    Raises:
        Rejected: None or several are given.
    """
    at_most_one(values, path, *names)
    if not any(is_set(values, name) for name in names):
        raise missing(path, *names)


def missing(path: Sequence[str | int], *names: str) -> Rejected:
    listed = ", ".join(names)
    return invalid(f"One of these properties is needed: {listed}", *path, error="Property error")


def apart_in_more_than_case(values: Mapping[str, Any], name: str, path: Sequence[str | int]) -> None:
    """Check that no two texts of a list differ in case alone.

    Services whose database treats such texts as equal fail without any error: Nova would build the server forever.

    Raises:
        Rejected: Two texts do; the message names them.
    """
    items = values.get(name)
    known: dict[str, Any] = {}
    for item in items if isinstance(items, list) else ():
        other = known.setdefault(str(item).lower(), item)
        require(
            other == item, f"{other} and {item} differ in case alone, which the service cannot store", (*path, name)
        )


def require(rule: bool, message: str, path: Sequence[str | int]) -> None:
    """Check that a rule holds.

    Raises:
        Rejected: `Property error` with this message: the rule does not hold.
    """
    if not rule:
        raise invalid(message, *path, error="Property error")


def maps(values: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (index, item) for the items of a list of maps that are known."""
    items = values.get(name)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping):
            yield index, item
