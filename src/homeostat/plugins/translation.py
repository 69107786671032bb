"""Translation rules, which convert the values of a template to the values for handlers, such as names to ids.

The order for one path is ADD, REPLACE, RESOLVE, DELETE. All rules but RESOLVE are applied before values are compared,
so that switching to a new property name is no change. RESOLVE needs the cloud: names become ids right before a handler
is called.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.plugins.exception import ResourcePropertyConflict, StackValidationFailed
from homeostat.resources.schema import UNKNOWN

Finder = Callable[["TranslationRule", Any], Any]
"""Resolves a name for a rule: (rule, name or id) -> id."""


class TranslationRule:
    """A rule.

    Args:
        properties: The properties of the resource.
        rule: A member of `RULE_KEYS`.
        translation_path: Path to the value.
        value: The new value. At most one of value, value_name and value_path is given.
        value_name: Name of a sibling property with the new value.
        value_path: Path, from the top, to the new value.
        client_plugin: The client for RESOLVE; None for the project's cloud.
        finder: Method of the client for RESOLVE.
        entity: Kind of object for RESOLVE.
        custom_value_path: Further path, inside the value, to the name for RESOLVE.
    """

    RULE_KEYS = (ADD, REPLACE, DELETE, RESOLVE) = ("Add", "Replace", "Delete", "Resolve")

    def __init__(
        self,
        properties: Any,
        rule: str,
        translation_path: Sequence[str],
        value: Any = None,
        value_name: str | None = None,
        value_path: Sequence[str] | None = None,
        client_plugin: Any = None,
        finder: str | None = None,
        entity: str | None = None,
        custom_value_path: Sequence[str] | None = None,
    ) -> None:
        self.properties = properties
        self.rule = rule
        self.translation_path = list(translation_path)
        self.value = value
        self.value_name = value_name
        self.value_path = list(value_path) if value_path else None
        self.client_plugin = client_plugin
        self.finder = finder
        self.entity = entity
        self.custom_value_path = list(custom_value_path) if custom_value_path else []
        self._check()

    def _check(self) -> None:
        if self.rule not in self.RULE_KEYS:
            raise ValueError(f"there is no rule {self.rule!r}: use one of {', '.join(self.RULE_KEYS)}")
        if not self.translation_path:
            raise ValueError("a rule needs a path")
        if sum(option is not None for option in (self.value, self.value_name, self.value_path)) > 1:
            raise ValueError("value, value_name and value_path exclude one another")
        if self.rule == self.ADD and not isinstance(self.value, list):
            raise ValueError("ADD needs a list as its value")
        if self.rule == self.RESOLVE and not self.finder:
            raise ValueError("RESOLVE needs a finder")

    @property
    def order(self) -> int:
        return (self.ADD, self.REPLACE, self.RESOLVE, self.DELETE).index(self.rule)


def translated(rules: Sequence[TranslationRule], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values after all rules except RESOLVE; a pure function.

    Raises:
        StackValidationFailed: The old and the new name of a property are both set, or a value has the wrong type.
    """
    result = _copy(values)
    for rule in sorted(rules, key=lambda rule: rule.order):
        if rule.rule != rule.RESOLVE:
            for holder in list(_holders(result, rule.translation_path[:-1])):
                _apply(rule, holder, result)
    return dict(result)


def resolved(rules: Sequence[TranslationRule], values: Mapping[str, Any], find: Finder) -> dict[str, Any]:
    """Return the values with names resolved to ids by `find`."""
    result = _copy(values)
    for rule in rules:
        if rule.rule == rule.RESOLVE:
            path = [*rule.translation_path, *rule.custom_value_path]
            for holder in list(_holders(result, path[:-1])):
                _resolve(rule, holder, path[-1], find)
    return dict(result)


def _holders(tree: Any, path: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the maps at a path, through every item of the lists on the way."""
    if isinstance(tree, list):
        for item in tree:
            yield from _holders(item, path)
    elif isinstance(tree, dict):
        if path:
            yield from _holders(tree.get(path[0]), path[1:])
        else:
            yield tree


def _apply(rule: TranslationRule, holder: dict[str, Any], top: dict[str, Any]) -> None:
    name = rule.translation_path[-1]
    if rule.rule == rule.DELETE:
        holder[name] = None
    elif rule.rule == rule.ADD:
        current = holder.get(name) or []
        if not isinstance(current, list):
            raise StackValidationFailed(message=f"{name} is no list: nothing can be added to it")
        holder[name] = [*current, *rule.value]
    else:
        _replace(rule, holder, top, name)


def _replace(rule: TranslationRule, holder: dict[str, Any], top: dict[str, Any], name: str) -> None:
    if rule.value is not None:
        holder[name] = rule.value
        return
    source, old = holder, rule.value_name or ""
    if rule.value_path:
        top_holder = next(_holders(top, rule.value_path[:-1]), None)
        source, old = top_holder if top_holder is not None else {}, rule.value_path[-1]
    value = source.get(old)
    if value is None:
        return
    if holder.get(name) not in (None, value, UNKNOWN):
        raise ResourcePropertyConflict(name, old)
    holder[name] = value
    source[old] = None


def _resolve(rule: TranslationRule, holder: dict[str, Any], name: str, find: Finder) -> None:
    value = holder.get(name)
    if isinstance(value, list):
        holder[name] = [find(rule, item) if item is not None else None for item in value]
    elif value is not None and value != "":
        holder[name] = find(rule, value)


def _copy(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: _copy(item) for name, item in tree.items()}
    return [_copy(item) for item in tree] if isinstance(tree, list) else tree
