"""The function `yaql`, which queries data."""

from typing import Any

from homeostat.templates.tree import Function


class Yaql(Function):
    """Result of an expression of the query language YAQL, evaluated on the data."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, dict) or arguments.keys() != {"expression", "data"}:
            raise ValueError(f'Arguments to "{self.name}" must be a map with keys "expression" and "data"')
        expression = arguments["expression"]
        if isinstance(expression, Function):
            return
        if not isinstance(expression, str):
            raise ValueError(f'The "expression" of "{self.name}" must be a string')
        self._queries().parsed(expression)

    def apply(self, arguments: Any) -> Any:
        steps = self.context.allowance.steps
        return self._queries().evaluated(
            arguments["expression"],
            arguments["data"],
            steps.left(self.path),
            lambda taken: steps.take(self.path, taken),
        )[0]

    @staticmethod
    def _queries() -> Any:
        # Imported here because the library takes long to load, and most templates do not use it.
        from homeostat.templates import yaql_engine

        return yaql_engine
