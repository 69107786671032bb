"""Values that templates set on alarms; see `normal_values`."""

from collections.abc import Mapping
from typing import Any

from tests.openstack.normal_values import OFF, TEXTS, Values

URLS = ["http://B.example/", "http://a.example"]
ALARM: Mapping[str, Any] = {
    "description": TEXTS,
    "enabled": OFF,
    "alarm_actions": [URLS, [URLS[0], URLS[0]], ["HTTP://a.Example/"]],
    "ok_actions": [URLS],
    "insufficient_data_actions": [URLS],
    "alarm_queues": [["some"]],
    "ok_queues": [["some"]],
    "insufficient_data_queues": [["some"]],
    "repeat_actions": OFF,
    "severity": ["low"],
    "time_constraints": [
        [{"name": "nightly", "start": "0 23 * * *", "duration": "3600", "timezone": "Europe/Amsterdam"}],
        [{"name": "nightly", "start": "0 23 * * *", "duration": 3600, "description": "d"}],
    ],
}
LIMIT: Mapping[str, Any] = {
    "comparison_operator": ["gt", "ge"],
    "evaluation_periods": [2, "2"],
    "threshold": [80, "15", 1.5],
    "aggregation_method": ["max"],
    "granularity": [300, "60"],
}
QUERIES = ['{"=": {"project_id": "x"}}', '{"and": [{"=":   {"id": "x"}}, {"=": {"id": "y"}}]}']
MEAN = {"aggregation_method": "mean"}
PART = {
    "type": "gnocchi_resources_threshold",
    "threshold": 5.0,
    "comparison_operator": "gt",
    "aggregation_method": "mean",
    "evaluation_periods": 2,
    "granularity": 300,
    "metric": "cpu",
    "resource_type": "generic",
    "resource_id": "r",
}
ALARMING: Mapping[str, Values] = {
    "OS::Aodh::EventAlarm": Values(
        {},
        {
            **ALARM,
            "event_type": ["compute.instance.update", "*"],
            "query": [
                [{"field": "traits.instance_id", "value": "x", "op": "eq"}],
                [{"field": "traits.n", "value": "5", "op": "GE".lower(), "type": "integer"}],
            ],
        },
    ),
    "OS::Aodh::CompositeAlarm": Values(
        {"composite_rule": {"operator": "or", "rules": [PART, PART]}},
        {
            **ALARM,
            "composite_rule": [
                {"operator": "and", "rules": [PART, {"or": [PART, {**PART, "metric": "memory"}]}]},
                {"operator": "or", "rules": [{**PART, "threshold": "7"}, PART]},
            ],
        },
    ),
    "OS::Aodh::GnocchiResourcesAlarm": Values(
        {"metric": "cpu", "resource_id": "r", "resource_type": "generic", "threshold": 5, **MEAN},
        {**ALARM, **LIMIT, "metric": ["memory"], "resource_id": ["S"], "resource_type": ["instance"]},
    ),
    "OS::Aodh::GnocchiAggregationByMetricsAlarm": Values(
        {"metrics": ["b", "a"], "threshold": 5, **MEAN}, {**ALARM, **LIMIT, "metrics": [["d", "c"], ["c", "c"]]}
    ),
    "OS::Aodh::GnocchiAggregationByResourcesAlarm": Values(
        {"metric": "cpu", "query": '{"=": {"id": "x"}}', "resource_type": "generic", "threshold": 5, **MEAN},
        {**ALARM, **LIMIT, "metric": ["memory"], "query": QUERIES, "resource_type": ["instance"]},
    ),
    "OS::Aodh::PrometheusAlarm": Values(
        {"query": "up", "threshold": 1},
        {
            **ALARM,
            "query": ["sum(rate(x[5m]))  > 2"],
            "comparison_operator": ["lt"],
            "threshold": [80, "15"],
        },
    ),
    "OS::Aodh::LBMemberHealthAlarm": Values(
        {"pool": "$network", "stack": "$subnet", "autoscaling_group_id": "g"},
        {**ALARM, "autoscaling_group_id": ["H"], "pool": ["$subnet"], "stack": ["$network"]},
    ),
}
