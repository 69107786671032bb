"""Marks of people and their programs as verdicts of health policies. Pure (ADR 0087).

What a person says of a member counts as what a detector says, until the first action of its recovery has been tried:
from then on looks decide whether that has helped.
"""

from dataclasses import replace

from homeostat.model.answers import Detector, Kind
from homeostat.model.marks import HEALTH_POLICY, Marks, UnhealthyMark
from homeostat.model.node_health import EVIDENCE_MAX, Detected, NodeHealth
from homeostat.planner.policies.verdicts import verdict


def report_of(marks: Marks | None, now: float) -> UnhealthyMark | None:
    """Return the mark of a person, or a program, that holds; None where there is none."""
    mark = marks.unhealthy if marks is not None else None
    return None if mark is None or mark.reporter == HEALTH_POLICY or mark.is_over(now) else mark


def told(mark: UnhealthyMark) -> str:
    """Return what a person says by a mark."""
    return f"{mark.reporter or mark.by or 'a user'} has marked it unhealthy: {mark.reason}"


def is_answered(marks: Marks | None) -> bool:
    """Return whether an action of a recovery has been tried."""
    return marks is not None and marks.recovery is not None and marks.recovery.acted_at is not None


def with_report(node: NodeHealth, marks: Marks | None, now: float) -> NodeHealth:
    """Return the health of a member together with what a person says of it."""
    mark = report_of(marks, now)
    if mark is None or is_answered(marks):
        return node
    finding = verdict(Detector.REPORTER, Kind.UNHEALTHY)
    evidence = told(mark)[:EVIDENCE_MAX]
    one = Detected(Detector.REPORTER.value, finding, mark.since, evidence)
    return replace(node, finding=finding, since=mark.since, reason=evidence, detected=(*node.detected, one))
