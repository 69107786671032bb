"""Compiled snippets of a template, and their evaluation.

A tree is plain data (dict, list, text, numbers, booleans, None) in which function nodes stand for values of resources,
not known yet. A dict or list that contains a node at any depth is a `DynamicMap` or `DynamicList`. The rest is static:
`evaluate` returns static data unchanged, without walking it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from homeostat.model.errors import LeadsNowhere, dotted, invalid
from homeostat.templates.weights import TooHeavy, weight

Path = tuple[str | int, ...]
"""Place in a template: names and indices, from the section on."""


class Unknown:
    """Placeholder for the value of a missing parameter, in requests (validation) that allow missing parameters."""

    def __repr__(self) -> str:
        return "(not known yet)"


UNKNOWN: Final = Unknown()


class Scope(Protocol):
    """Current references and attributes of the resources of one stack.

    Methods are called only for resources in the graph, whose condition holds.

    Attributes:
        unknown: Placeholder for values not known yet; functions with unknown arguments return the placeholder. None
            if unknown values are null, as at run time.
    """

    @property
    def unknown(self) -> Any: ...

    def reference(self, resource: str) -> Any:
        """Return the value of `get_resource`."""

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        """Return the value of `get_attr`, with `path` followed.

        Groups pass the path to their members; other types use `traverse`.
        """

    def attributes(self, resource: str) -> Any:
        """Return the value of `get_attr` with only a resource: name -> value of all attributes but `show`."""


class DynamicMap(dict[str, Any]):
    """A map that contains a function node at any depth."""

    __slots__ = ()


class DynamicList(list[Any]):
    """A list that contains a function node at any depth."""

    __slots__ = ()


MADE_MAX = 64 * 1024 * 1024
"""Largest total weight of all values computed by the functions of a template during compilation."""
VALUE_MAX = 4 * 1024 * 1024
"""Largest total weight of the values computed by the functions of a resource or output at run time."""


QUERY_STEPS_MAX = 30_000
"""Most steps of all YAQL queries of one template, or of the templates compiled together: about three seconds."""


class QuerySteps:
    """Account of the steps taken by the YAQL queries of one template."""

    def __init__(self, *, apart: bool) -> None:
        """Start an account.

        Args:
            apart: Count each query by its place, with the steps of its last evaluation only. A stack at run time
                evaluates its queries again in every pass; counting all evaluations would exhaust the account.
        """
        self._apart = apart
        self._taken: dict[Path, int] = {}

    def left(self, place: Path) -> int:
        """Return the steps that the query at this place may take now."""
        taken = self._taken.get(place, 0) if self._apart else 0
        return max(QUERY_STEPS_MAX - sum(self._taken.values()) + taken, 0)

    def take(self, place: Path, steps: int) -> None:
        """Record the steps that the query at this place took."""
        if self._apart:
            self._taken[place] = steps
        else:
            self._taken[()] = self._taken.get((), 0) + steps


class Allowance:
    """Budget for the values computed by the functions of one template during compilation.

    Closed after compilation: from then on each evaluation of a resource or an output has its own budget
    (`WeighedScope`).
    """

    def __init__(self) -> None:
        self.left = MADE_MAX
        self._open = True
        self.steps = QuerySteps(apart=False)

    def spend(self, size: int) -> None:
        """Take `size` from the budget.

        Raises:
            TooHeavy: The budget is exhausted.
        """
        if self._open:
            self.left -= size
            if self.left < 0:
                raise TooHeavy(f"the functions of the template make more than {MADE_MAX} values and characters")

    def take(self, value: Any) -> Any:
        """Take the weight of `value` from the budget, and return `value` itself.

        Raises:
            TooHeavy: The budget is exhausted.
            ValueError: `value` is nested too deeply.
        """
        if self._open:
            try:
                self.spend(weight(value, self.left))
            except TooHeavy:
                self.spend(MADE_MAX)  # raises the error with the limit of the whole template
        return value

    def close(self) -> None:
        """End the budget of compilation; queries are counted each at its place from now on."""
        self._open = False
        self.steps = QuerySteps(apart=True)


@dataclass(frozen=True, slots=True)
class Context:
    """Input of the functions of one template during compilation.

    Attributes:
        parameters: Values by name, pseudo parameters included.
        mappings: Section `Mappings` of CFN templates.
        files: Texts of the files sent with the template, by name.
        resources: Name of each resource in the template -> whether its condition holds.
        facade: `metadata`, `deletion_policy` and `update_policy` of the resource in the parent template that this
            template implements; None for a root stack.
        unknown: `UNKNOWN` if parameters may be missing, else None.
        allowance: Budget for the values computed by the functions.
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

    Subclasses implement the function: `check` checks the form of its arguments, `apply` computes its value from plain
    arguments. Both raise ValueError or TypeError with a message for the author of the template.

    Attributes:
        name: Name of the function, as in the template.
        arguments: A tree.
        path: Place of the node in the template.
        context: Input of the function.
    """

    name: str
    arguments: Any
    path: Path = field(compare=False)
    context: Context = field(compare=False, repr=False)

    def check(self, arguments: Any) -> None:
        """Refuse arguments of a wrong form. While compiling, items of `arguments` may be nodes themselves.

        The form is visible in the template alone: the number of arguments, their names, and fixed types. `apply` checks
        everything that depends on values.
        """

    def apply(self, arguments: Any) -> Any:
        """Return the value of the function; `arguments` is plain data that passed `check`."""
        raise NotImplementedError

    def guess(self, arguments: Any) -> Any:
        """Return the value of the function for arguments that are, or contain, `UNKNOWN`.

        This is `UNKNOWN`, unless the value is the same whatever the unknown part turns out to be.
        """
        return UNKNOWN

    def references(self) -> Iterable[str]:
        """Return the names of the resources that this node itself reads; its arguments may read more."""
        return ()

    def requires(self) -> frozenset[str]:
        """Return the names of all resources whose values this node needs, its arguments included."""
        return frozenset(self.references()) | requires(self.arguments)

    def compiled(self) -> Any:
        """Return the replacement of this node in the tree: its value if already known, else the node itself.

        Raises:
            Rejected: The arguments are wrong; the error has the path of the node.
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
        """Return the current value of the node.

        Raises:
            Rejected: The function cannot take its arguments; the error has the path of the node.
        """
        arguments = evaluate(self.arguments, scope)
        unknown = scope.unknown
        if unknown is not None and holds(arguments, unknown):
            return unknown
        self.guarded(self.check, arguments)
        return self.guarded(self.apply, arguments)

    def is_formed(self) -> bool:
        """Return whether the arguments, unevaluated, have the right form."""
        try:
            self.check(self.arguments)
        except (TypeError, ValueError):
            return False
        return True

    def guarded(self, step: Callable[[Any], Any], arguments: Any) -> Any:
        """Return `step(arguments)`; its ValueError or TypeError becomes a Rejected with the path of the node."""
        try:
            return step(arguments)
        except (TypeError, ValueError) as error:
            raise invalid(str(error), *self.path) from error


_DYNAMIC = (Function, DynamicMap, DynamicList)


def is_dynamic(tree: Any) -> bool:
    """Return whether a function node is left in `tree`."""
    return isinstance(tree, _DYNAMIC)


class WeighedScope:
    """A scope with a budget for the values computed by functions, shared by all evaluations in this scope."""

    def __init__(self, scope: Scope, most: int | None = None) -> None:
        """Wrap a scope.

        Args:
            scope: The scope to read from.
            most: Largest total weight of the values; None for `VALUE_MAX`.
        """
        self.unknown = scope.unknown
        self.reference = scope.reference
        self.attribute = scope.attribute
        self.attributes = scope.attributes
        self._most = self._left = VALUE_MAX if most is None else most

    def take(self, value: Any) -> Any:
        """Take the weight of `value` from the budget, and return `value` itself.

        Raises:
            TooHeavy: The budget is exhausted.
            ValueError: `value` is nested too deeply.
        """
        try:
            self._left -= weight(value, self._left)
        except TooHeavy as error:
            raise TooHeavy(f"the values that functions give here weigh more than {self._most}") from error
        return value


def evaluate(tree: Any, scope: Scope) -> Any:
    """Return `tree` as plain data. Static parts are shared with the tree: do not change them.

    Raises:
        Rejected: StackValidationFailed: a function cannot take the value of a resource, or the values of all functions
            together are too large.
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
    """Yield all function nodes in `tree`, including nodes within arguments."""
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
    """Return the names of all resources whose values `tree` needs."""
    if not is_dynamic(tree):
        return frozenset()
    return frozenset(name for node in nodes(tree) for name in node.references())


def traverse(value: Any, path: Sequence[Any], missing: Any = None) -> Any:
    """Follow `path` into `value`: keys of maps and indices of lists (also as text); `missing` if there is nothing."""
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


def part_of(value: Any, path: Sequence[Any], *place: str) -> Any:
    """Follow `path` into the value of an attribute; `place` is the name of the resource and of the attribute.

    Raises:
        LeadsNowhere: The path does not exist.
    """
    part = traverse(value, path, _NOWHERE)
    if part is _NOWHERE:
        resource, attribute = place
        where = dotted([str(step) for step in path])
        raise LeadsNowhere(f"There is nothing at {where} in the attribute {attribute}.", "resources", resource)
    return part


_NOWHERE = object()


def holds(value: Any, wanted: Any) -> bool:
    """Return whether `value` is the object `wanted` (by identity), or contains it at any depth."""
    if value is wanted:
        return True
    if isinstance(value, dict):
        return any(holds(item, wanted) for item in value.values())
    return isinstance(value, list) and any(holds(item, wanted) for item in value)
