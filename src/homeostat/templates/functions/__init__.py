"""Intrinsic functions: their nodes, and the versions of the language that have them.

- `references`: parameters, files and other resources; `strings`; `collections`: lists and maps; `yaql`
- `logic`: conditions; `cfn`: functions of CFN templates only

To add a function, write a class and a line in its table. The first line of the class docstring is the description that
users see, in the API and in the reference documentation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from homeostat.model.errors import Rejected
from homeostat.templates.functions import cfn, collections, logic, references, strings, yaql
from homeostat.templates.tree import Function, Path

NEVER = ""
"""Value of `Entry.until` for a function that no version of the key has."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A function in the versions from `since` up to, but not including, `until`.

    Attributes:
        kind: Class of the function.
        ordinary: Whether the function is allowed in resources and outputs.
        condition: Whether the function is allowed in conditions.
    """

    name: str
    kind: type[Function]
    since: str = ""
    until: str = "9999"
    ordinary: bool = True
    condition: bool = False

    def available(self, version: str) -> bool:
        return self.since <= version < self.until


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a known function cannot be used here."""

    fault: str
    message: str

    def error(self, path: Path) -> Rejected:
        return Rejected(self.fault, self.message, path=path)


_OLDEST: Mapping[str, type[Function]] = {
    "Ref": cfn.Ref,
    "Fn::GetAZs": cfn.GetZones,
    "Fn::Join": strings.ListJoin,
    "Fn::Split": cfn.Split,
    "Fn::Replace": cfn.Replace,
    "Fn::Base64": cfn.Base64,
    "Fn::MemberListToMap": cfn.MemberListToMap,
    "Fn::ResourceFacade": cfn.CfnResourceFacade,
}
"""Functions of CFN templates that the first version of HOT also has."""
HOT = (
    Entry("get_param", references.GetParam, condition=True),
    Entry("get_resource", references.GetResource),
    Entry("get_attr", references.GetAttrThenTraverse, until="2014-10-16"),
    Entry("get_attr", references.GetAttr, since="2014-10-16", until="2015-10-15"),
    Entry("get_attr", references.GetAttrOrAll, since="2015-10-15"),
    Entry("get_file", references.GetFile),
    Entry("resource_facade", references.ResourceFacade),
    Entry("list_join", strings.ListJoin, until="2015-10-15"),
    Entry("list_join", strings.ListJoinMany, since="2015-10-15"),
    Entry("str_replace", strings.StrReplace, until="2015-10-15"),
    Entry("str_replace", strings.StrReplaceJson, since="2015-10-15"),
    Entry("digest", strings.Digest, since="2015-04-30"),
    Entry("repeat", collections.Repeat, since="2015-04-30", until="2016-10-14"),
    Entry("repeat", collections.RepeatMaps, since="2016-10-14", until="2017-09-01"),
    Entry("repeat", collections.RepeatZip, since="2017-09-01"),
    Entry("str_split", strings.StrSplit, since="2015-10-15"),
    Entry("map_merge", collections.MapMerge, since="2016-04-08"),
    Entry("map_replace", collections.MapReplace, since="2016-10-14"),
    Entry("yaql", yaql.Yaql, since="2016-10-14", until="2017-09-01"),
    Entry("yaql", yaql.Yaql, since="2017-09-01", condition=True),
    Entry("if", logic.If, since="2016-10-14", until="2021-04-16"),
    Entry("if", logic.IfOrOmit, since="2021-04-16"),
    Entry("equals", logic.Equals, since="2016-10-14", ordinary=False, condition=True),
    Entry("not", logic.Not, since="2016-10-14", ordinary=False, condition=True),
    Entry("and", logic.And, since="2016-10-14", ordinary=False, condition=True),
    Entry("or", logic.Or, since="2016-10-14", ordinary=False, condition=True),
    Entry("filter", collections.Filter, since="2017-02-24"),
    Entry("str_replace_strict", strings.StrReplaceStrict, since="2017-02-24"),
    Entry("str_replace_vstrict", strings.StrReplaceVeryStrict, since="2017-09-01"),
    Entry("make_url", strings.MakeUrl, since="2017-09-01"),
    Entry("list_concat", collections.ListConcat, since="2017-09-01"),
    Entry("list_concat_unique", collections.ListConcatUnique, since="2017-09-01"),
    Entry("contains", collections.Contains, since="2017-09-01", condition=True),
    Entry("Fn::Select", cfn.Select, until="2015-10-15"),
    *(Entry(name, kind, until="2014-10-16") for name, kind in _OLDEST.items()),
)
_CFN = (
    *(Entry(name, kind, condition=name == "Ref") for name, kind in _OLDEST.items()),
    Entry("Fn::Select", cfn.Select),
    Entry("Fn::GetAtt", cfn.GetAtt),
    Entry("Fn::FindInMap", cfn.FindInMap, condition=True),
)
AWS = (
    *_CFN,
    Entry("Fn::If", logic.If),
    Entry("Fn::Equals", logic.Equals, ordinary=False, condition=True),
    Entry("Fn::Not", cfn.NotOne, ordinary=False, condition=True),
    Entry("Fn::And", logic.And, ordinary=False, condition=True),
    Entry("Fn::Or", logic.Or, ordinary=False, condition=True),
    Entry("Condition", cfn.NamedCondition, ordinary=False, condition=True),
)
HEAT = (*_CFN, Entry("Fn::If", logic.If, until=NEVER))
TABLES: Mapping[str, tuple[Entry, ...]] = {
    "heat_template_version": HOT,
    "AWSTemplateFormatVersion": AWS,
    "HeatTemplateFormatVersion": HEAT,
}
"""Key of a template language -> functions of all its versions."""

Functions = Mapping[str, type[Function] | Refusal]
"""Name of each function in any version of a key -> its class, or the reason for its refusal."""


@cache
def ordinary_functions(key: str, version: str) -> Functions:
    """Return the functions in resources and outputs of a template with this key and version."""
    functions: dict[str, type[Function] | Refusal] = {}
    for entry in TABLES[key]:
        if not entry.ordinary or (entry.name in functions and not entry.available(version)):
            continue
        functions[entry.name] = _offer(entry, key, version)
    return functions


@cache
def output_functions(key: str, version: str) -> Functions:
    """Return the functions in outputs of a template with this key and version.

    A function of a newer version counts as an ordinary map, as in Heat; everywhere else it is refused, since no
    property accepts such a map.
    """
    later = {entry.name for entry in TABLES[key] if version < entry.since}
    known = ordinary_functions(key, version)
    return {
        name: function for name, function in known.items() if name not in later or not isinstance(function, Refusal)
    }


@cache
def condition_functions(key: str, version: str) -> Functions:
    """Return the functions in conditions of a template with this key and version."""
    functions: dict[str, type[Function] | Refusal] = {
        entry.name: Refusal("StackValidationFailed", f'The function "{entry.name}" is invalid in this context')
        for entry in TABLES[key]
    }
    for entry in TABLES[key]:
        if entry.condition and entry.available(version):
            functions[entry.name] = _offer(entry, key, version)
    return functions


def available(key: str, version: str) -> list[Entry]:
    """Return the functions of this version, in the order of the table."""
    return [entry for entry in TABLES[key] if entry.available(version)]


def _offer(entry: Entry, key: str, version: str) -> type[Function] | Refusal:
    if entry.available(version):
        return entry.kind
    if entry.until == NEVER:
        why = "this version of CFN: it needs AWSTemplateFormatVersion 2010-09-09"
    elif version < entry.since:
        why = f"this version of HOT: it needs {key} {entry.since} or later"
    else:
        why = "this version of HOT"
    text = f"The template version is invalid: The function {entry.name} is not supported in {why}."
    return Refusal("InvalidTemplateVersion", text)
