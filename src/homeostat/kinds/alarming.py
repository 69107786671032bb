"""Alarms."""

from homeostat.kinds.base import BOOLEAN, LIST, MAP, TEXT, Kind

ALARM = Kind(
    name="alarm",
    description="An alarm: a rule on measurements or events, and whom to notify of its state.",
    fixed={
        "name": TEXT,
        "type": TEXT,
        "time_constraints": LIST,
    },
    mutable={
        "enabled": BOOLEAN,
        "composite_rule": MAP,
        "repeat_actions": BOOLEAN,
        "severity": TEXT,
        "alarm_actions": LIST,
        "ok_actions": LIST,
        "insufficient_data_actions": LIST,
        "description": TEXT,
        "event_rule": MAP,
        "prometheus_rule": MAP,
        "loadbalancer_member_health_rule": MAP,
        "gnocchi_resources_threshold_rule": MAP,
        "gnocchi_aggregation_by_metrics_threshold_rule": MAP,
        "gnocchi_aggregation_by_resources_threshold_rule": MAP,
    },
    reported={
        "state": TEXT,
    },
    notes=("Besides, it has the rule of its type, as the field `<type>_rule`.",),
)

KINDS = (ALARM,)
