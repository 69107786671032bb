"""Marks of users and their programs as verdicts of health policies. Pure (ADR 0087).

A user's report about a member counts like the answer of a detector until the first action of its recovery: from then on
looks decide whether the recovery has helped.
"""

from dataclasses import replace

from homeostat.model.answers import Detector, Kind
from homeostat.model.marks import HEALTH_POLICY, Marks, UnhealthyMark
from homeostat.model.node_health import EVIDENCE_MAX, Detected, NodeHealth
from homeostat.planner.policies.verdicts import verdict


def report_of(marks: Marks | None, now: float) -> UnhealthyMark | None:
    """Return the valid mark of a user or a program; None if there is none."""
    mark = marks.unhealthy if marks is not None else None
    return None if mark is None or mark.reporter == HEALTH_POLICY or mark.is_over(now) else mark


def report_text(mark: UnhealthyMark) -> str:
    """Return the text of a user's mark."""
    return f"{mark.reporter or mark.by or 'a user'} has marked it unhealthy: {mark.reason}"


def is_answered(marks: Marks | None) -> bool:
    """Return whether a recovery action was tried."""
    return marks is not None and marks.recovery is not None and marks.recovery.acted_at is not None


def with_report(node: NodeHealth, marks: Marks | None, now: float) -> NodeHealth:
    """Return the health of a member including a user's report."""
    mark = report_of(marks, now)
    if mark is None or is_answered(marks):
        return node
    finding = verdict(Detector.REPORTER, Kind.UNHEALTHY)
    evidence = report_text(mark)[:EVIDENCE_MAX]
    report = Detected(Detector.REPORTER.value, finding, mark.since, evidence)
    return replace(node, finding=finding, since=mark.since, reason=evidence, detected=(*node.detected, report))
