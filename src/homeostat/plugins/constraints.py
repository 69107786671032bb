"""Constraints on the values of properties, as plug-ins write them, converted to `resources.schema.Constraint`.

A custom constraint is referred to by name. Its class comes from the `constraint_mapping()` of a plug-in; a name that no
plug-in provides refers to a constraint of the service.
"""

import re
from collections.abc import Mapping
from typing import Any

from homeostat.resources import schema

CUSTOM: dict[str, type["BaseCustomConstraint"]] = {}
"""The classes of custom constraints of all loaded plug-ins, by name."""


class Constraint:
    """Base class of all constraints.

    Args:
        description: The message for a value that violates the constraint, instead of the built-in one.
    """

    def __init__(self, description: str | None = None) -> None:
        self.description = description

    def rule(self) -> schema.Constraint:
        raise NotImplementedError(f"{type(self).__name__} does not say what its rule is")

    def constraint(self) -> schema.Constraint:
        """Return the constraint in the form of resource types."""
        rule = self.rule()

        def check(value: Any) -> str | None:
            problem = rule.check(value)
            return problem if problem is None or self.description is None else self.description

        wire: Mapping[str, Any] = (
            rule.wire if self.description is None else {**rule.wire, "description": self.description}
        )
        return schema.Constraint(wire, check)

    def validate(self, value: Any, *_: Any, **__: Any) -> None:
        """Check a value.

        Raises:
            ValueError: The value violates the constraint.
        """
        problem = self.constraint().check(value)
        if problem is not None:
            raise ValueError(problem)


class Range(Constraint):
    def __init__(self, min: float | None = None, max: float | None = None, description: str | None = None) -> None:
        super().__init__(description)
        self.min, self.max = min, max

    def rule(self) -> schema.Constraint:
        return schema.between(self.min, self.max)


class Length(Constraint):
    def __init__(self, min: int | None = None, max: int | None = None, description: str | None = None) -> None:
        super().__init__(description)
        self.min, self.max = min, max

    def rule(self) -> schema.Constraint:
        return schema.length(self.min, self.max)


class Modulo(Constraint):
    def __init__(self, step: int, offset: int = 0, description: str | None = None) -> None:
        if step == 0 or abs(offset) >= abs(step) or step * offset < 0:
            raise ValueError(f"step ({step}) and offset ({offset}) do not fit")
        super().__init__(description)
        self.step, self.offset = step, offset

    def rule(self) -> schema.Constraint:
        def check(value: Any) -> str | None:
            if value % self.step == self.offset:
                return None
            return f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

        return schema.Constraint({"modulo": {"step": self.step, "offset": self.offset}}, check)


class AllowedValues(Constraint):
    def __init__(self, allowed: Any, description: str | None = None) -> None:
        super().__init__(description)
        self.allowed = tuple(allowed)

    def rule(self) -> schema.Constraint:
        return schema.one_of(*self.allowed)


class AllowedPattern(Constraint):
    def __init__(self, pattern: str, description: str | None = None) -> None:
        super().__init__(description)
        self.pattern = pattern
        re.compile(pattern)

    def rule(self) -> schema.Constraint:
        return schema.pattern(self.pattern)


class CustomConstraint(Constraint):
    def __init__(self, name: str, description: str | None = None, environment: Any = None) -> None:
        super().__init__(description)
        self.name = name

    def rule(self) -> schema.Constraint:
        def check(value: Any) -> str | None:
            custom_class = CUSTOM.get(self.name)
            if custom_class is None or not isinstance(value, str | int | float):
                return None
            instance = custom_class()
            return None if instance.validate(value, None) else instance.error(value)

        return schema.custom(self.name, check)


class BaseCustomConstraint:
    """Base class of a plug-in's own constraints.

    A subclass overrides `validate`, or `validate_with_client(clients, value)`, which raises one of
    `expected_exceptions` for a wrong value.
    """

    expected_exceptions: tuple[type[Exception], ...] = (ValueError,)
    resource_client_name: str | None = None
    resource_getter_name: str | None = None
    _problem: str | None = None

    def error(self, value: Any) -> str:
        return f"Error validating value {value!r}: {self._problem}" if self._problem else f"{value!r} does not fit"

    def validate(self, value: Any, context: Any) -> bool:
        from homeostat.plugins.clients import Clients

        try:
            self.validate_with_client(Clients(context), value)
        except self.expected_exceptions as error:
            self._problem = str(error)
            return False
        return True

    def validate_with_client(self, clients: Any, value: Any) -> None:
        if self.resource_client_name and self.resource_getter_name:
            getattr(clients.client_plugin(self.resource_client_name), self.resource_getter_name)(value)
