"""The health policy: detection and recovery of unhealthy nodes. Pure.

`check` accepts Senlin's policies, and more: several actions, events together with polling, the former format with a
single `detection.type`, and two common misspellings. Properties that Senlin lacks include `detection.quorum`,
`recovery.mode`, `recovery.max_unhealthy` and `recovery.preserve`. `health_policy` converts a checked spec for the
engine.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from homeostat.clustering.decisions import detection_forms, placeholders
from homeostat.clustering.decisions.definitions import invalid_spec
from homeostat.clustering.decisions.detection_forms import OPTIONS
from homeostat.clustering.decisions.policy_types import NOT_NEGATIVE, check_url, supported
from homeostat.clustering.decisions.specs import Path, Spec, SpecType, resolved
from homeostat.model.health_policy import (
    CALL_S,
    VANTAGE_NAME,
    ActionType,
    Built,
    Detection,
    DetectionType,
    Fence,
    HealthPolicy,
    Mode,
    Preserved,
    RecoveryAction,
    VantagePoint,
)
from homeostat.resources.schema import Schema, between, boolean, integer, listing, mapping, one_of, pattern, text
from homeostat.templates import patterns

ANY, ALL = "ANY_FAILED", "ALL_FAILED"
ASKED = (Built.REBOOT, Built.REBUILD, Built.RECREATE)
"""Actions that a user may request."""
LOOKS_MAX = 100
"""Maximum of `failures` and `successes`."""
VANTAGE_POINTS_MAX, WEIGHT_MAX = 9, 100
"""Maximum of vantage points of a policy, and of the weight of each."""
MODES_MAX, ACTIONS_MAX = 16, 16
"""Maximum of modes and actions of a policy: they cost time for each node."""

_MODE: Schema = {
    "type": text("How.", required=True, constraints=(one_of(*DetectionType),)),
    "options": mapping("Of the type.", default={}, fields=OPTIONS),
}
_ACTION: Schema = {
    "name": text("REBOOT, REBUILD, RECREATE, EVACUATE, or the name of a workflow or webhook.", required=True),
    "type": text(
        "Who carries it out; without it, this service.",
        constraints=(one_of(ActionType.WORKFLOW, ActionType.WEBHOOK),),
    ),
    "params": mapping("Parameters of the action: of a workflow, its input."),
    "timeout": integer(
        "Seconds that a workflow, or a webhook, may take.", default=CALL_S, constraints=(between(1, 86400),)
    ),
}
_VANTAGE_POINT: Schema = {
    "name": text(
        "Name with which its workers were started: `default` for those without one.",
        required=True,
        constraints=(pattern(VANTAGE_NAME),),
    ),
    "weight": integer("How much it counts.", default=1, constraints=(between(1, WEIGHT_MAX),)),
}
HEALTH = SpecType(
    "senlin.policy.health",
    schema={
        "detection": mapping(
            "When a node is unhealthy.",
            required=True,
            fields={
                "interval": integer("Seconds between checks.", default=60),
                "node_update_timeout": integer(
                    "Seconds after a change of a node in which it is not judged.",
                    default=300,
                    constraints=(NOT_NEGATIVE,),
                ),
                "recovery_conditional": text(
                    "How many of the modes must fail.", default=ANY, constraints=(one_of(ALL, ANY),)
                ),
                "quorum": integer(
                    "So many modes must fail, instead of recovery_conditional.", constraints=(between(1),)
                ),
                "failures": integer(
                    "Looks in a row that have to fail until a node is unhealthy.",
                    default=1,
                    constraints=(between(1, LOOKS_MAX),),
                ),
                "successes": integer(
                    "Looks in a row that have to be well until a node is healthy again.",
                    default=1,
                    constraints=(between(1, LOOKS_MAX),),
                ),
                "canary_url": text(
                    "URL that is asked as well: where it does not answer, no other answer counts.", default=""
                ),
                "vantage_points": listing(
                    "Places from which URLs are asked; without any, by whichever worker looks.",
                    default=[],
                    items=mapping("A place.", fields=_VANTAGE_POINT),
                ),
                "vantage_quorum": integer(
                    "Weight of the places that must find a URL failed; more than half of all, if it is left out.",
                    constraints=(between(1),),
                ),
                "detection_modes": listing(
                    "How nodes are checked.", required=True, items=mapping("A mode.", fields=_MODE)
                ),
            },
        ),
        "recovery": mapping(
            "What recovers a node.",
            required=True,
            fields={
                "actions": listing(
                    "Actions, tried one by one until the node is healthy; RECREATE without any.",
                    default=[],
                    items=mapping("An action.", fields=_ACTION),
                ),
                "fencing": listing(
                    "What is cut off before an action.",
                    default=[],
                    items=text("What.", any_case=True, constraints=(one_of(*Fence),)),
                ),
                "node_delete_timeout": integer(
                    "Seconds that the deletion of a node may take.", default=20, constraints=(NOT_NEGATIVE,)
                ),
                "node_force_recreate": boolean("Make a node again even if its deletion fails.", default=False),
                "mode": text(
                    "observe: only say what is unhealthy; propose: wait for an approval; automatic: recover.",
                    default=Mode.AUTOMATIC.value,
                    any_case=True,
                    constraints=(one_of(*Mode),),
                ),
                "max_unhealthy": text("Most unhealthy nodes that are recovered: a count, or a share such as 40%."),
                "verify_timeout": integer(
                    "Seconds that a node has to become healthy after an action, before the next one is tried.",
                    default=120,
                    constraints=(between(1, 86400),),
                ),
                "max_per_hour": integer(
                    "Most recoveries of the cluster begun in an hour; without it, any number.",
                    constraints=(between(1),),
                ),
                "by_hint": boolean(
                    "Try what the status suggests before the actions: start what is stopped, unpause what is paused. "
                    "Without it, true with LIFECYCLE_EVENTS alone."
                ),
                "inside_first": boolean(
                    "Converge what is lost or broken in a node that is a stack before the actions.", default=True
                ),
                "quarantine": boolean(
                    "Keep a node that is made again, cut off, instead of deleting it.", default=False
                ),
                "one_first": boolean(
                    "Of nodes that fail together, on one host, in one zone or network, recover one first, and the "
                    "others once that has helped.",
                    default=True,
                ),
                "preserve": listing(
                    "What a node that is made again keeps: its name in any case; ports and volumes that were attached "
                    "to it besides its own; the fixed addresses of its own ports.",
                    default=[],
                    items=text("What.", any_case=True, constraints=(one_of(*Preserved),)),
                ),
            },
        ),
    },
    support={
        "1.0": supported("2017.02", "2018.06"),
        "1.1": supported("2018.09"),
        "1.2": supported("2020.09"),
    },
    versions=("1.0", "1.1", "1.2"),
)

_BUILT_IN_PARAMS: Mapping[str, Schema] = {
    Built.REBOOT: {"type": text(default="HARD", any_case=True, constraints=(one_of("SOFT", "HARD"),))},
    Built.REBUILD: {"image": text()},
    Built.EVACUATE: {"host": text()},
    Built.RECREATE: {"fence_compute": boolean(default=False)},
}
_WEBHOOK: Schema = {
    "url": text(required=True),
    "method": text(default="POST", any_case=True, constraints=(one_of("POST", "PUT", "GET"),)),
    "headers": mapping(default={}),
    "body": mapping(default={}),
}
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_OWN_HEADERS = re.compile(
    r"(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|idempotency-key|proxy-.*)",
    re.IGNORECASE,
)
"""Headers of the transport, or set by this service."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Limits of the operator, in seconds, for the interval between checks."""

    least_s: int = 60
    most_s: int = 3600


def check(checked: Callable[[Callable[[Mapping[str, Any]], Mapping[str, Any]]], Spec], intervals: Intervals) -> Spec:
    """Check a spec of a health policy.

    Args:
        checked: Checks the spec against its schema, after its argument has changed the properties.

    Raises:
        Rejected: ESchema or InvalidSpec.
    """
    warnings: list[str] = []

    def before(properties: Mapping[str, Any]) -> Mapping[str, Any]:
        present, new_warnings = detection_forms.present_form(properties)
        warnings.extend(new_warnings)
        return present

    spec = checked(before)
    detection, recovery = spec.properties["detection"], spec.properties["recovery"]
    _check_interval(detection["interval"], intervals)
    _check_quorum(spec.sent, detection)
    _check_vantage_points(detection)
    _check_counts(detection["detection_modes"], recovery["actions"])
    _check_modes(detection["detection_modes"], warnings)
    for place, action in enumerate(recovery["actions"]):
        _check_action(action, ("properties", "recovery", "actions", place), warnings)
    _check_max_unhealthy(recovery["max_unhealthy"])
    _check_preserve(recovery)
    if detection["canary_url"]:
        check_url(detection["canary_url"], ("properties", "detection", "canary_url"))
    return replace(spec, warnings=tuple(warnings))


def _check_interval(interval: int, intervals: Intervals) -> None:
    start = f"Specified interval of {interval} seconds has to be"
    if interval < intervals.least_s:
        raise invalid_spec(f"{start} at least health_check_interval_min of {intervals.least_s} seconds.")
    if interval > intervals.most_s:
        raise invalid_spec(f"{start} at most check_interval_max of {intervals.most_s} seconds.")


def _check_quorum(sent: Mapping[str, Any], detection: Mapping[str, Any]) -> None:
    quorum, path = detection["quorum"], ("properties", "detection", "quorum")
    if quorum is None:
        return
    polled = sum(mode["type"] != DetectionType.EVENTS for mode in detection["detection_modes"])
    if sent["properties"]["detection"].get("recovery_conditional") is not None:
        raise invalid_spec("quorum and recovery_conditional say the same thing; leave one of them out", *path)
    if quorum > polled:
        raise invalid_spec(f"quorum is {quorum}, but there are {polled} modes that poll", *path)


def _check_vantage_points(detection: Mapping[str, Any]) -> None:
    points, quorum = detection["vantage_points"], detection["vantage_quorum"]
    path: Path = ("properties", "detection", "vantage_points")
    names = [point["name"] for point in points]
    if len(names) > VANTAGE_POINTS_MAX:
        raise invalid_spec(f"There are {len(names)}; at most {VANTAGE_POINTS_MAX} are possible", *path)
    if len(set(names)) < len(names):
        raise invalid_spec("Each place is named once; give it a weight instead", *path)
    whole = sum(point["weight"] for point in points)
    if quorum is not None and quorum > whole:
        path = ("properties", "detection", "vantage_quorum")
        raise invalid_spec(f"vantage_quorum is {quorum}, but all places together weigh {whole}", *path)


def _check_counts(modes: Sequence[Any], actions: Sequence[Any]) -> None:
    for path, entries, most in (
        (("properties", "detection", "detection_modes"), modes, MODES_MAX),
        (("properties", "recovery", "actions"), actions, ACTIONS_MAX),
    ):
        if len(entries) > most:
            raise invalid_spec(f"There are {len(entries)}; at most {most} are possible", *path)


def _check_modes(modes: list[Mapping[str, Any]], warnings: list[str]) -> None:
    if not modes:
        warnings.append("properties.detection.detection_modes is empty: nothing is checked")
    for place, mode in enumerate(modes):
        path = ("properties", "detection", "detection_modes", place, "options")
        if mode["type"] == DetectionType.URL:
            _check_poll_url(mode["options"], path)
        elif mode["options"]["poll_url"]:
            warnings.append(f"detection_modes[{place}]: poll_url has no effect on {mode['type']}")
    if any(mode in modes[:place] for place, mode in enumerate(modes)):
        listed = ", ".join(mode["type"] for mode in modes)
        raise invalid_spec(f"Duplicate detection modes are not allowed in health policy: {listed}")


def _check_poll_url(options: Mapping[str, Any], path: Path) -> None:
    url = options["poll_url"]
    if not url:
        raise invalid_spec(f"{DetectionType.URL} needs a poll_url", *path)
    _check_placeholders(url, (*path, "poll_url"))
    check_url(placeholders.expanded_url(url, placeholders.SAMPLE), (*path, "poll_url"))
    try:
        patterns.compiled(options["poll_url_healthy_response"])
    except ValueError as error:
        message = f"poll_url_healthy_response is no regular expression: {error}"
        raise invalid_spec(message, *path, "poll_url_healthy_response") from error


def _check_placeholders(text: str, path: Path) -> None:
    strange = placeholders.unknown_in(text)
    if strange:
        known = ", ".join(f"{{{name}}}" for name in placeholders.KNOWN)
        raise invalid_spec(f"There is no placeholder {strange}; there is {known}", *path)


def _check_action(action: Mapping[str, Any], path: Path, warnings: list[str]) -> None:
    name, params = action["name"], action["params"] or {}
    if action["type"] is None:
        _named(name, path)
        known = _BUILT_IN_PARAMS[name.upper()]
        strange = sorted(params.keys() - known.keys())
        if strange:
            warnings.append(f"recovery.actions: {', '.join(strange)} has no effect on {name.upper()}")
    complete = _params(action, path)
    if action["type"] == ActionType.WEBHOOK:
        _check_webhook(complete, (*path, "params"))


def _check_webhook(params: Mapping[str, Any], path: Path) -> None:
    _check_placeholders(params["url"], (*path, "url"))
    check_url(placeholders.expanded_url(params["url"], placeholders.SAMPLE), (*path, "url"))
    for name, value in params["headers"].items():
        if not (isinstance(value, str) and _HEADER.fullmatch(name) and value.isascii() and value.isprintable()):
            text = "A header has a name of letters, digits and -, and one line of ASCII characters"
            raise invalid_spec(text, *path, "headers")
        if _OWN_HEADERS.fullmatch(name):
            raise invalid_spec(f"The header {name} is set by this service; leave it out", *path, "headers")


def _named(name: str, path: Path) -> None:
    if name.upper() not in tuple(Built):
        message = f"'{name}' must be one of the allowed values: {', '.join(Built)}"
        more = "; another name needs a type, MISTRAL_WORKFLOW or WEBHOOK"
        raise invalid_spec(message + more, *path, "name")


def _params(action: Mapping[str, Any], path: Path = ()) -> dict[str, Any]:
    """Return the parameters of an action with their defaults.

    Raises:
        Rejected: ESchema.
    """
    params, place = action["params"] or {}, (*path, "params")
    if action["type"] == ActionType.WORKFLOW:
        return dict(params)
    if action["type"] == ActionType.WEBHOOK:
        # Policies stored by an earlier version may have further parameters: ignore them.
        return resolved(
            _WEBHOOK, params if path else {name: params[name] for name in _WEBHOOK if name in params}, place
        )
    known = _BUILT_IN_PARAMS[action["name"].upper()]
    return resolved(known, {name: value for name, value in params.items() if name in known}, place)


def _check_max_unhealthy(limit: str | None) -> None:
    path = ("properties", "recovery", "max_unhealthy")
    if limit is None:
        return
    digits = limit.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 7):
        raise invalid_spec(f"'{limit[:200]}' is neither a count nor a share such as 40%", *path)
    if limit.endswith("%") and not 1 <= int(digits) <= 100:
        raise invalid_spec("A share lies between 1% and 100%", *path)


def _check_preserve(recovery: Mapping[str, Any]) -> None:
    kept = sorted({*map(Preserved, recovery["preserve"])} - {Preserved.NAME})
    if kept and recovery["quarantine"]:
        path = ("properties", "recovery", "preserve")
        raise invalid_spec(f"A node in quarantine keeps its {', '.join(kept)}; leave quarantine or them out", *path)


def health_policy(spec: Spec) -> HealthPolicy:
    """Return a checked spec as the engine reads it."""
    detection, recovery = spec.properties["detection"], spec.properties["recovery"]
    detections = tuple(_detection(entry) for entry in detection["detection_modes"])
    polled = sum(entry.type is not DetectionType.EVENTS for entry in detections)
    by_conditional = 1 if detection["recovery_conditional"] == ANY else max(1, polled)
    actions = recovery["actions"] or [{"name": Built.RECREATE.value, "type": None, "params": None}]
    points = tuple(VantagePoint(entry["name"], entry["weight"]) for entry in detection["vantage_points"])
    return HealthPolicy(
        interval_s=detection["interval"],
        grace_s=detection["node_update_timeout"],
        quorum=detection["quorum"] or by_conditional,
        detections=detections,
        actions=tuple(_action(entry) for entry in actions),
        fencing=tuple(Fence(entry) for entry in Fence if entry in recovery["fencing"]),
        delete_timeout_s=recovery["node_delete_timeout"],
        force_recreate=recovery["node_force_recreate"],
        mode=Mode(recovery["mode"]),
        max_unhealthy=recovery["max_unhealthy"] or "",
        preserve=frozenset(map(Preserved, recovery["preserve"])),
        failures=detection["failures"],
        successes=detection["successes"],
        canary_url=detection["canary_url"],
        verify_s=recovery["verify_timeout"],
        per_hour=recovery["max_per_hour"] or 0,
        by_hint=not polled if recovery["by_hint"] is None else recovery["by_hint"],
        inside_first=recovery["inside_first"],
        quarantine=recovery["quarantine"],
        one_first=recovery["one_first"],
        vantage_points=points,
        vantage_quorum=detection["vantage_quorum"] or sum(entry.weight for entry in points) // 2 + 1,
    )


def _detection(mode: Mapping[str, Any]) -> Detection:
    options = mode["options"]
    return Detection(
        DetectionType(mode["type"]),
        options["poll_url"],
        options["poll_url_ssl_verify"],
        options["poll_url_conn_error_as_unhealthy"],
        options["poll_url_healthy_response"],
        max(1, options["poll_url_retry_limit"]),
        options["poll_url_retry_interval"],
        options["hypervisor_disabled_as_unhealthy"],
    )


def _action(action: Mapping[str, Any]) -> RecoveryAction:
    kind = ActionType(action["type"] or ActionType.BUILT_IN)
    name = action["name"].upper() if kind is ActionType.BUILT_IN else action["name"]
    return RecoveryAction(kind, name, _params(action), action.get("timeout") or CALL_S)


def problem_on(policy: HealthPolicy, profile: str, is_server: bool) -> str:
    """Return why a policy does not fit clusters with nodes of a type of profiles; "" if it does.

    Args:
        profile: Name of the profile type.
        is_server: Whether the nodes are servers.
    """
    if is_server:
        return ""
    kept = sorted(policy.preserve - {Preserved.NAME})
    if kept:
        return f"recovery.preserve: {', '.join(kept)} are only applicable to os.nova.server clusters, not to {profile}."
    for action in policy.actions:
        if action.type is ActionType.BUILT_IN and action.name != Built.RECREATE:
            return f"Recovery action {action.name} is only applicable to os.nova.server clusters."
    for detection in policy.detections:
        if detection.type in (DetectionType.HYPERVISOR, DetectionType.BALANCER):
            return f"Detection mode {detection.type} is only applicable to os.nova.server clusters, not to {profile}."
    return ""


def recovery_inputs(spec: Spec, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs of a recovery of a cluster with a policy, whose first requestable action is the default."""
    if inputs.get("operation") or inputs.get("operation_params"):
        return inputs
    policy = health_policy(spec)
    first = next((action for action in policy.actions if action.name in ASKED), None)
    name = Built.RECREATE.value if first is None else first.name
    params = {} if first is None else {name: value for name, value in first.params.items() if value is not None}
    if name == Built.RECREATE and Fence.COMPUTE in policy.fencing:
        params["fence_compute"] = True
    limits = {"delete_timeout": policy.delete_timeout_s, "force_recreate": policy.force_recreate}
    whole = {"operation": name, "operation_params": params, **limits}
    return {**whole, **{key: value for key, value in inputs.items() if value is not None}}


def recover_data(spec: Spec) -> dict[str, Any]:
    """Return the data of the policy for an action on a cluster, `data.health`."""
    recovery = spec.properties["recovery"]
    actions = []
    for action in recovery["actions"] or [{"name": Built.RECREATE.value, "type": None, "params": None}]:
        kind = {"type": action["type"]} if action["type"] else {}
        params = {"params": action["params"]} if action["params"] is not None else {}
        actions.append({"name": action["name"], **kind, **params})
    return {"recover_action": actions, "fencing": list(recovery["fencing"])}
