"""Data of a health policy in its bindings, as in Senlin. Pure."""

from typing import Any

from homeostat.clustering.decisions import health_forms
from homeostat.clustering.decisions.specs import Spec


def binding_data(spec: Spec) -> dict[str, Any]:
    """Return the data of a binding of the policy, as in Senlin."""
    detection, recovery = spec.properties["detection"], spec.properties["recovery"]
    present, _ = health_forms.present_form(spec.sent["properties"])
    has_options = [mode.get("options") is not None for mode in present["detection"]["detection_modes"]]
    return {
        "interval": detection["interval"],
        "node_update_timeout": detection["node_update_timeout"],
        "recovery_conditional": detection["recovery_conditional"],
        "node_delete_timeout": recovery["node_delete_timeout"],
        "node_force_recreate": recovery["node_force_recreate"],
        "detection_modes": [
            health_forms.shown_mode(mode, with_options)
            for mode, with_options in zip(detection["detection_modes"], has_options, strict=True)
        ],
    }
