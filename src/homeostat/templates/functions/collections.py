"""Functions that return lists and maps."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Any

from homeostat.templates.functions.strings import TEXT_MAX, checked_items, checked_size, json_text, shown
from homeostat.templates.tree import DynamicMap, Function, is_dynamic
from homeostat.templates.weights import weight


class Repeat(Function):
    """A list with the template once for each item of a list, or for each combination of the items of several lists."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, dict) or not {"template", "for_each"} <= arguments.keys():
            raise ValueError(f'Arguments to "{self.name}" must be a map with keys "template" and "for_each"')
        if not isinstance(arguments["for_each"], dict | Function) or not arguments["for_each"]:
            raise ValueError(f'The "for_each" of "{self.name}" must be a map of variables to lists')

    def apply(self, arguments: Any) -> Any:
        variables = list(arguments["for_each"])
        lists = [self.items(variable, items) for variable, items in arguments["for_each"].items()]
        result = []
        size = 0
        for row in self.rows(arguments, lists):
            result.append(self.replaced(arguments["template"], list(zip(variables, row, strict=True))))
            size += weight(result[-1], TEXT_MAX)
            checked_size(self.name, size)
        return result

    def items(self, variable: str, value: Any) -> list[str]:
        """Return the items that `variable` runs through."""
        if value is not None and not isinstance(value, list):
            raise ValueError(f'The values of "{variable}" in "{self.name}" must be a list')
        return self.strings(variable, value or ())

    def strings(self, variable: str, items: Iterable[Any]) -> list[str]:
        strings = []
        for item in items:
            if not isinstance(item, str):
                raise ValueError(f'The values of "{variable}" in "{self.name}" must be strings, not {shown(item)}')
            strings.append(item)
        return strings

    def rows(self, arguments: Any, lists: list[list[str]]) -> Iterable[tuple[str, ...]]:
        checked_items(self.name, prod(map(len, lists)))
        return product(*lists)

    def replaced(self, template: Any, row: list[tuple[str, str]]) -> Any:
        """Return `template` with each variable replaced in every text, keys of maps included."""
        if isinstance(template, dict):
            return {self.replaced(key, row): self.replaced(value, row) for key, value in template.items()}
        if isinstance(template, list):
            return [self.replaced(item, row) for item in template]
        if not isinstance(template, str):
            return template
        for variable, item in row:
            checked_size(self.name, len(template) + template.count(variable) * len(item))
            template = template.replace(variable, item)
        return template


class RepeatMaps(Repeat):
    """A list with the template once for each item of a list or key of a map, or for each combination of several."""

    def items(self, variable: str, value: Any) -> list[str]:
        return super().items(variable, list(value) if isinstance(value, dict) else value)


class RepeatZip(RepeatMaps):
    """A list with the template once for each combination; with `permutations: false` the lists are read in parallel."""

    def rows(self, arguments: Any, lists: list[list[str]]) -> Iterable[tuple[str, ...]]:
        permutations = arguments.get("permutations", True)
        if not isinstance(permutations, bool):
            raise ValueError(f'"permutations" in "{self.name}" must be a boolean')
        if permutations:
            return super().rows(arguments, lists)
        if any(isinstance(value, dict) for value in arguments["for_each"].values()):
            raise ValueError(f'"{self.name}" without permutations takes lists, not maps')
        if len(set(map(len, lists))) > 1:
            raise ValueError(f'"{self.name}" without permutations takes lists of the same length')
        return zip(*lists, strict=True)


class MapMerge(Function):
    """Several maps merged into one; later ones win."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list):
            raise ValueError(f'Arguments to "{self.name}" must be a list of maps')

    def compiled(self) -> Any:
        # Merging needs the keys only, so maps can be merged before their values are known.
        if isinstance(self.arguments, list) and all(item is None or isinstance(item, dict) for item in self.arguments):
            merged = self.guarded(self.apply, self.arguments)
            return DynamicMap(merged) if any(map(is_dynamic, merged.values())) else merged
        return super().compiled()

    def apply(self, arguments: Any) -> Any:
        merged: dict[str, Any] = {}
        for item in arguments:
            if item is not None and not isinstance(item, dict):
                raise ValueError(f'"{self.name}" merges maps, not {shown(item)}')
            merged.update(item or {})
        return merged


class MapReplace(Function):
    """A map with keys renamed and values replaced."""

    def check(self, arguments: Any) -> None:
        form = f'Arguments to "{self.name}" must be of the form [map, {{keys: map, values: map}}]'
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(form)
        if isinstance(arguments[1], Function):
            return
        if not isinstance(arguments[1], dict) or not arguments[1] or not arguments[1].keys() <= {"keys", "values"}:
            raise ValueError(form)

    def apply(self, arguments: Any) -> Any:
        source, replace = arguments[0] or {}, arguments[1]
        keys, values = replace.get("keys") or {}, replace.get("values") or {}
        if not all(isinstance(item, dict) for item in (source, keys, values)):
            raise ValueError(f'"{self.name}" takes maps only')
        result: dict[str, Any] = {}
        for key, value in source.items():
            renamed = keys.get(key, key)
            if not isinstance(renamed, str):
                raise ValueError(f'"{self.name}": the new name of key "{key}" must be a string')
            if renamed in result or (renamed != key and renamed in source):
                raise ValueError(f'"{self.name}": key "{renamed}" would be there twice')
            result[renamed] = values.get(_as_key(value), value)
        return result


def _as_key(value: Any) -> str | None:
    """Return the text form of `value` as a key of a map; None if `value` cannot be a key."""
    if isinstance(value, str):
        return value
    return json_text(value) if isinstance(value, int | float) else None


class ListConcat(Function):
    """Several lists concatenated into one."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list):
            raise ValueError(f'Arguments to "{self.name}" must be a list of lists')

    def apply(self, arguments: Any) -> Any:
        return list(self.items(arguments))

    def items(self, lists: list[Any]) -> Iterator[Any]:
        for items in lists:
            if items is not None and not isinstance(items, list):
                raise ValueError(f'"{self.name}" takes lists, not {shown(items)}')
        count = sum(len(items or ()) for items in lists)
        checked_items(self.name, count)
        for items in lists:
            yield from items or ()


class ListConcatUnique(ListConcat):
    """Several lists concatenated into one; only the first of equal values is kept."""

    def apply(self, arguments: Any) -> Any:
        unique: dict[Any, Any] = {}
        for item in self.items(arguments):
            unique.setdefault(_identity(item), item)
        return list(unique.values())


def _identity(item: Any) -> Any:
    """Return a hashable key, equal for equal items."""
    return (json_text(item),) if isinstance(item, dict | list) else item


class Filter(Function):
    """A list without the given values."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [values, list]')

    def apply(self, arguments: Any) -> Any:
        values, items = arguments
        if not all(items is None or isinstance(items, list) for items in arguments):
            raise ValueError(f'"{self.name}" takes two lists')
        if not values or not items:
            return items
        removed = set(map(_identity, values))
        return [item for item in items if _identity(item) not in removed]


class Contains(Function):
    """Whether a list contains a value, or a text contains another."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [value, sequence]')

    def apply(self, arguments: Any) -> Any:
        value, sequence = arguments
        if not isinstance(sequence, list | str):
            raise ValueError(f'"{self.name}" searches a list or a string, not {shown(sequence)}')
        if isinstance(sequence, str) and not isinstance(value, str):
            raise ValueError(f'"{self.name}" searches a string for a string, not for {shown(value)}')
        return value in sequence
