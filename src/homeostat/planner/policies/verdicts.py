"""What each way in which a detector can answer says about a node. Pure (ADR 0087).

The table lists what is believed. Whatever it does not list is unknown: what this service, or the way, is not able to
do says nothing about the node, and neither does an answer of a kind that nobody has thought of.
"""

from collections.abc import Mapping

from homeostat.model.answers import Detector, Kind
from homeostat.model.health_policy import DetectionType
from homeostat.model.node_health import Finding, Look

_WELL, _UNWELL = Finding.HEALTHY, Finding.UNHEALTHY
_KEPT = {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL, Kind.GONE: _UNWELL}
UNCONNECTED = (Kind.REFUSED, Kind.BROKEN_OFF, Kind.INVALID_CERTIFICATE, Kind.SILENT)
"""Answers of URLs that are none; `poll_url_conn_error_as_unhealthy` says whether they count."""
BELIEVED: Mapping[str, Mapping[Kind, Finding]] = {
    DetectionType.STATUS: _KEPT,
    DetectionType.EVENTS: _KEPT,
    DetectionType.HYPERVISOR: _KEPT,
    # That it has no place in a pool says nothing about the node.
    DetectionType.BALANCER: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL},
    # Silence counts here alone: it is for the policy to say whether it does, and a whole group is doubted for it.
    DetectionType.URL: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL, **dict.fromkeys(UNCONNECTED, _UNWELL)},
    Detector.PLACE: {Kind.HEALTHY: _WELL, Kind.UNHEALTHY: _UNWELL},
    Detector.REPORTER: {Kind.UNHEALTHY: _UNWELL},
    Detector.CREATION: {Kind.UNHEALTHY: _UNWELL},
}
"""Detection or detector -> kind of its answer -> what that says of the node."""


def verdict(detector: str, kind: Kind) -> Finding:
    """Return what an answer says about a node; unknown for whatever is not believed."""
    return BELIEVED.get(detector, {}).get(kind, Finding.UNKNOWN)


def look(detector: str, kind: Kind, evidence: str = "", hint: str = "", *, certain: bool = False) -> Look:
    """Return the look of a detector that has had such an answer, see `Look`."""
    return Look(verdict(detector, kind), evidence, hint, certain)
