"""Results as a table, as JSON, and as a page of the documentation, which `python -m conformance.report` writes."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.expected import KINDS, Judged, load

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "conformance.md"
GENERATED = "<!-- Written by `python -m conformance.report` from conformance/results.json. -->\n"
COLUMNS = {"passes": "pass", "invalid": "invalid", "foreign": "foreign", "pending": "pending", "wrong": "wrong"}


def summary(all_judged: Iterable[Judged]) -> dict[str, Any]:
    """What is kept of a run: counts by repository, and the templates that do not pass."""
    counts: dict[str, Counter[str]] = {}
    kept: dict[str, dict[str, str]] = {}
    for each in all_judged:
        count = counts.setdefault(each.outcome.repository, Counter())
        count[each.kind] += 1
        if each.kind not in ("invalid", "foreign"):
            count["valid"] += 1
            count["accepted"] += each.outcome.reached != "" and not each.outcome.refused
            count["core"] += each.outcome.core
            count["core_passes"] += each.outcome.core and each.kind == "passes"
        if each.kind != "passes":
            kept[each.outcome.path] = {"kind": each.kind, "because": _because(each)}
    return {
        "repositories": {name: dict(sorted(each.items())) for name, each in sorted(counts.items())},
        "templates": kept,
    }


def _because(each: Judged) -> str:
    return each.wrong or (each.expected.because if each.expected is not None else "")


def table(found: Mapping[str, Any]) -> str:
    """The counts for a terminal."""
    names = [*found["repositories"], "all"]
    width = max(map(len, names))
    head = f"{'':{width}}  templates" + "".join(f"{title:>9}" for title in COLUMNS.values())
    return "\n".join([head, *(_line(name.ljust(width), _counts(found, name)) for name in names), "", *_shares(found)])


def _line(name: str, counts: Mapping[str, int]) -> str:
    return f"{name}  {_sum(counts):9}" + "".join(f"{counts.get(kind, 0):9}" for kind in COLUMNS)


def _counts(found: Mapping[str, Any], name: str) -> Mapping[str, int]:
    if name in found["repositories"]:
        return found["repositories"][name]  # type: ignore[no-any-return]
    return sum((Counter(each) for each in found["repositories"].values()), Counter())


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.get(kind, 0) for kind in COLUMNS)


def _shares(found: Mapping[str, Any]) -> list[str]:
    counts = _counts(found, "all")
    return [
        _share("Valid templates that are accepted and planned", counts.get("accepted", 0), counts.get("valid", 0)),
        _share(
            "Those of types of Nova, Neutron, Cinder, Octavia and Heat alone that deploy, do nothing when updated with "
            "the same, and leave nothing when deleted",
            counts.get("core_passes", 0),
            counts.get("core", 0),
        ),
    ]


def _share(what: str, part: int, whole: int) -> str:
    return f"{what}: {part} of {whole} ({100 * part / whole:.1f} %)." if whole else f"{what}: none."


def page() -> str:
    """The reference page, from the results of the last full run that was recorded."""
    found, repositories = stored(), load()["repositories"]
    lines = [
        GENERATED,
        "# Conformance",
        "",
        "Templates that others wrote for Heat, tried on Homeostat. Each is validated and planned, deployed on the",
        "simulated cloud in virtual time, updated with the same template, which must change nothing, and deleted,",
        "which must leave nothing. Templates that others use as types are tried on their own too; those that lack a",
        "version, which is a mistake, also with one. Environments beside a template are used, parameters that lack a",
        "value get a made-up one, and scripts that are not there are a comment.",
        "",
        "`make conformance CORPUS=FOLDER` tries a folder of templates; `ONLY=TEXT` those with TEXT in their paths.",
        "",
        "| repository | revision | templates | pass | invalid | foreign | pending | wrong |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(found, repositories, name) for name in [*found["repositories"], "all"]),
        "",
        *(f"- {share}" for share in _shares(found)),
        "",
        "*invalid*: the template breaks a rule of the language or of a type, and the answer names the place.",
        "*foreign*: it needs what is not part of the service. *pending*: it is valid, but not supported yet.",
        "*wrong*: what becomes of it is a defect.",
        "",
        "## Templates that do not pass",
    ]
    for kind, meaning in {"wrong": "defects", **dict(reversed(KINDS.items()))}.items():
        lines += _section(kind, meaning, found["templates"])
    return "\n".join([*lines, ""])


def _row(found: Mapping[str, Any], repositories: Mapping[str, Any], name: str) -> str:
    counts = _counts(found, name)
    revision = repositories.get(name, {}).get("revision", "")
    cells = [name.replace("+", "/"), revision, _sum(counts), *(counts.get(kind, 0) for kind in COLUMNS)]
    return f"| {' | '.join(map(str, cells))} |"


def _section(kind: str, meaning: str, templates: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    by_reason: dict[str, list[str]] = {}
    for path, each in templates.items():
        if each["kind"] == kind:
            reason, _, detail = each["because"].partition(": ")
            by_reason.setdefault(reason, []).append(f"`{path}`" + (f": {_escaped(detail)}" if detail else ""))
    if not by_reason:
        return []
    lines = ["", f"### {kind.capitalize()}: {meaning}"]
    for reason, shown in sorted(by_reason.items()):
        lines += ["", f"{_escaped(reason[0].upper() + reason[1:].rstrip('.'))} ({len(shown)}):", ""]
        lines += [f"- {each}" for each in sorted(shown)]
    return lines


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def stored() -> dict[str, Any]:
    """The results of the last full run that was recorded."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def record(found: Mapping[str, Any]) -> None:
    """Keep the summary of a full run, and write the page."""
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
