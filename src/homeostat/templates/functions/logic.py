"""Conditions and the choice between two snippets."""

from typing import Any, ClassVar, Final

from homeostat.templates.tree import UNKNOWN, Function


class Omitted:
    """Placeholder for a snippet that is left out: the map or list around it loses the item."""

    def __repr__(self) -> str:
        return "(omitted)"


OMIT: Final = Omitted()


class If(Function):
    """One of two snippets, depending on whether a condition holds; the unused snippet is not evaluated."""

    form: ClassVar[str] = "[condition_name, value_if_true, value_if_false]"
    lengths: ClassVar[tuple[int, ...]] = (3,)

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) not in self.lengths:
            raise ValueError(f'Arguments to "{self.name}" must be of the form: {self.form}')


class IfOrOmit(If):
    """One of two snippets, depending on whether a condition holds; without a second one the item is left out."""

    form: ClassVar[str] = "[condition_name, value_if_true, (value_if_false)]"
    lengths: ClassVar[tuple[int, ...]] = (2, 3)


class Equals(Function):
    """Whether two values are equal."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form: [value_1, value_2]')

    def guess(self, arguments: Any) -> Any:
        """Return False if the known parts differ: then the values differ, whatever the unknown parts are."""
        pair = isinstance(arguments, list) and len(arguments) == 2
        return False if pair and _differ(*arguments) else UNKNOWN

    def apply(self, arguments: Any) -> Any:
        return arguments[0] == arguments[1]


def _differ(first: Any, second: Any) -> bool:
    """Return whether the known parts of two values differ."""
    if first is UNKNOWN or second is UNKNOWN:
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() != second.keys() or any(_differ(item, second[key]) for key, item in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) != len(second) or any(map(_differ, first, second))
    return bool(first != second)


class Combination(Function):
    """A function whose arguments are conditions: their names, booleans or condition functions."""


class Not(Combination):
    """Whether a condition does not hold."""

    def check(self, arguments: Any) -> None:
        if isinstance(arguments, list):
            raise ValueError(f'Arguments to "{self.name}" must be of the form: condition')

    def apply(self, arguments: Any) -> Any:
        return not arguments


class And(Combination):
    """Whether all conditions hold."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) < 2:
            raise ValueError(f'The minimum number of condition arguments to "{self.name}" is 2.')

    def guess(self, arguments: Any) -> Any:
        return False if any(argument is False for argument in arguments) else UNKNOWN

    def apply(self, arguments: Any) -> Any:
        return all(arguments)


class Or(And):
    """Whether at least one condition holds."""

    def guess(self, arguments: Any) -> Any:
        return True if any(argument is True for argument in arguments) else UNKNOWN

    def apply(self, arguments: Any) -> Any:
        return any(arguments)
