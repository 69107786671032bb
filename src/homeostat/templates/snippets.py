"""Snippets of a template -> trees: function calls become nodes, or their values if already known."""

from collections.abc import Callable, Mapping
from typing import Any

from homeostat.model.errors import Rejected, invalid
from homeostat.templates.functions import Functions, Refusal
from homeostat.templates.functions.logic import OMIT, Combination, If
from homeostat.templates.graph import Cycle, ordered
from homeostat.templates.tree import Context, DynamicList, DynamicMap, Function, Path, Unknown, is_dynamic
from homeostat.templates.weights import Unacceptable

UNDECLARED = ("UserParameterMissing", "InvalidTemplateReference")
"""Faults of a function that reads an undeclared parameter: of HOT, and of `Ref` in CFN."""


class Reader:
    """Reader of the snippets of one template."""

    def __init__(self, functions: Functions, context: Context, condition: Callable[[Any, Path], Any]) -> None:
        """Create a reader.

        Args:
            functions: Functions allowed in these snippets.
            context: Input of the functions.
            condition: Returns whether a condition, given as in the template with its path, holds.
        """
        self.functions = functions
        self.context = context
        self.condition = condition

    def tree(self, snippet: Any, path: Path) -> Any:
        """Return the tree of a snippet; a snippet without functions is its own tree, not a copy.

        Raises:
            Rejected: A function call is wrong; the error has its path.
        """
        tree = self._read(snippet, path)
        return None if tree is OMIT else tree

    def _read(self, snippet: Any, path: Path) -> Any:
        if isinstance(snippet, dict):
            if len(snippet) == 1:
                ((name, arguments),) = snippet.items()
                function = self.functions.get(name)
                if isinstance(function, Refusal):
                    raise function.error((*path, name))
                if function is not None:
                    return self._call(function, name, arguments, (*path, name))
            return self._read_map(snippet, path)
        if isinstance(snippet, list):
            return self._read_list(snippet, path)
        return snippet

    def _read_map(self, snippet: dict[str, Any], path: Path) -> Any:
        changed = {}
        for key, value in snippet.items():
            if isinstance(value, dict | list):
                tree = self._read(value, (*path, key))
                if tree is not value:
                    changed[key] = tree
        if not changed:
            return snippet
        result = {key: value for key, value in {**snippet, **changed}.items() if value is not OMIT}
        return DynamicMap(result) if any(map(is_dynamic, changed.values())) else result

    def _read_list(self, snippet: list[Any], path: Path) -> Any:
        trees = [self._read(item, (*path, index)) for index, item in enumerate(snippet)]
        if all(tree is item for tree, item in zip(trees, snippet, strict=True)):
            return snippet
        trees = [tree for tree in trees if tree is not OMIT]
        return DynamicList(trees) if any(map(is_dynamic, trees)) else trees

    def _call(self, function: type[Function], name: str, arguments: Any, path: Path) -> Any:
        if issubclass(function, If):
            return self._choose(function(name, arguments, path, self.context))
        read = self._conditions(arguments, path) if issubclass(function, Combination) else self.tree(arguments, path)
        return self._folded(function(name, read, path, self.context), computed=read is not arguments)

    def _folded(self, node: Function, *, computed: bool) -> Any:
        """Return the tree of a call: its value, or the node itself.

        Args:
            computed: Whether its arguments contain other function calls.

        Raises:
            Rejected: The arguments are wrong.
        """
        return node.compiled()

    def _choose(self, node: If) -> Any:
        """Read only the chosen branch, so the unused branch may name resources that do not exist."""
        node.guarded(node.check, node.arguments)
        place = 1 if self.condition(node.arguments[0], (*node.path, 0)) else 2
        return self._read(node.arguments[place], (*node.path, place)) if place < len(node.arguments) else OMIT

    def _conditions(self, arguments: Any, path: Path) -> Any:
        if isinstance(arguments, list):
            return [self.condition(argument, (*path, index)) for index, argument in enumerate(arguments)]
        return self.condition(arguments, path)


class OutputReader(Reader):
    """Reader of the values of outputs, which tolerates wrong values.

    A well-formed call with a wrong value, or with an undeclared parameter, stays in the tree as a node. The node fails
    when the output is evaluated, so a wrong output does not make the stack fail.
    """

    def _folded(self, node: Function, *, computed: bool) -> Any:
        try:
            return node.compiled()
        except Rejected as error:
            # References to missing resources, and values beyond a limit, are refused at once.
            needs_resources = type(node).references is not Function.references
            in_any_case = isinstance(error.__cause__, Unacceptable) or not (computed or node.is_formed())
            if needs_resources or in_any_case:
                raise
            return node


class Conditions:
    """The conditions of one template, by name.

    Attributes:
        values: Name -> result of `holds`, for the conditions that have a value.
    """

    def __init__(self, functions: Functions, definitions: Mapping[str, Any], context: Context, path: Path) -> None:
        """Evaluate all conditions, in the order of their dependencies.

        A condition that reads an undeclared parameter, or whose function returns no boolean, is refused only if used.

        Args:
            functions: Functions allowed in conditions.
            definitions: Section `conditions` of the template.
            context: Input of the functions.
            path: Path of the section, in the words of the template.

        Raises:
            Rejected: `Condition validation error`: a definition is wrong or depends on itself.
        """
        self.values: dict[str, Any] = {}
        self._refusals: dict[str, Rejected] = {}
        self._path = path
        self._reader = Reader(functions, context, self.holds)
        try:
            order = ordered({name: self._names(definition) for name, definition in definitions.items()})
        except Cycle as cycle:
            raise _wrong(f'Circular definition for condition "{cycle.names[0]}"') from cycle
        for name in order:
            self._define(name, definitions[name])

    def holds(self, condition: Any, path: Path) -> Any:
        """Return whether a condition (a name, a boolean or a call of a condition function) holds.

        Returns:
            True or False; `UNKNOWN`, which counts as True, if the result depends on a parameter without a value.

        Raises:
            Rejected: `condition` is no condition; the error has `path`.
        """
        if isinstance(condition, str) and condition in self.values:
            return self.values[condition]
        if isinstance(condition, str) and condition in self._refusals:
            raise self._refusals[condition]
        value = self._value(condition, path)
        if value is None:
            raise invalid(f'Invalid condition "{condition}"', *path)
        return value

    def _define(self, name: str, definition: Any) -> None:
        try:
            value = self._value(definition, (*self._path, name))
        except Rejected as error:
            if error.fault not in UNDECLARED:
                raise
            self._refusals[name] = error
            return
        if value is not None:
            self.values[name] = value
            return
        must = "it must be a boolean or a condition function that gives one"
        refusal = _wrong(f'The definition of condition "{name}" is invalid: {must}')
        if not self._is_call(definition):
            raise refusal
        self._refusals[name] = refusal

    def _is_call(self, definition: Any) -> bool:
        return (
            isinstance(definition, dict) and len(definition) == 1 and next(iter(definition)) in self._reader.functions
        )

    def _value(self, condition: Any, path: Path) -> Any:
        """Return the value of a boolean or of a condition function, None for anything else."""
        value = self._reader.tree(condition, path) if isinstance(condition, dict) else condition
        return value if isinstance(value, bool | Unknown) else None

    def _names(self, condition: Any) -> list[str]:
        """Return the names of other conditions in a definition."""
        if not isinstance(condition, dict) or len(condition) != 1:
            return []
        ((name, arguments),) = condition.items()
        function = self._reader.functions.get(name)
        if not isinstance(function, type) or not issubclass(function, Combination):
            return []
        items = arguments if isinstance(arguments, list) else [arguments]
        return [name for item in items for name in ([item] if isinstance(item, str) else self._names(item))]


def _wrong(message: str) -> Rejected:
    return invalid(message, error="Condition validation error")
