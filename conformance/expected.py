"""What is expected of templates that do not pass: `expected.yaml`, written by people who read the templates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.corpus import Case
from conformance.judge import verdict
from conformance.trial import Outcome

FILE = Path(__file__).with_name("expected.yaml")
KINDS = {
    "invalid": "invalid, and refused, or an output says why it has no value",
    "foreign": "needs what is not part of the service",
    "pending": "valid, but not supported yet",
}


@dataclass(frozen=True, slots=True)
class Expected:
    """Why a template does not pass. kind — of `KINDS`; says — text that the answer must hold."""

    kind: str
    because: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome beside what was expected. wrong — what is not as it should be, "" for nothing."""

    outcome: Outcome
    expected: Expected | None
    wrong: str = ""

    @property
    def kind(self) -> str:
        return "wrong" if self.wrong else self.expected.kind if self.expected is not None else "passes"


def load(path: Path = FILE) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def by_path(content: Mapping[str, Any]) -> dict[str, Expected]:
    """Fails: ValueError for a path that stands there twice, or a kind that there is not."""
    found: dict[str, Expected] = {}
    for group in content["templates"]:
        if group["kind"] not in KINDS:
            raise ValueError(f"there is no kind {group['kind']}")
        for path in group["paths"]:
            if path in found:
                raise ValueError(f"{path} stands there twice")
            found[path] = Expected(group["kind"], group["because"], group.get("says", ""))
    return found


def judged(case: Case, outcome: Outcome, table: Mapping[str, Expected]) -> Judged:
    """The rules of the language come first: what they forbid needs no entry in the table."""
    broken = verdict(case)
    expected = Expected("invalid", broken) if broken else table.get(case.path)
    return Judged(outcome, expected, next(_objections(outcome, expected), ""))


def _objections(outcome: Outcome, expected: Expected | None) -> Iterator[str]:
    stopped = f"{outcome.reached or 'refused'}: {outcome.fault}: {outcome.message}"
    if expected is None:
        if not outcome.passed:
            yield f"valid, but stopped at {stopped}"
        return
    if outcome.passed:
        yield f"it passes, though it is expected to be {expected.kind}: {expected.because}"
    # Some outputs can be judged only once everything is there.
    if expected.kind == "invalid" and not (outcome.refused or outcome.reached == "complete"):
        yield f"it should be refused ({expected.because}), but stopped at {stopped}"
    if outcome.refused and not outcome.located:
        yield f"the answer names no place: {outcome.message}"
    if expected.says not in outcome.message:
        yield f"the answer does not say {expected.says!r}: {outcome.message}"
