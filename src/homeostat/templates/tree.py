"""Compiled snippets of a template, and how to evaluate them.

A tree is plain data (dict, list, text, numbers, booleans, None) in which function nodes stand for what other resources
will tell. A dict or list with a node somewhere within is a `DynamicMap` or `DynamicList`; all else is static and is
given back by `evaluate` as it is, without being walked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from homeostat.model.errors import invalid
from homeostat.templates.weights import TooHeavy, weight

Path = tuple[str | int, ...]


class Unknown:
    """Stands for the value of a parameter that was not given, where that is no error (validation)."""

    def __repr__(self) -> str:
        return "(not known yet)"


UNKNOWN: Final = Unknown()


class Scope(Protocol):
    """What the resources of one stack say at the moment.

    unknown — the object that stands for values not known yet: a function of it is it again. None where what is not
    known is null, as at run time. Names are those of resources that are in the graph (their condition holds).
    """

    @property
    def unknown(self) -> Any: ...

    def reference(self, resource: str) -> Any:
        """Value of `get_resource`."""

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        """Value of `get_attr`, path followed: groups hand it on to their members, others use `traverse`."""

    def attributes(self, resource: str) -> Any:
        """Value of `get_attr` with only a resource: name -> value of all attributes but `show`."""


class DynamicMap(dict[str, Any]):
    """A map with a function node within."""

    __slots__ = ()


class DynamicList(list[Any]):
    """A list with a function node within."""

    __slots__ = ()


MADE_MAX = 64 * 1024 * 1024
"""Weight of what the functions of one template may give while it is compiled, all together."""
VALUE_MAX = 4 * 1024 * 1024
"""Weight of what the functions of one resource or output may give at run time, all together."""


QUERY_STEPS_MAX = 30_000
"""Steps of all queries of one template, or of the templates that are compiled together: about three seconds."""


class QuerySteps:
    """Steps that the queries of one template take.

    apart — each query has its own place, and counts as it did last, however often it is evaluated.
    """

    def __init__(self, *, apart: bool) -> None:
        self._apart = apart
        self._taken: dict[Path, int] = {}

    def left(self, place: Path) -> int:
        """That the query at this place may take now."""
        mine = self._taken.get(place, 0) if self._apart else 0
        return max(QUERY_STEPS_MAX - sum(self._taken.values()) + mine, 0)

    def take(self, place: Path, steps: int) -> None:
        if self._apart:
            self._taken[place] = steps
        else:
            self._taken[()] = self._taken.get((), 0) + steps


class Allowance:
    """What the functions of one template may still give while it is compiled. Once it is, each resource and each output
    has an allowance of its own, whenever it is evaluated."""

    def __init__(self) -> None:
        self._left = MADE_MAX
        self._open = True
        self.steps = QuerySteps(apart=False)

    def spend(self, size: int) -> None:
        """Fails: Overweight when all is spent."""
        if self._open:
            self._left -= size
            if self._left < 0:
                raise TooHeavy(f"the functions of the template make more than {MADE_MAX} values and characters")

    def take(self, value: Any) -> Any:
        """The same value, which weighs something. Fails: Overweight when all is spent, ValueError when it is deep."""
        if self._open:
            try:
                self.spend(weight(value, self._left))
            except TooHeavy:
                self.spend(MADE_MAX)
        return value

    def close(self) -> None:
        self._open = False
        self.steps = QuerySteps(apart=True)


@dataclass(frozen=True, slots=True)
class Context:
    """What the functions of one template may see while they are compiled.

    parameters — values by name, pseudo parameters included; mappings — the section of CFN templates; resources —
    name -> its condition holds; facade — the
    sections of the resource in the parent template that this template stands for, if it is one; unknown — `UNKNOWN`
    where parameters may be missing, else None; allowance — what they may make.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    mappings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, bool] = field(default_factory=dict)
    facade: Mapping[str, Any] | None = None
    unknown: Any = None
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True, slots=True)
class Function:
    """A node: one call of an intrinsic function.

    arguments — a tree; path — of the node in the template.
    Subclasses say what the function does: `check` the form of its arguments, `apply` it to plain ones. Both raise
    ValueError or TypeError with a text for the author of the template.
    """

    name: str
    arguments: Any
    path: Path = field(compare=False)
    context: Context = field(compare=False, repr=False)

    def check(self, arguments: Any) -> None:
        """Refuse a wrong form. While compiling, items of `arguments` may be nodes themselves.

        Form is what shows in the template: how many arguments there are, which, and of what kind where no value may be
        any other. What depends on the values of arguments is up to `apply`.
        """

    def apply(self, arguments: Any) -> Any:
        """Value of the function; `arguments` is plain data that passed `check`."""
        raise NotImplementedError

    def guess(self, arguments: Any) -> Any:
        """Value of the function of what is not known, or holds such: `UNKNOWN` unless it is the same in any case."""
        return UNKNOWN

    def references(self) -> Iterable[str]:
        """Resources this very node asks, apart from those its arguments ask."""
        return ()

    def requires(self) -> frozenset[str]:
        """Names of the resources whose values this node needs."""
        return frozenset(self.references()) | requires(self.arguments)

    def compiled(self) -> Any:
        """What stands in the tree for this node: its value if that is known already, else the node itself.

        Fails: Rejected with the path.
        """
        if self.context.unknown is not None and holds(self.arguments, self.context.unknown):
            return self.guess(self.arguments)
        if isinstance(self.arguments, Function):
            return self
        self.guarded(self.check, self.arguments)
        return self if is_dynamic(self.arguments) else self.guarded(self._applied, self.arguments)

    def _applied(self, arguments: Any) -> Any:
        return self.context.allowance.take(self.apply(arguments))

    def evaluate(self, scope: Scope) -> Any:
        """Value of the node now. Fails: Rejected with the path."""
        arguments = evaluate(self.arguments, scope)
        unknown = scope.unknown
        if unknown is not None and holds(arguments, unknown):
            return unknown
        self.guarded(self.check, arguments)
        return self.guarded(self.apply, arguments)

    def is_formed(self) -> bool:
        """Have the arguments, as they stand, the right form?"""
        try:
            self.check(self.arguments)
        except (TypeError, ValueError):
            return False
        return True

    def guarded(self, step: Callable[[Any], Any], arguments: Any) -> Any:
        try:
            return step(arguments)
        except (TypeError, ValueError) as error:
            raise invalid(str(error), *self.path) from error


_DYNAMIC = (Function, DynamicMap, DynamicList)


def is_dynamic(tree: Any) -> bool:
    """Whether a node is left in `tree`."""
    return isinstance(tree, _DYNAMIC)


class WeighedScope:
    """A scope together with what functions may still give: those of one resource or output, or of several together.

    most — weight of all that they may give, `VALUE_MAX` by default.
    """

    def __init__(self, scope: Scope, most: int | None = None) -> None:
        self.unknown = scope.unknown
        self.reference = scope.reference
        self.attribute = scope.attribute
        self.attributes = scope.attributes
        self._most = self._left = VALUE_MAX if most is None else most

    def take(self, value: Any) -> Any:
        """The same value. Fails: ValueError when it is too much, with all that came before."""
        try:
            self._left -= weight(value, self._left)
        except TooHeavy as error:
            raise TooHeavy(f"the values that functions give here weigh more than {self._most}") from error
        return value


def evaluate(tree: Any, scope: Scope) -> Any:
    """`tree` as plain data. Static parts are shared with the tree: do not change them.

    Fails: Rejected (StackValidationFailed) where a function cannot take what a resource gave it, and where all of them
    together give too much.
    """
    if not is_dynamic(tree):
        return tree
    return _evaluated(tree, scope if isinstance(scope, WeighedScope) else WeighedScope(scope))


def _evaluated(tree: Any, scope: WeighedScope) -> Any:
    kind = type(tree)
    if kind is DynamicMap:
        return {key: _evaluated(value, scope) for key, value in tree.items()}
    if kind is DynamicList:
        return [_evaluated(item, scope) for item in tree]
    if isinstance(tree, Function):
        value = tree.evaluate(scope)
        return tree.guarded(scope.take, value)
    return tree


def nodes(tree: Any) -> Iterator[Function]:
    """All function nodes in `tree`, those within arguments of others included."""
    if isinstance(tree, Function):
        yield tree
        yield from nodes(tree.arguments)
    elif isinstance(tree, DynamicMap):
        for value in tree.values():
            yield from nodes(value)
    elif isinstance(tree, DynamicList):
        for item in tree:
            yield from nodes(item)


def requires(tree: Any) -> frozenset[str]:
    """Names of all resources whose values `tree` needs."""
    if not is_dynamic(tree):
        return frozenset()
    return frozenset(name for node in nodes(tree) for name in node.references())


def traverse(value: Any, path: Sequence[Any], missing: Any = None) -> Any:
    """What `path` leads to inside `value`: map keys and list indices (as text, too); `missing` if it leads nowhere."""
    for step in path:
        try:
            if isinstance(value, list | tuple):
                value = value[int(step)]
            elif isinstance(value, dict):
                value = value[str(step)]
            else:
                return missing
        except (LookupError, TypeError, ValueError):
            return missing
    return value


def holds(value: Any, wanted: Any) -> bool:
    """Whether the very object `wanted` is `value` or somewhere within it."""
    if value is wanted:
        return True
    if isinstance(value, dict):
        return any(holds(item, wanted) for item in value.values())
    return isinstance(value, list) and any(holds(item, wanted) for item in value)
