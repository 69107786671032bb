"""The page of what services make of values: from the table that the tests on a real OpenStack record."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from docs.type_pages import row

from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.resources.registry import types

RECORDED = Path(__file__).parent / "normalisations.json"
REASONS: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "normalisations_reasons.yaml").read_text("utf-8")
)
NOT_TRIED = [
    "Properties that templates can set on what a cloud has, and of which no value was tried there, by the reason. They",
    "are judged as everywhere: by the answer to our own request.",
]
HEAD = """\
# What services make of values

Services store some values otherwise than templates write them: in another case, without a range, in another
order. None of that is drift, and nothing is sent again for it ([ADR
0097](../adr/0097-values-rewritten-by-services.md)). Each value here was set with a
creation on a real OpenStack; where the property can change in place, it was then taken out of the template and set
again by an update. `$name` stands for the id or the name of another thing.

A value is

- *the same*: the service shows it as it was sent;
- *known*: it shows it otherwise, and the two are compared as the same;
- *accepted*: it shows another value, which its answer has shown to be what it makes of ours;
- *refused*: the template is, or the resource fails, with what is said.

None of that drifts. *Taken out* says what was seen once the property was no longer in the template: `default` is what a
thing shows that never had it, or why the service refuses to be without. Where it says nothing, the two were not
compared.
""".splitlines()
WORDS = {"same": "the same", "known": "known", "accepted": "accepted", "refused": "refused"}


def page() -> str:
    places: Mapping[str, list[dict[str, Any]]] = json.loads(RECORDED.read_text())
    of_type: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for place, rows in places.items():
        type_name, _, key = place.rpartition(" ")
        of_type.setdefault(type_name, []).extend((key, each) for each in rows)
    lines = [*HEAD]
    for type_name in sorted(of_type):
        lines += [
            "",
            f"## {type_name}",
            "",
            row("property", "sent", "shown", "it is", "taken out"),
            "|---|---|---|---|---|",
        ]
        lines += [
            row(
                f"`{key}`",
                _text(each["sent"]),
                _text(each["shown"]),
                WORDS[each["how"]],
                "`default`" if each["default"] else _text(each.get("kept")),
            )
            for key, each in of_type[type_name]
        ]
    return "\n".join([*lines, *_untried(places)]) + "\n"


def untried(tried: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield type and property of all that templates can set on what a cloud has and that is not among `tried`."""
    for name, kind in sorted(types().items()):
        if kind.kind in CLOUD_KINDS and not kind.support.hidden:
            settable = (key for key, prop in kind.properties.items() if prop.implemented)
            yield from ((name, key) for key in settable if f"{name} {key}" not in tried)


def _untried(tried: Collection[str]) -> list[str]:
    """Return the section of the properties that were not tried, with the reasons."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for name, key in untried(tried):
        found[reason(name, key)].setdefault(name, []).append(key)
    lines = ["", "## What was not tried", "", *NOT_TRIED]
    for why in sorted(found):
        lines += ["", f"### {why}", ""]
        lines += [f"- {name}: {', '.join(f'`{each}`' for each in keys)}" for name, keys in found[why].items()]
    return lines


def reason(type_name: str, key: str) -> str:
    """Return why no value of a property was tried; "" if that is not known."""
    reasons: Mapping[str, str] = {**REASONS["properties"], **REASONS["types"], **REASONS["one"]}
    family = next((each for each in REASONS["types"] if type_name.startswith(each)), "")
    return reasons.get(f"{type_name} {key}") or reasons.get(family) or reasons.get(key) or ""


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = (
        value if isinstance(value, str) and value.strip() == value and value else json.dumps(value, ensure_ascii=False)
    )
    return f"`{text}`".replace("|", "\\|").replace("\n", " ")
