"""Evaluation of YAQL expressions, bounded in steps, sizes and depth, and deterministic.

The library bounds the result of each of its functions. This module bounds their combination: the steps of the
evaluation, values that share their parts and so grow exponentially, and intermediate results. A step is about a tenth
of a millisecond. A call of a function is one step; further work that takes time (iterated items, values that may be
compared part by part) counts as a fraction of a step, so no expression runs long with few steps. Functions whose value
depends on the time, the process or the machine are removed, and sets are put in a fixed order.
"""

import collections.abc  # the library uses it without importing it
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import yaql
from yaql.language import contexts, exceptions, expressions, specs, utils

from homeostat.templates import tree
from homeostat.templates.weights import Unacceptable
from homeostat.templates.yaml_parser import DEPTH_MAX
from homeostat.templates.yaql_functions import FUNCTIONS, MEMORY_MAX

ITERATORS_MAX = 200
"""Most items of one iteration (Heat's option `limit_iterators`)."""
STEPS_MAX = 10_000
"""Most steps of one evaluation: about a second."""
_STEP = 100
"""Units of work of one step, a call of a function or operator; a unit is about a microsecond."""
_ITEM = 3
"""Units of work of an item that is iterated, or passed to an expression."""
_PARTS = 10
"""Number of parts of a value that are compared, hashed or copied in one unit of work."""
WEIGHT_MAX = 1_000_000
"""Most values and characters within one value, shared ones counted each time."""
EXPRESSION_MAX = 10_000
"""Longest expression, in characters."""
_MESSAGE_MAX = 500
"""Longest error message, in characters: the library repeats values in full."""
_LEFT_OUT = ("random", "now", "localtz")
"""Functions that are removed because their value differs from call to call, or from machine to machine."""
_ERRORS = (
    exceptions.YaqlException,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)

_TOO_MUCH = (
    Unacceptable,
    exceptions.CollectionTooLargeException,
    exceptions.MemoryQuotaExceededException,
    MemoryError,
    RecursionError,
)


@lru_cache(maxsize=256)
def parsed(expression: str) -> Any:
    """Parse an expression; the result may be evaluated by several threads at once.

    Raises:
        Unacceptable: The expression is too long, wrong or empty.
    """
    if len(expression) > EXPRESSION_MAX:
        raise Unacceptable(f"the expression is longer than {EXPRESSION_MAX} characters")
    engine = _engine()
    try:
        # Parser and lexer are stateful, so each thread needs copies.
        tree = copy.copy(engine.parser).parse(expression, lexer=engine.lexer.clone())
    except (exceptions.YaqlException, ValueError, RecursionError) as error:
        raise Unacceptable(f"the expression cannot be read: {error}") from error
    if tree is None:
        raise Unacceptable("the expression is empty")
    return expressions.Statement(tree, engine)


def evaluated(
    expression: str, data: Any, left: int = STEPS_MAX, took: Callable[[int], None] = lambda _: None
) -> tuple[Any, int]:
    """Evaluate an expression.

    Args:
        data: Plain data, `$.data` in the expression.
        left: Steps left for all queries of the template.
        took: Called with the steps taken by the evaluation, even if it fails.

    Returns:
        The value as plain data, and the steps taken.

    Raises:
        ValueError: The expression has no value for this data; the message says why.
        Unacceptable: The evaluation exceeds a limit.
    """
    statement = parsed(expression)
    budget = _Budget(left)
    try:
        value = statement.evaluate(data={"data": data}, context=_Bounded(_library(), budget=budget))
        return _Plain(budget).of(value), budget.taken
    except _ERRORS as error:
        kind = Unacceptable if isinstance(error, _TOO_MUCH) else ValueError
        raise kind(_message(error)[:_MESSAGE_MAX]) from error
    finally:
        took(budget.taken)


def _message(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no key {error}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, StopIteration | LookupError) and not isinstance(error, exceptions.YaqlException):
        return "there is no such item"
    if isinstance(error, exceptions.YaqlException | ValueError | ArithmeticError):
        return str(error)
    return f"{type(error).__name__}: {error}"


class _Budget:
    """Budget of one evaluation."""

    def __init__(self, left: int) -> None:
        """Start with the steps left for all queries of the template."""
        self._left = left
        self._work = 0
        self._known: dict[int, tuple[Any, _Measure]] = {}
        """Identity of a value -> the value and its measure; the value is stored to prevent reuse of its identity."""

    @property
    def taken(self) -> int:
        """Steps taken so far, rounded up."""
        return -(-self._work // _STEP)

    def spend(self, steps: int) -> None:
        self.work(steps * _STEP)

    def work(self, units: int) -> None:
        self._work += units
        if self._work > STEPS_MAX * _STEP:
            raise Unacceptable(f"it takes more than {STEPS_MAX} steps")
        if self._work > self._left * _STEP:
            raise Unacceptable(f"the queries of the template take more than {tree.QUERY_STEPS_MAX} steps together")

    def checked(self, value: Any) -> Any:
        """Charge for a value, and return it.

        Iterators are wrapped, so that each item is charged when taken; sets get a fixed order.

        Raises:
            Unacceptable: The value is too large or nested too deeply, or the budget is exhausted.
        """
        if isinstance(value, frozenset) and type(value) is not _OrderedSet:
            value = _OrderedSet(value)
        if isinstance(value, collections.abc.Iterator) and iter(value) is value:
            return self._walked(value)
        measure = self._measured(value)
        if measure.weight > WEIGHT_MAX:
            raise Unacceptable(f"it makes a value of more than {WEIGHT_MAX} parts and characters")
        if measure.depth > DEPTH_MAX:
            raise Unacceptable(f"it makes a value nested more than {DEPTH_MAX} levels deep")
        self.work(measure.parts // _PARTS)
        return value

    def _walked(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the same items, each charged when it is taken."""
        for item in items:
            self.work(_ITEM + self._measured(item).parts // _PARTS)
            yield item

    def _measured(self, value: Any) -> "_Measure":
        if isinstance(value, str):
            return _Measure(1 + len(value), 0, 1 + len(value) // 100)
        if not isinstance(value, list | tuple | frozenset | set | collections.abc.Mapping):
            return _ONE
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        weight, depth, parts = 1, 0, 1
        for part in _parts(value):
            below = self._measured(part)
            weight, depth, parts = weight + below.weight, max(depth, below.depth), parts + below.parts
            # The value is refused anyway; walking on could take exponential time in values that share their parts.
            if weight > WEIGHT_MAX:
                break
        measure = _Measure(weight, depth + 1, parts)
        self._known[id(value)] = (value, measure)
        return measure


class _Measure(NamedTuple):
    """Size of a value.

    Attributes:
        weight: Values and characters, shared ones counted each time.
        depth: Levels of collections.
        parts: Values, shared ones counted each time, and hundreds of characters.
    """

    weight: int
    depth: int
    parts: int


_ONE = _Measure(1, 0, 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, collections.abc.Mapping):
        yield from value
        yield from value.values()
    else:
        yield from value


class _OrderedSet(frozenset[Any]):
    """A set that is iterated in the same order in every process."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=lambda item: (type(item).__name__, str(item))))

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"


class _Bounded(contexts.Context):  # type: ignore[misc]
    """A context that charges a budget.

    Every call of a function or operator goes through the context, and every call of an expression creates a child.
    """

    def __init__(self, parent: Any, budget: _Budget | None = None) -> None:
        super().__init__(parent)
        self.budget: _Budget = parent.budget if budget is None else budget
        self.budget.work(_ITEM)

    def __call__(self, *names: Any, **options: Any) -> Callable[..., Any]:
        call = super().__call__(*names, **options)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.budget.spend(1)
            return self.budget.checked(call(*arguments, **named))

        return counted


@cache
def _engine() -> Any:
    return yaql.YaqlFactory().create({"yaql.limitIterators": ITERATORS_MAX, "yaql.memoryQuota": MEMORY_MAX})


@cache
def _library() -> Any:
    """Return a context with the functions of the library without `_LEFT_OUT`, overridden by `FUNCTIONS`."""
    context = yaql.create_context(regex=False, yaqlized=False, finalizer=specs.name("#finalize")(_same))
    layer = context
    while layer is not None:
        for name in _LEFT_OUT:
            for spec in layer.get_functions(name)[0]:
                layer.delete_function(spec)
        layer = layer.parent
    ours = context.create_child_context()
    for function in FUNCTIONS:
        ours.register_function(function)
    return ours


def _same(value: Any) -> Any:
    return value


class _Plain:
    """Conversion of the result of an evaluation into plain data, charged to the budget."""

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget
        self._weight = 0

    def of(self, value: Any, depth: int = 0) -> Any:
        """Convert a value.

        Raises:
            ValueError: The value is not plain data, or exceeds a limit.
        """
        self._budget.work(1)
        self._weight += 1 + (len(value) if isinstance(value, str) else 0)
        if self._weight > WEIGHT_MAX:
            raise Unacceptable(f"it makes a value of more than {WEIGHT_MAX} parts and characters")
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            if value - value != 0:  # NaN and infinity
                raise ValueError("it gives a number that is not finite")
            return value
        if depth > DEPTH_MAX:
            raise ValueError(f"it gives a value nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, Mapping):
            return {_key(key): self.of(item, depth + 1) for key, item in value.items()}
        if isinstance(value, Iterable):
            return [self.of(item, depth + 1) for item in utils.limit_iterable(value, ITERATORS_MAX)]
        raise ValueError(f"it gives a {type(value).__name__}, which is no plain data: turn it into text with str()")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float):
        return str(key).lower()
    raise ValueError(f"it gives a map with a key that is no text: {key!r}")
