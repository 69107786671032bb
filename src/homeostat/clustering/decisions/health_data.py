"""What bindings show of a health policy: what Senlin keeps there. Pure."""

from typing import Any

from homeostat.clustering.decisions import health_forms
from homeostat.clustering.decisions.specs import Spec


def binding_data(spec: Spec) -> dict[str, Any]:
    """Return what a binding shows of the policy: what Senlin keeps there."""
    detection, recovery = spec.properties["detection"], spec.properties["recovery"]
    present, _ = health_forms.present_form(spec.sent["properties"])
    given = [each.get("options") is not None for each in present["detection"]["detection_modes"]]
    return {
        "interval": detection["interval"],
        "node_update_timeout": detection["node_update_timeout"],
        "recovery_conditional": detection["recovery_conditional"],
        "node_delete_timeout": recovery["node_delete_timeout"],
        "node_force_recreate": recovery["node_force_recreate"],
        "detection_modes": [
            health_forms.shown_mode(mode, has_options)
            for mode, has_options in zip(detection["detection_modes"], given, strict=True)
        ],
    }
