"""Functions of CFN templates that HOT does not have, or has in another form."""

import re
from typing import Any, ClassVar

from homeostat.templates.functions.logic import OMIT, Combination
from homeostat.templates.functions.references import GetAttr, ResourceFacade, ResourceReference, reference_incorrect
from homeostat.templates.functions.strings import StrReplace, checked_items, shown
from homeostat.templates.parser import parse_json
from homeostat.templates.tree import UNKNOWN, Function

ZONES = ("nova",)
"""Availability zones that `Fn::GetAZs` returns: constant, since templates are compiled without asking a cloud."""


NO_VALUE = "AWS::NoValue"
"""Reference that leaves its property or item out."""


class Ref(ResourceReference):
    """Reference id of a resource of the template, or the value of a parameter; AWS::NoValue leaves the item out."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, str):
            raise ValueError(f'Argument to "{self.name}" must be the name of a resource or parameter')

    def compiled(self) -> Any:
        if self.arguments is UNKNOWN:
            return UNKNOWN
        self.guarded(self.check, self.arguments)
        if self.arguments == NO_VALUE:
            return OMIT
        if self.arguments in self.context.resources:
            return self.node()
        if self.arguments in self.context.parameters:
            return self.guarded(self.context.allowance.take, self.context.parameters[self.arguments])
        raise reference_incorrect(self.arguments, self.path[:-1])


class GetAtt(GetAttr):
    """Attribute of another resource; null before its creation."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [resource_name, attribute]')
        self.check_steps(arguments)


class FindInMap(Function):
    """A value from the section `Mappings`."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 3:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [mapping, key, name]')

    def apply(self, arguments: Any) -> Any:
        level: Any = self.context.mappings
        for what, key in zip(("mapping", "key", "name"), arguments, strict=True):
            if not isinstance(level, dict) or not isinstance(key, str | int) or str(key) not in level:
                raise ValueError(f'"{self.name}": there is no {what} {shown(key)} in the mappings')
            level = level[str(key)]
        return level


class GetZones(Function):
    """Names of the availability zones; the argument, a region, is ignored."""

    def apply(self, arguments: Any) -> Any:
        return list(ZONES)


class Select(Function):
    """Item of a list or value of a map, either of which may be JSON text; an empty text if there is none."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [index, collection]')

    def apply(self, arguments: Any) -> Any:
        index, collection = arguments
        if isinstance(collection, str) and collection:
            collection = self.parsed(collection)
        if collection is None or collection == "":
            return ""
        if isinstance(collection, dict):
            if not isinstance(index, str):
                raise ValueError(f'The key in "{self.name}" must be a string, not {shown(index)}')
            return collection.get(index, "")
        if not isinstance(collection, list):
            raise ValueError(f'"{self.name}" takes a list, a map, or JSON text of one, not {shown(collection)}')
        place = self.place(index)
        return collection[place] if -len(collection) <= place < len(collection) else ""

    def parsed(self, text: str) -> Any:
        try:
            return parse_json(text)
        except ValueError as error:
            raise ValueError(f'"{self.name}": the text is not JSON: {error}') from error

    def place(self, index: Any) -> int:
        try:
            return int(index)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f'The index in "{self.name}" must be an integer, not {shown(index)}') from None


class Split(Function):
    """A text split at a delimiter into a list."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [delimiter, string]')

    def apply(self, arguments: Any) -> Any:
        delimiter, text = arguments
        if not isinstance(delimiter, str) or not delimiter:
            raise ValueError(f'The delimiter of "{self.name}" must be a string that is not empty')
        if not isinstance(text, str):
            raise ValueError(f'"{self.name}" splits a string, not {shown(text)}')
        checked_items(self.name, text.count(delimiter) + 1)
        return text.split(delimiter)


class Replace(StrReplace):
    """A text in which each key of a map is replaced with its value."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [map, string]')
        self.check_params(arguments[0])

    def apply(self, arguments: Any) -> Any:
        params, template = arguments
        return super().apply({"template": template, "params": params})


class Base64(Function):
    """The text itself, unchanged: user data is encoded when it is sent."""

    def apply(self, arguments: Any) -> Any:
        if not isinstance(arguments, str):
            raise ValueError(f'"{self.name}" takes a string, not {shown(arguments)}')
        return arguments


_MEMBER = re.compile(r"\.member\.([0-9]{1,9})\.([^=]*)=(.*)", re.DOTALL)


class MemberListToMap(Function):
    """A map from a list of texts of the form `.member.N.key=value`, two of which make an entry."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 3:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [key_name, value_name, list]')

    def apply(self, arguments: Any) -> Any:
        key_name, value_name, items = arguments
        if not isinstance(key_name, str) or not isinstance(value_name, str):
            raise ValueError(f'The names of key and value in "{self.name}" must be strings')
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError(f'"{self.name}" takes a list of strings, not {shown(items)}')
        members: dict[int, dict[str, str]] = {}
        for number, name, value in (match.groups() for match in map(_MEMBER.fullmatch, items) if match):
            members.setdefault(int(number), {})[name] = value
        complete = [member for _number, member in sorted(members.items()) if {key_name, value_name} <= member.keys()]
        return {member[key_name]: member[value_name] for member in complete}


class CfnResourceFacade(ResourceFacade):
    """Metadata, deletion policy or update policy of the resource that this template implements."""

    sections: ClassVar = {
        "Metadata": "metadata",
        "DeletionPolicy": "deletion_policy",
        "UpdatePolicy": "update_policy",
    }


class NamedCondition(Combination):
    """Whether the condition of that name holds."""

    def check(self, arguments: Any) -> None:
        if isinstance(arguments, list):
            raise ValueError(f'Argument to "{self.name}" must be the name of a condition')

    def apply(self, arguments: Any) -> Any:
        return arguments


class NotOne(Combination):
    """Whether a condition does not hold."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 1:
            raise ValueError(f'Arguments to "{self.name}" must be of the form: [condition]')

    def apply(self, arguments: Any) -> Any:
        return not arguments[0]
