"""Health policies as seeds make them, and what their detections may say of a server in truth."""

import random
from collections.abc import Collection, Mapping
from typing import Any

from homeostat.clustering.decisions.policies import stored_health_policy
from homeostat.convergence.health_checks.probes import NOT_PERMITTED, Answer
from homeostat.model.answers import OWN_INABILITIES
from homeostat.model.health_policy import Built, Detection, DetectionType, HealthPolicy, Mode
from tests.simulation.places import are_staffed, asked_from

Spec = dict[str, Any]
SICK = ("error", "soft_deleted", "stopped", "lost")
"""Status words of servers that are unhealthy by polling; events tell of those that are paused, too."""
LADDERS = (
    *(("RECREATE",), ("REBOOT", "RECREATE"), ("REBUILD", "RECREATE"), ("REBOOT", "REBUILD", "RECREATE")),
    *(("page", "RECREATE"), ("REBOOT", "page", "RECREATE"), ("page", "REBOOT")),
    *(("EVACUATE",), ("EVACUATE", "RECREATE"), ("REBOOT", "EVACUATE", "RECREATE"), ("REBOOT",), ("REBUILD", "REBOOT")),
)
FENCES = ((), (), ("COMPUTE",), ("NETWORK",), ("COMPUTE", "NETWORK"), ("STORAGE",), ("COMPUTE", "NETWORK", "STORAGE"))
CANARY = "http://canary/"


def prescribed(rng: random.Random) -> Spec:
    """Any policy that the service carries out."""
    modes = [each for each, weight in _modes(rng) if rng.random() < weight] or [_modes(rng)[0][0]]
    rng.shuffle(modes)
    polled = sum(each["type"] != DetectionType.EVENTS for each in modes)
    detection: Spec = {
        "interval": rng.choice((5, 10, 20)),
        "node_update_timeout": rng.choice((0, 0, 0, 30)),
        "failures": rng.choice((1, 1, 1, 2, 3)),
        "successes": rng.choice((1, 1, 2)),
        "detection_modes": modes,
    }
    if polled > 1:
        detection |= rng.choice(({}, {"recovery_conditional": "ALL_FAILED"}, {"quorum": 2}))
    if any(each["type"] == DetectionType.URL for each in modes) and rng.random() < 0.3:
        detection["canary_url"] = CANARY
    recovery: Spec = {
        "actions": [_action(rng, name) for name in rng.choice(LADDERS)],
        "fencing": list(rng.choice(FENCES)),
        "mode": rng.choice(("automatic",) * 8 + ("observe", "propose", "propose")),
        "verify_timeout": rng.choice((5, 20, 60)),
        "quarantine": rng.random() < 0.2,
        **rng.choice(({}, {}, {"max_unhealthy": rng.choice(("1", "2", "40%", "60%"))})),
        **rng.choice(({}, {}, {"max_per_hour": rng.choice((1, 2, 4))})),
        **rng.choice(({}, {"by_hint": True}, {"by_hint": False})),
    }
    return _spec(detection, recovery)


def _modes(rng: random.Random) -> list[tuple[Spec, float]]:
    """Modes of detection, each with its chance."""
    url: Spec = {
        "poll_url": "http://{physicalid}/health",
        "poll_url_healthy_response": "ok",
        "poll_url_retry_limit": rng.choice((1, 2, 3)),
        "poll_url_retry_interval": rng.choice((1, 3)),
        "poll_url_conn_error_as_unhealthy": rng.random() < 0.9,
    }
    return [
        ({"type": "NODE_STATUS_POLLING"}, 0.5),
        ({"type": "LIFECYCLE_EVENTS"}, 0.25),
        ({"type": "HYPERVISOR_STATUS_POLLING"}, 0.35),
        ({"type": "NODE_STATUS_POLL_URL", "options": url}, 0.5),
    ]


def with_urls(spec: Spec, rng: random.Random) -> Spec:
    """The policy with a URL that is asked instead of its first way to see, if it asks none."""
    detection = spec["properties"]["detection"]
    first, *others = detection["detection_modes"]
    if any(each["type"] == DetectionType.URL for each in (first, *others)):
        return spec
    url = next(mode for mode, _ in _modes(rng) if mode["type"] == DetectionType.URL)
    kept = [first] if first["type"] == DetectionType.EVENTS else []
    return _spec({**detection, "detection_modes": [*kept, url, *others]}, spec["properties"]["recovery"])


def _action(rng: random.Random, name: str) -> Spec:
    if name == "page":
        return {"name": name, "type": "WEBHOOK", "timeout": 20, "params": {"url": "http://tool/{physicalid}"}}
    return {"name": name, "params": {"type": rng.choice(("SOFT", "HARD"))}} if name == "REBOOT" else {"name": name}


def _spec(detection: Spec, recovery: Spec) -> Spec:
    return {
        "type": "senlin.policy.health",
        "version": "1.2",
        "properties": {"detection": detection, "recovery": recovery},
    }


def amended(spec: Spec, places: Collection[str]) -> Spec:
    """The policy with which everything is seen and can be recovered by itself: what a user attaches in the end.

    places — that have workers.
    """
    if not are_staffed(stored_health_policy(spec), places):
        spec = asked_from(spec, places)
    detection, recovery = (dict(spec["properties"][part]) for part in ("detection", "recovery"))
    if not _sees_what_is_gone(stored_health_policy(spec)):
        detection["detection_modes"] = [{"type": DetectionType.STATUS.value}]
        detection.pop("recovery_conditional", None), detection.pop("quorum", None)
    for name in ("max_unhealthy", "max_per_hour"):
        recovery.pop(name, None)
    recovery["mode"] = Mode.AUTOMATIC.value
    if all(each["name"] != Built.RECREATE for each in recovery["actions"]):
        recovery["actions"] = [*recovery["actions"], {"name": "RECREATE"}]
    return _spec(detection, recovery)


def recovers_all(spec: Spec, places: Collection[str]) -> bool:
    """Does it recover everything that it sees, with consent or without, and however much it is?"""
    policy = stored_health_policy(spec)
    anew = any(each.name == Built.RECREATE for each in policy.actions) and _sees_what_is_gone(policy)
    free = policy.mode is Mode.AUTOMATIC and not (policy.max_unhealthy or policy.per_hour)
    return free and anew and are_staffed(policy, places)


def _sees_what_is_gone(policy: HealthPolicy) -> bool:
    """Does it find a server unhealthy that does not exist any more?"""
    failed = sum(counts_silence(each) for each in policy.polled)
    return policy.polled != policy.detections or policy.is_unhealthy(failed)


def sees(policy: HealthPolicy, server: Mapping[str, Any], *, host_down: bool) -> bool:
    """May a policy find a server unhealthy whose URL answers as its state lets it?"""
    status = str(server["status"])
    said = {
        DetectionType.STATUS: status in SICK,
        DetectionType.EVENTS: status in (*SICK, "paused"),
        DetectionType.HYPERVISOR: host_down,
        DetectionType.URL: status != "active" or host_down,
    }
    failed = sum(said[each.type] for each in policy.polled if counts_silence(each))
    return policy.is_unhealthy(failed) or (policy.polled != policy.detections and said[DetectionType.EVENTS])


def counts_silence(detection: Detection) -> bool:
    return detection.type is not DetectionType.URL or detection.no_answer_is_unhealthy


def is_bad(answer: Answer, detection: Detection) -> bool:
    """Is this the answer of an unhealthy server? Not where the service could not ask, or may not."""
    if answer.kind in OWN_INABILITIES or answer.status in NOT_PERMITTED:
        return False
    if answer.status == 0:
        return detection.no_answer_is_unhealthy
    return answer.status >= 400 or answer.text != "ok"
