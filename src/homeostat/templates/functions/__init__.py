"""Intrinsic functions: their nodes, and which version of the language has which.

`references` what lies outside · `texts` · `collections` lists and maps · `logic` conditions. Adding a function is a
class and a line in `TABLE`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from homeostat.model.errors import Rejected
from homeostat.templates.functions import collections, logic, references, texts
from homeostat.templates.tree import Function, Path

FIRST = "2013-05-23"


@dataclass(frozen=True, slots=True)
class Entry:
    """A function in the versions from `since` until (not including) `until`.

    kind — its class; None for one that is known but not supported yet. ordinary, condition — where it may stand: in
    resources and outputs, or in conditions.
    """

    name: str
    kind: type[Function] | None
    since: str = FIRST
    until: str = "9999"
    ordinary: bool = True
    condition: bool = False

    def available(self, version: str) -> bool:
        return self.since <= version < self.until


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a known function cannot be used here."""

    fault: str
    message: str

    def error(self, path: Path) -> Rejected:
        return Rejected(self.fault, self.message, path=path)


TABLE = (
    Entry("get_param", references.GetParam, condition=True),
    Entry("get_resource", references.GetResource),
    Entry("get_attr", references.GetAttrThenTraverse, until="2014-10-16"),
    Entry("get_attr", references.GetAttr, since="2014-10-16", until="2015-10-15"),
    Entry("get_attr", references.GetAttrOrAll, since="2015-10-15"),
    Entry("get_file", references.GetFile),
    Entry("resource_facade", references.ResourceFacade),
    Entry("list_join", texts.ListJoin, until="2015-10-15"),
    Entry("list_join", texts.ListJoinMany, since="2015-10-15"),
    Entry("str_replace", texts.StrReplace, until="2015-10-15"),
    Entry("str_replace", texts.StrReplaceJson, since="2015-10-15"),
    Entry("digest", texts.Digest, since="2015-04-30"),
    Entry("repeat", collections.Repeat, since="2015-04-30", until="2016-10-14"),
    Entry("repeat", collections.RepeatMaps, since="2016-10-14", until="2017-09-01"),
    Entry("repeat", collections.RepeatZip, since="2017-09-01"),
    Entry("str_split", texts.StrSplit, since="2015-10-15"),
    Entry("map_merge", collections.MapMerge, since="2016-04-08"),
    Entry("map_replace", collections.MapReplace, since="2016-10-14"),
    Entry("yaql", None, since="2016-10-14", until="2017-09-01"),
    Entry("yaql", None, since="2017-09-01", condition=True),
    Entry("if", logic.If, since="2016-10-14", until="2021-04-16"),
    Entry("if", logic.IfOrOmit, since="2021-04-16"),
    Entry("equals", logic.Equals, since="2016-10-14", ordinary=False, condition=True),
    Entry("not", logic.Not, since="2016-10-14", ordinary=False, condition=True),
    Entry("and", logic.And, since="2016-10-14", ordinary=False, condition=True),
    Entry("or", logic.Or, since="2016-10-14", ordinary=False, condition=True),
    Entry("filter", collections.Filter, since="2017-02-24"),
    Entry("str_replace_strict", texts.StrReplaceStrict, since="2017-02-24"),
    Entry("str_replace_vstrict", texts.StrReplaceVeryStrict, since="2017-09-01"),
    Entry("make_url", texts.MakeUrl, since="2017-09-01"),
    Entry("list_concat", collections.ListConcat, since="2017-09-01"),
    Entry("list_concat_unique", collections.ListConcatUnique, since="2017-09-01"),
    Entry("contains", collections.Contains, since="2017-09-01", condition=True),
    Entry("Fn::Select", None, until="2015-10-15"),
    *(
        Entry(name, None, until="2014-10-16")
        for name in (
            "Ref",
            "Fn::GetAZs",
            "Fn::Join",
            "Fn::Split",
            "Fn::Replace",
            "Fn::Base64",
            "Fn::MemberListToMap",
            "Fn::ResourceFacade",
        )
    ),
)

Functions = Mapping[str, type[Function] | Refusal]
"""Every name that is a function somewhere -> its class, or why it is refused."""


@cache
def ordinary_functions(version: str) -> Functions:
    """Functions in resources and outputs of a template of that version (its date)."""
    found: dict[str, type[Function] | Refusal] = {}
    for entry in TABLE:
        if not entry.ordinary or (entry.name in found and not entry.available(version)):
            continue
        found[entry.name] = _offer(entry, version)
    return found


@cache
def condition_functions(version: str) -> Functions:
    """Functions in conditions of a template of that version (its date)."""
    found: dict[str, type[Function] | Refusal] = {
        entry.name: Refusal("StackValidationFailed", f'The function "{entry.name}" is invalid in this context')
        for entry in TABLE
    }
    for entry in TABLE:
        if entry.condition and entry.available(version):
            found[entry.name] = _offer(entry, version)
    return found


def available(version: str) -> list[Entry]:
    """What works in that version (its date), in the order of the table."""
    return [entry for entry in TABLE if entry.kind is not None and entry.available(version)]


def _offer(entry: Entry, version: str) -> type[Function] | Refusal:
    if entry.available(version):
        return entry.kind or Refusal("NotSupported", f"The function {entry.name} is not supported yet.")
    needed = f": it needs heat_template_version {entry.since} or later" if version < entry.since else ""
    return Refusal(
        "InvalidTemplateVersion",
        f"The template version is invalid: The function {entry.name} is not supported in this version of HOT{needed}.",
    )
