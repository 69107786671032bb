"""Functions that read from elsewhere: parameters, files, the parent's resource, other resources."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from homeostat.model.errors import Absent, Rejected, dotted
from homeostat.templates.tree import UNKNOWN, Function, Path, Scope, evaluate, holds, is_dynamic, part_of, traverse


def reference_incorrect(name: str, path: Path) -> Rejected:
    """Return the error for a reference (at `path`) to a resource that the template does not have."""
    # As in Heat, the place begins with the name of the resource.
    place = dotted(path[1:] if path[0] in ("resources", "Resources") else path)
    return Rejected("InvalidTemplateReference", f'The specified reference "{name}" (in {place}) is incorrect.')


class GetParam(Function):
    """Value of a parameter, or the part of it that a path of keys and indices leads to."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, str | list) or not arguments:
            raise ValueError('Arguments to "get_param" must be a parameter name, or a list of it and a path')

    def apply(self, arguments: Any) -> Any:
        name, *path = [arguments] if isinstance(arguments, str) else arguments
        if not isinstance(name, str):
            raise ValueError('The parameter name in "get_param" must be a string')
        if any(not isinstance(step, str | int) for step in path):
            raise ValueError('Path components in "get_param" must be strings or integers')
        if name not in self.context.parameters:
            remedy = "the template does not declare it: do so in its section of parameters"
            message = f"The Parameter ({name}) was not provided."
            raise Rejected("UserParameterMissing", message, path=self.path, remedy=remedy)
        value = self.context.parameters[name]
        # Clients rely on a path that leads nowhere giving an empty text, not an error.
        return value if value is UNKNOWN else traverse(value, path, missing="")


class GetFile(Function):
    """A function for including a file inline."""

    def apply(self, arguments: Any) -> Any:
        if not isinstance(arguments, str):
            raise ValueError('Argument to "get_file" must be a string')
        if arguments not in self.context.files:
            raise ValueError(f'No content found in the "files" section for get_file path: {arguments}')
        return self.context.files[arguments]


class ResourceFacade(Function):
    """Metadata, deletion policy or update policy of the resource that this template implements."""

    sections: ClassVar[Mapping[str, str]] = {
        "metadata": "metadata",
        "deletion_policy": "deletion_policy",
        "update_policy": "update_policy",
    }

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, str) or arguments not in self.sections:
            raise ValueError(f'Argument to "{self.name}" must be one of: {", ".join(self.sections)}')

    def apply(self, arguments: Any) -> Any:
        if self.context.facade is None:
            raise ValueError(f'"{self.name}" needs a parent template: this one does not stand for a resource')
        return self.context.facade.get(self.sections[arguments])


class ResourceReference(Function):
    """Base of the functions that return the reference id of a resource; the arguments are its name."""

    def references(self) -> Iterable[str]:
        return (self.arguments,) if self._is_there() else ()

    def _is_there(self) -> bool:
        # Nodes created by the service itself name resources of no template.
        return self.context.resources.get(self.arguments, True)

    def node(self) -> Function:
        """Return the node itself. Raise Rejected if the template does not have the resource."""
        if self.arguments not in self.context.resources:
            raise reference_incorrect(self.arguments, self.path[:-1])
        return self

    def evaluate(self, scope: Scope) -> Any:
        if not self._is_there():
            raise Absent(f'The resource "{self.arguments}" is not there: its condition does not hold.', *self.path)
        return scope.reference(self.arguments)


class GetResource(ResourceReference):
    """Reference id of another resource, usually the cloud's own id."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, str):
            raise ValueError('Argument to "get_resource" must be a resource name')

    def compiled(self) -> Any:
        if self.arguments is UNKNOWN:
            return UNKNOWN
        self.guarded(self.check, self.arguments)
        return self.node()


class GetAttr(Function):
    """Attribute of another resource, or the part of it at a path; null before its creation."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) < 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [resource_name, attribute, (path), ...]')
        self.check_steps(arguments)

    def check_steps(self, arguments: list[Any]) -> None:
        if not isinstance(arguments[0], str):
            raise ValueError(f'The resource name in "{self.name}" must be a string')
        for step in arguments[1:]:
            if not isinstance(step, str | int | Function):
                raise ValueError(f'Path components in "{self.name}" must be strings or integers')

    def references(self) -> Iterable[str]:
        return (self.arguments[0],)

    def compiled(self) -> Any:
        if self.context.unknown is not None and holds(self.arguments, self.context.unknown):
            return self.context.unknown
        self.guarded(self.check, self.arguments)
        resource = self.arguments[0]
        if resource not in self.context.resources:
            raise reference_incorrect(resource, self.path[:-1])
        # Null if the condition of the resource does not hold.
        return self if self.context.resources[resource] else None

    def evaluate(self, scope: Scope) -> Any:
        arguments = self.arguments
        if is_dynamic(arguments):
            arguments = evaluate(arguments, scope)
            if scope.unknown is not None and holds(arguments, scope.unknown):
                return scope.unknown
            # A step of the path may be an attribute of another resource that is not known yet.
            if None in arguments:
                return None
            self.guarded(self.check, arguments)
        return self.value(scope, arguments)

    def value(self, scope: Scope, arguments: list[Any]) -> Any:
        return scope.attribute(arguments[0], str(arguments[1]), arguments[2:])


class GetAttrThenTraverse(GetAttr):
    """Attribute of another resource; a path is followed inside its value, the resource does not see it."""

    def value(self, scope: Scope, arguments: list[Any]) -> Any:
        value = scope.attribute(arguments[0], str(arguments[1]), ())
        # Null and not known yet are indistinguishable here.
        if value is None or (scope.unknown is not None and value is scope.unknown):
            return value
        return part_of(value, arguments[2:], arguments[0], str(arguments[1]))


class GetAttrOrAll(GetAttr):
    """Attribute of another resource, the part of it that a path leads to, or a map of all attributes."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or not arguments:
            raise ValueError(
                f'Arguments to "{self.name}" must be of the form [resource_name, (attribute), (path), ...]'
            )
        self.check_steps(arguments)

    def value(self, scope: Scope, arguments: list[Any]) -> Any:
        if len(arguments) == 1:
            return scope.attributes(arguments[0])
        return scope.attribute(arguments[0], str(arguments[1]), arguments[2:])
