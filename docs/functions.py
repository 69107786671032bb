"""The reference page of the functions of templates; its examples are evaluated when it is written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.templates import compile_template, evaluate, functions_of, traverse, versions

SOURCE = Path(__file__).parent / "functions.yaml"
TITLE = """\
# Functions of templates

The examples of HOT are those of version `2021-04-16`, unless a function is older, in a template with this in it. The
resource has the attributes `output` and `networks`.

```yaml
{template}
```

Those of CFN are in the same template written as `AWSTemplateFormatVersion: 2010-09-09`, with these mappings:

```yaml
{mappings}
```

What a function cannot take is refused with the place in the template (`resources.x.properties.y.list_join: …`).
[How much it may make](../explanation/compatibility.md#deliberate-differences) is bounded. Functions that the first
versions of HOT share with CFN are described [there](#cfn).
"""


def page() -> str:
    written = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    hot = [full_name for full_name, kind, _aliases in versions() if kind == "hot"]
    cfn = [full_name for full_name, kind, _aliases in versions() if kind == "cfn"]
    shown = yaml.safe_dump(written["template"], sort_keys=False).strip()
    mappings = yaml.safe_dump({"Mappings": written["mappings"]}, sort_keys=False).strip()
    lines = [TITLE.format(template=shown, mappings=mappings)]
    for title, full_names in (("HOT", hot), ("CFN", cfn)):
        lines += [f"## {title}", "", *_summary(full_names), ""]
        for name in _names(full_names):
            if full_names is cfn or name not in _names(cfn):
                lines += _section(name, [each for each in full_names if name in _functions(each)][-1], written)
    return "\n".join([*lines, *_versions()])


def names() -> set[str]:
    """All functions of all versions."""
    return {name for full_name, _kind, _aliases in versions() for name in _functions(full_name)}


def _functions(full_name: str) -> dict[str, str]:
    return {name: description for name, description, _condition in functions_of(full_name)}


def _names(full_names: Sequence[str]) -> list[str]:
    return sorted({name for each in full_names for name in _functions(each)})


def _summary(full_names: Sequence[str]) -> Iterator[str]:
    """A line for each meaning of each function."""
    meanings: dict[tuple[str, str], list[str]] = {}
    for full_name in full_names:
        for name, description in _functions(full_name).items():
            meanings.setdefault((name, description), []).append(full_name)
    yield from ("A function whose meaning grew with a version has a line for each.", "")
    yield from ("| function | versions | meaning |", "|---|---|---|")
    for (name, description), found in sorted(meanings.items(), key=lambda each: (each[0][0], each[1][0])):
        yield f"| `{name}` | {_span(found, full_names)} | {description} |"


def _span(found: Sequence[str], full_names: Sequence[str]) -> str:
    dates = [each.partition(".")[2] for each in found]
    if list(found) == list(full_names):
        return "all"
    if found[-1] == full_names[-1]:
        return f"since {dates[0]}"
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def _section(name: str, full_name: str, written: Mapping[str, Any]) -> Iterator[str]:
    entry = written["functions"][name]
    yield from (f"### {name}", "", "```yaml", *(f"{name}: {form}" for form in entry["forms"]), "```", "")
    yield from ("| example | gives |", "|---|---|")
    for snippet in entry["examples"]:
        yield f"| {_code(snippet)} | `{_escaped(json.dumps(value(snippet, full_name, written)))}` |"
    for snippet in entry.get("refused", ()):
        yield f"| {_code(snippet)} | error: {_escaped(refusal(snippet, full_name, written))} |"
    yield ""


def _code(snippet: Any) -> str:
    text = yaml.safe_dump(snippet, default_flow_style=True, sort_keys=False, width=10_000)
    return f"`{_escaped(text.strip())}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def refusal(snippet: Any, full_name: str, written: Mapping[str, Any]) -> str:
    """Why a snippet is refused. Fails: ValueError when it is not."""
    try:
        found = value(snippet, full_name, written)
    except Rejected as error:
        return error.detail
    raise ValueError(f"{snippet} is listed as refused, but gives {found}")


def value(snippet: Any, full_name: str, written: Mapping[str, Any]) -> Any:
    """What a snippet gives in the template of the page. Fails: Rejected."""
    key, _, version = full_name.partition(".")
    conditional = {name for name, _text, only in functions_of(full_name) if only}
    hot = key == "heat_template_version"
    if isinstance(snippet, dict) and snippet.keys() & conditional:
        snippet = {"if" if hot else "Fn::If": [snippet, True, False]}
    sections = {name: content for name, content in written["template"].items() if name != "heat_template_version"}
    if hot and version < "2016-10-14":
        del sections["conditions"]
    document = {key: version, **sections, "outputs": {"it": {"value": snippet}}} if hot else _as_cfn(
        {key: version}, sections, snippet, written["mappings"]
    )  # fmt: skip
    identity = Identity("5b9e8a0c-0000-4000-8000-000000000001", "shop", "project")
    compiled = compile_template(document, identity=identity, files=written["files"], facade=written["facade"])
    return evaluate(compiled.outputs["it"].value, _Scope(written["attributes"]))


def _as_cfn(
    version: Mapping[str, Any], sections: Mapping[str, Any], snippet: Any, mappings: Mapping[str, Any]
) -> dict[str, Any]:
    """The template of the page in the words of CFN."""
    types = {"string": "String", "comma_delimited_list": "CommaDelimitedList", "json": "Json"}
    given = sections["parameters"].items()
    parameters = {name: {"Type": types[each["type"]], "Default": each["default"]} for name, each in given}
    document = {
        **version,
        "Parameters": parameters,
        "Mappings": mappings,
        "Resources": {name: {"Type": each["type"]} for name, each in sections["resources"].items()},
        "Outputs": {"it": {"Value": snippet}},
    }
    return document | ({"Conditions": sections["conditions"]} if "AWSTemplateFormatVersion" in version else {})


class _Scope:
    """The resource of the page."""

    unknown: Any = None

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._attributes = attributes

    def reference(self, resource: str) -> Any:
        return f"{resource}-id"

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        return traverse(self._attributes.get(name), path)

    def attributes(self, resource: str) -> Any:
        return dict(self._attributes)


def _versions() -> Iterator[str]:
    yield from ("## Versions", "", "| version | or |", "|---|---|")
    for full_name, _kind, aliases in versions():
        key, _, version = full_name.partition(".")
        others = ", ".join(f"`{alias.partition('.')[2]}`" for alias in aliases)
        yield f"| `{key}: {version}` | {others} |"
    yield ""
