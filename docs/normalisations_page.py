"""The page of what services make of values: from the table that the tests on a real OpenStack record."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.type_pages import row

RECORDED = Path(__file__).parent / "normalisations.json"
HEAD = """\
# What services make of values

Services store some values otherwise than templates write them: in another case, without a range, in another
order. None of that is drift, and nothing is sent again for it ([ADR
0097](../adr/0097-what-an-answer-shows-is-what-the-service-makes-of-a-value.md)). Each value here was set with a
creation on a real OpenStack; where the property can change in place, it was then taken out of the template and set
again by an update. `$name` stands for the id or the name of another thing.

A value is

- *the same*: the service shows it as it was sent;
- *known*: it shows it otherwise, and the two are compared as the same;
- *accepted*: it shows another value, which its answer has shown to be what it makes of ours;
- *refused*: the resource fails with what the service says.

None of that drifts; for part of Networking it was also compared with the default of the service, to which a property
goes back that is taken out.
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
        lines += ["", f"## {type_name}", "", row("property", "sent", "shown", "it is"), "|---|---|---|---|"]
        lines += [
            row(f"`{key}`", _text(each["sent"]), _text(each["shown"]), WORDS[each["how"]])
            for key, each in of_type[type_name]
        ]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = (
        value if isinstance(value, str) and value.strip() == value and value else json.dumps(value, ensure_ascii=False)
    )
    return f"`{text}`".replace("|", "\\|").replace("\n", " ")
