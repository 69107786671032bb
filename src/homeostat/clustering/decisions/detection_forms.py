"""Formats of the detection of a health policy: the former format, misspellings, and the format in bindings. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.definitions import invalid_spec
from homeostat.clustering.decisions.specs import Spec
from homeostat.resources.schema import Schema, between, boolean, integer, text

MISSPELT = ("poll_url_conn_error_as_unhealty", "poll_url_conn_error_as_unheathy")
CORRECT = "poll_url_conn_error_as_unhealthy"


ATTEMPTS = 100
OPTIONS: Schema = {
    "poll_url": text("URL that is asked, with placeholders such as {nodename}.", default=""),
    "poll_url_ssl_verify": boolean("Check the certificate.", default=True),
    CORRECT: boolean("A node that cannot be asked is unhealthy.", default=True),
    "poll_url_healthy_response": text("Regular expression that a good answer matches somewhere.", default=""),
    "poll_url_retry_limit": integer("Attempts in all.", default=3, constraints=(between(0, ATTEMPTS),)),
    "poll_url_retry_interval": integer("Seconds between attempts.", default=3, constraints=(between(0, 3600),)),
    "hypervisor_disabled_as_unhealthy": boolean(
        "A host that takes no new servers counts as down, for HYPERVISOR_STATUS_POLLING.", default=False
    ),
}
_SHOWN = tuple(name for name in OPTIONS if name.startswith("poll_url"))


def present_form(properties: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the properties in the present format, and warnings about changes.

    Unknown formats stay unchanged, and fail the check against the schema later.

    Raises:
        Rejected: InvalidSpec: both formats are used together.
    """
    detection = properties.get("detection")
    if not isinstance(detection, Mapping):
        return properties, []
    warnings: list[str] = []
    if "type" in detection:
        detection = _with_modes(detection, warnings)
    modes = detection.get("detection_modes")
    if isinstance(modes, list):
        spelled = [_spelled(mode, place, warnings) for place, mode in enumerate(modes)]
        detection = {**detection, "detection_modes": spelled}
    return {**properties, "detection": detection}, warnings


def _with_modes(detection: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Return the detection of the first version, `{type, options: {interval, …}}`, as a list of a single mode."""
    path = ("properties", "detection")
    if "detection_modes" in detection:
        raise invalid_spec("type is the former form of detection_modes; leave it out", *path, "type")
    options = detection.get("options")
    mode: dict[str, Any] = {"type": detection["type"]}
    rest = {name: value for name, value in detection.items() if name not in ("type", "options")}
    if isinstance(options, Mapping):
        of_detection = {name: options[name] for name in ("interval", "node_update_timeout") if name in options}
        rest = {**of_detection, **rest}
        mode["options"] = {name: value for name, value in options.items() if name not in of_detection}
    elif options is not None:
        mode["options"] = options
    warnings.append("properties.detection.type is the former form; write detection_modes: [{type, options}]")
    return {**rest, "detection_modes": [mode]}


def _spelled(mode: Any, place: int, warnings: list[str]) -> Any:
    options = mode.get("options") if isinstance(mode, Mapping) else None
    if not isinstance(options, Mapping):
        return mode
    wrong = [name for name in MISSPELT if name in options]
    if not wrong:
        return mode
    if len(wrong) > 1 or CORRECT in options:
        path = ("properties", "detection", "detection_modes", place, "options")
        raise invalid_spec(f"{wrong[0]} is a misspelling of {CORRECT}; write it once", *path)
    warnings.append(f"detection_modes[{place}]: {wrong[0]} is understood; it is spelt {CORRECT}")
    return {**mode, "options": {CORRECT if name == wrong[0] else name: value for name, value in options.items()}}


def binding_data(spec: Spec) -> dict[str, Any]:
    """Return the data of a binding of a health policy, as in Senlin."""
    detection, recovery = spec.properties["detection"], spec.properties["recovery"]
    present, _ = present_form(spec.sent["properties"])
    has_options = [mode.get("options") is not None for mode in present["detection"]["detection_modes"]]
    return {
        "interval": detection["interval"],
        "node_update_timeout": detection["node_update_timeout"],
        "recovery_conditional": detection["recovery_conditional"],
        "node_delete_timeout": recovery["node_delete_timeout"],
        "node_force_recreate": recovery["node_force_recreate"],
        "detection_modes": [
            _shown_mode(mode, with_options)
            for mode, with_options in zip(detection["detection_modes"], has_options, strict=True)
        ],
    }


def _shown_mode(mode: Mapping[str, Any], has_options: bool) -> dict[str, Any]:
    """Return the format of a mode in bindings; without options, Senlin shows no values for the attempts."""
    options = dict(mode["options"])
    if not has_options:
        options |= {"poll_url_retry_limit": "", "poll_url_retry_interval": ""}
    return {"type": mode["type"], **{name: options[name] for name in _SHOWN}}
