"""Alarms."""

from homeostat.kinds.base import MAP, TEXT, Kind

KINDS = (
    Kind(
        "alarm",
        "An alarm: a rule on measurements or events, and whom to notify of its state.",
        extra_fixed={"name": TEXT, "type": TEXT},
        extra_mutable={
            "composite_rule": MAP,
            "event_rule": MAP,
            "prometheus_rule": MAP,
            "loadbalancer_member_health_rule": MAP,
            "gnocchi_resources_threshold_rule": MAP,
            "gnocchi_aggregation_by_metrics_threshold_rule": MAP,
            "gnocchi_aggregation_by_resources_threshold_rule": MAP,
        },
        reported={"state": TEXT},
        notes=("Besides, it has the rule of its type, as the field `<type>_rule`.",),
    ),
)
