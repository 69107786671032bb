"""Words of the template languages, HOT and CFN.

The compiler knows only the words of HOT ("canonical" below): each template is translated before compilation, and paths
in errors are translated back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, invalid

Words = Mapping[str, str]
"""Word in the template -> canonical word."""
Pseudo = tuple[str, str, str]
"""A pseudo parameter, which every template has without a declaration: name, value, description."""

SECTIONS = ("parameters", "mappings", "conditions", "resources", "outputs")
"""Sections that are maps, in canonical words."""


def _same(*words: str) -> Words:
    return {word: word for word in words}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Words of one language, or of some of its versions.

    Attributes:
        sections: Keys at the top of a template.
        resource: Keys of a resource.
        output: Keys of an output.
        parameter: Keys of a parameter, without its constraints.
        types: Types of parameters.
        policies: Deletion policies.
        pseudo: Returns the pseudo parameters of a stack.
        schema: Translates an entry of the parameters section into canonical words; raises Rejected
            (InvalidSchemaError) if the entry is wrong.
        closed: Whether unknown keys in resources and outputs are refused; else they are ignored.
    """

    sections: Words
    resource: Words
    output: Words
    parameter: Words
    types: Words
    policies: Words
    pseudo: Callable[[Identity], tuple[Pseudo, ...]]
    schema: Callable[[Any], Any] = lambda entry: entry
    closed: bool = True

    _spoken: Mapping[tuple[str, str], str] = field(init=False, repr=False, compare=False)
    """(Section, key), both canonical -> word in the template; the key is "" for the section itself."""

    def __post_init__(self) -> None:
        inner = {"parameters": self.parameter, "resources": self.resource, "outputs": self.output}
        spoken = {(section, ours): word for section, words in inner.items() for word, ours in words.items()}
        spoken |= {(ours, ""): word for word, ours in self.sections.items()}
        object.__setattr__(self, "_spoken", spoken)

    def word(self, section: str, key: str = "") -> str:
        """Return the template's word for a section, or for a key of its entries, both given in canonical words."""
        return self._spoken.get((section, key), key or section)

    def has(self, section: str, key: str) -> bool:
        """Return whether an entry of a section may have this key (a canonical word)."""
        return (section, key) in self._spoken

    def type_word(self, type_name: str) -> str:
        """Return the template's word for a type of parameters."""
        return _word(self.types, type_name)

    def place(self, *path: str | int) -> tuple[str | int, ...]:
        """Translate a path in canonical words into the words of the template."""
        if not path or path[0] not in SECTIONS:
            return path
        section, *inner = path
        if len(inner) > 1:
            inner[1] = self.word(str(section), str(inner[1]))
        return (self.word(str(section)), *inner)

    def worded(self, error: Rejected) -> Rejected:
        """Return the same error with its path in the words of the template."""
        return Rejected(error.fault, error.detail, error=error.error, path=self.place(*error.path))

    def read(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template in canonical words; missing sections of `SECTIONS` become {}.

        The cost is O(entries), or O(sections) for HOT, whose words are already canonical.

        Raises:
            Rejected: A section is unknown, or one of `SECTIONS` is not a map.
        """
        for word in document:
            if word not in self.sections:
                raise Rejected("InvalidTemplateSection", f"The template section is invalid: {word}")
        ours: dict[str, Any] = {self.sections[word]: content for word, content in document.items()}
        for section in SECTIONS:
            content = ours.get(section)
            ours[section] = {} if content is None else content
            if not isinstance(ours[section], dict):
                word, kind = self.word(section), type(content).__name__
                raise invalid(f'"{word}" must contain a map of {word[:-1]} maps. Found a [{kind}] instead', section)
        if not self.closed:
            ours["resources"] = _entries(ours["resources"], self.resource)
            ours["outputs"] = _entries(ours["outputs"], self.output)
        return ours


def _word(words: Words, ours: str) -> str:
    return next((word for word, meaning in words.items() if meaning == ours), ours)


def _entries(section: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """Return the entries in canonical words, without unknown keys; an entry that is not a map is refused later."""
    return {
        name: {words[key]: value for key, value in entry.items() if key in words} if isinstance(entry, dict) else entry
        for name, entry in section.items()
    }


def _hot_pseudo(identity: Identity) -> tuple[Pseudo, ...]:
    return (
        ("OS::project_id", identity.project, "Project ID"),
        ("OS::stack_id", identity.stack_id, "Stack ID"),
        ("OS::stack_name", identity.stack_name, "Stack Name"),
    )


_POLICIES = ("Delete", "Retain", "Snapshot")
_HOT_SECTIONS = ("description", "parameter_groups", "parameters", "resources", "outputs")
_HOT_RESOURCE = ("type", "properties", "metadata", "depends_on", "deletion_policy", "update_policy", "description")

_PARAMETER = ("type", "label", "description", "default", "hidden", "immutable", "tags")
_TYPES = ("string", "number", "comma_delimited_list", "json", "boolean")

HOT_FIRST = Dialect(
    {"heat_template_version": "version", **_same(*_HOT_SECTIONS)},
    _same(*_HOT_RESOURCE),
    _same("value", "description"),
    _same(*_PARAMETER),
    _same(*_TYPES),
    _same(*_POLICIES),
    _hot_pseudo,
)
HOT = Dialect(
    {**HOT_FIRST.sections, **_same("conditions")},
    {**HOT_FIRST.resource, **_same("condition", "external_id")},
    {**HOT_FIRST.output, **_same("condition")},
    HOT_FIRST.parameter,
    HOT_FIRST.types,
    {**HOT_FIRST.policies, **{policy.lower(): policy for policy in _POLICIES}},
    _hot_pseudo,
)
"""Since 2016-10-14: with conditions, external ids, and policies in lower case."""

REGION = "ap-southeast-1"
"""Value of `AWS::Region`, fixed as in Heat: templates look up images and sizes by it."""

_CFN_TYPES = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
_CFN_PARAMETER = {
    "Type": "type",
    "Default": "default",
    "NoEcho": "hidden",
    "Description": "description",
    "Label": "label",
}
_CFN_CONSTRAINTS = (
    ("length", {"MinLength": "min", "MaxLength": "max"}),
    ("range", {"MinValue": "min", "MaxValue": "max"}),
    ("allowed_values", "AllowedValues"),
    ("allowed_pattern", "AllowedPattern"),
)
_CFN_KEYS = (
    *_CFN_PARAMETER,
    *(word for _kind, words in _CFN_CONSTRAINTS for word in ([words] if isinstance(words, str) else words)),
    "ConstraintDescription",
)


def _cfn_schema(entry: Any) -> Any:
    """Translate a parameter of CFN, whose constraints are siblings of the type and share one description.

    Raises:
        Rejected: InvalidSchemaError: an unknown key or type.
    """
    if not isinstance(entry, dict):
        return entry
    unknown = sorted(entry.keys() - set(_CFN_KEYS))
    if unknown:
        raise Rejected("InvalidSchemaError", f"Invalid key {unknown[0]!r}; known are: {', '.join(_CFN_KEYS)}")
    ours = {_CFN_PARAMETER[key]: value for key, value in entry.items() if key in _CFN_PARAMETER}
    kind = ours.get("type")
    if kind is not None and (not isinstance(kind, str) or kind not in _CFN_TYPES):
        raise Rejected("InvalidSchemaError", f"Invalid type ({kind}); it must be one of: {', '.join(_CFN_TYPES)}")
    described = {"description": text} if (text := entry.get("ConstraintDescription")) else {}
    constraints = [{kind: value, **described} for kind, value in _cfn_constraints(entry)]
    return {**ours, "type": kind and _CFN_TYPES[kind], "constraints": constraints}


def _cfn_constraints(entry: Mapping[str, Any]) -> list[tuple[str, Any]]:
    constraints: list[tuple[str, Any]] = []
    for kind, words in _CFN_CONSTRAINTS:
        if isinstance(words, str):
            value = entry.get(words)
        else:
            value = {ours: entry[word] for word, ours in words.items() if entry.get(word) is not None} or None
        if value is not None:
            constraints.append((kind, value))
    return constraints


def _cfn_pseudo(identity: Identity) -> tuple[Pseudo, ...]:
    arn = f"arn:openstack:heat::{identity.project}:stacks/{identity.stack_name}/{identity.stack_id}"
    return (
        ("AWS::StackId", arn, "Stack ID"),
        ("AWS::StackName", identity.stack_name, "Stack Name"),
        ("AWS::Region", REGION, "AWS Regions"),
    )


HEAT_CFN = Dialect(
    {
        "HeatTemplateFormatVersion": "version",
        "Description": "description",
        "Parameters": "parameters",
        "Mappings": "mappings",
        "Resources": "resources",
        "Outputs": "outputs",
    },
    {
        "Type": "type",
        "Properties": "properties",
        "Metadata": "metadata",
        "DependsOn": "depends_on",
        "DeletionPolicy": "deletion_policy",
        "UpdatePolicy": "update_policy",
        "CreationPolicy": "creation_policy",
        "Description": "description",
    },
    {"Value": "value", "Description": "description"},
    _CFN_PARAMETER,
    _CFN_TYPES,
    _same(*_POLICIES),
    _cfn_pseudo,
    _cfn_schema,
    closed=False,
)
AWS_CFN = Dialect(
    {
        "AWSTemplateFormatVersion": "version",
        **{word: ours for word, ours in HEAT_CFN.sections.items() if ours != "version"},
        "Conditions": "conditions",
    },
    {**HEAT_CFN.resource, "Condition": "condition"},
    {**HEAT_CFN.output, "Condition": "condition"},
    HEAT_CFN.parameter,
    HEAT_CFN.types,
    HEAT_CFN.policies,
    _cfn_pseudo,
    _cfn_schema,
    closed=False,
)
