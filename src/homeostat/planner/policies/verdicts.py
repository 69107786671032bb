"""Findings about a node by the kinds of detectors' answers. Pure (ADR 0087).

The table lists the answers that count. All other answers mean unknown: a failure of this service or of the connection
says nothing about the node, and neither does an unforeseen kind of answer.
"""

from collections.abc import Mapping

from homeostat.model.answers import Detector, Kind
from homeostat.model.health_policy import DetectionType
from homeostat.model.node_health import Finding, Look

_WELL, _UNWELL = Finding.HEALTHY, Finding.UNHEALTHY
_KEPT = {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL, Kind.GONE: _UNWELL}
UNCONNECTED = (Kind.REFUSED, Kind.BROKEN_OFF, Kind.INVALID_CERTIFICATE, Kind.SILENT)
"""URL checks without an answer; `poll_url_conn_error_as_unhealthy` decides whether they count."""
BELIEVED: Mapping[str, Mapping[Kind, Finding]] = {
    DetectionType.STATUS: _KEPT,
    DetectionType.EVENTS: _KEPT,
    DetectionType.HYPERVISOR: _KEPT,
    # A missing pool member says nothing about the node.
    DetectionType.BALANCER: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL},
    # Silence counts only here: the policy decides whether it counts, and the silence of a whole group is doubted.
    DetectionType.URL: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL, **dict.fromkeys(UNCONNECTED, _UNWELL)},
    Detector.PLACE: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL},
    Detector.REPORTER: {Kind.UNHEALTHY: _UNWELL},
    Detector.CREATION: {Kind.UNHEALTHY: _UNWELL},
}
"""Detection or detector -> kind of its answer -> finding about the node."""


def verdict(detector: str, kind: Kind) -> Finding:
    """Return the finding about a node by an answer; UNKNOWN if the answer does not count."""
    return BELIEVED.get(detector, {}).get(kind, Finding.UNKNOWN)


def look(detector: str, kind: Kind, evidence: str = "", hint: str = "", *, certain: bool = False) -> Look:
    """Return the look of a detector by its answer, see `Look`."""
    return Look(verdict(detector, kind), evidence, hint, certain)
