"""Types of alarms: a measurement, a threshold, and the URLs to call."""

from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlencode

from homeostat.resources import comparison
from homeostat.resources.base import EMPTY, MaintenanceMethod, Props, ResourceType, Thing, switched
from homeostat.resources.constraints import CRON_EXPRESSION, TIMEZONE
from homeostat.resources.families.heat import Nothing
from homeostat.resources.schema import (
    Property,
    Schema,
    between,
    boolean,
    custom,
    integer,
    length,
    link,
    listing,
    mapping,
    number,
    one_of,
    text,
)
from homeostat.resources.support import Support, deprecated, hidden

OPERATORS = one_of("le", "ge", "eq", "lt", "gt", "ne")
EVENTS = ("alarm", "ok", "insufficient_data")


def _actions(event: str) -> Property:
    return listing(f"URLs to call when the state becomes {event}.", update=True, same=comparison.unordered)


def _queues(event: str) -> Property:
    return listing(
        f"Queues to post to when the state becomes {event}.",
        default=[],
        update=True,
        drift=False,
        items=text(constraints=(custom("zaqar.queue"),)),
    )


COMMON: Schema = {
    "description": text("Description of the alarm.", update=True),
    "enabled": boolean("It is evaluated.", default=True, update=True),
    **{f"{event}_actions": _actions(event) for event in EVENTS},
    **{f"{event}_queues": _queues(event) for event in EVENTS},
    "repeat_actions": boolean("Act at each evaluation, not only when the state changes.", default=True, update=True),
    "severity": text(
        "How grave it is.", default="low", update=True, constraints=(one_of("low", "moderate", "critical"),)
    ),
    "time_constraints": listing(
        "Times at which it is evaluated; without them always.",
        default=[],
        items=mapping(
            fields={
                "name": text("Name of the time.", required=True),
                "start": text("When it begins, as a cron expression.", required=True, constraints=(CRON_EXPRESSION,)),
                "description": text("Description of the time."),
                "duration": integer("Seconds that it lasts.", required=True, constraints=(between(0),)),
                "timezone": text("Time zone, such as Europe/Amsterdam.", constraints=(TIMEZONE,)),
            }
        ),
    ),
}
THRESHOLD: Schema = {
    "comparison_operator": text("How the value is compared with the threshold.", update=True, constraints=(OPERATORS,)),
    "evaluation_periods": integer("How many periods are looked at.", update=True),
    "threshold": number("The threshold.", required=True, update=True),
}


def _conditions() -> Property:
    return listing(
        "Conditions that must hold, too.",
        update=True,
        items=mapping(
            fields={
                "field": text("What is compared."),
                "type": text(
                    "Type of the value.",
                    default="string",
                    constraints=(one_of("integer", "float", "string", "boolean", "datetime"),),
                ),
                "op": text("How it is compared.", constraints=(OPERATORS,)),
                "value": text("The value."),
            }
        ),
    )


class AlarmType(ResourceType):
    """Base of the types of alarms. Properties that are not common to all alarms are parts of the rule.

    Attributes:
        alarm_type: Type in the words of Aodh; the rule is in the field `<alarm_type>_rule`.
    """

    kind = "alarm"
    alarm_type: ClassVar[str]
    maintenance_methods = switched("enabled", suspended=False, running=True)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.unsent = {name for name in cls.properties if name not in COMMON or name.endswith("_queues")}

    def maintenance_method(self, thing: Thing, action: str) -> MaintenanceMethod | None:
        """Return how to suspend or resume; an alarm disabled by its template stays disabled on resume."""
        if action == "RESUME" and thing.properties.get("enabled") is False:
            return None
        return super().maintenance_method(thing, action)

    def rule(self, values: Props) -> dict[str, Any]:
        """Return the rule in the form of Aodh."""
        return {
            name: values[name]
            for name in self.properties
            if name not in COMMON and values.get(name) is not None and not self.means_none(name, values[name])
        }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        common = {
            name: values[name] for name in COMMON if values.get(name) is not None and not name.endswith("_queues")
        }
        for event in EVENTS:
            queues = values.get(f"{event}_queues") or []
            urls = [f"trust+zaqar://?{urlencode({'queue_name': queue})}" for queue in queues]
            common[f"{event}_actions"] = [*(values.get(f"{event}_actions") or []), *urls]
        return {"name": physical_name, "type": self.alarm_type, self.rule_field: self.rule(values), **common}

    @property
    def rule_field(self) -> str:
        return f"{self.alarm_type}_rule"

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return the drifted properties.

        Actions are compared including the URLs of queues; parts of the rule are compared in the rule's field.
        """
        seen = thing.seen.properties
        wanted, observed = self.rule(thing.properties), seen.get(self.rule_field) or {}
        differing = {
            name
            for name, prop in self.properties.items()
            if name in observed and wanted.get(name) not in EMPTY and not prop.same(wanted[name], observed[name])
        }
        # The base class compares the common properties only; the rule is compared above.
        flat = replace(thing, seen=replace(thing.seen, properties={k: v for k, v in seen.items() if k in COMMON}))
        return (*super().drift(flat), *sorted(differing))


class CompositeAlarm(AlarmType):
    name = "OS::Aodh::CompositeAlarm"
    alarm_type = "composite"
    support = Support(version="8.0.0")
    description = "An alarm that joins rules by `and` and `or`."
    properties = {
        "composite_rule": mapping(
            "The rules.",
            required=True,
            update=True,
            fields={
                "operator": text(
                    "How they are joined.", required=True, update=True, constraints=(one_of("or", "and"),)
                ),
                "rules": listing(
                    "The rules: each a rule with its type, or a map of `and` or `or` to rules.",
                    required=True,
                    update=True,
                    constraints=(length(2),),
                ),
            },
        ),
        **COMMON,
    }

    def rule(self, values: Props) -> dict[str, Any]:
        joined = values["composite_rule"]
        return {joined["operator"]: joined["rules"]}

    def drift(self, thing: Thing) -> tuple[str, ...]:
        observed = thing.seen.properties.get(self.rule_field)
        more = () if comparison.equal(self.rule(thing.properties), observed) else ("composite_rule",)
        return (*super().drift(thing), *more)


class EventAlarm(AlarmType):
    name = "OS::Aodh::EventAlarm"
    alarm_type = "event"
    support = Support(version="8.0.0")
    description = "An alarm on events of other services."
    properties = {
        "event_type": text("Type of the events; * for all.", default="*", update=True),
        "query": _conditions(),
        **COMMON,
    }


GNOCCHI: Schema = {
    **THRESHOLD,
    "aggregation_method": text("How the measures of a period become one value, such as mean or max.", update=True),
    "granularity": integer("Seconds of a period.", update=True),
}


class GnocchiResourcesAlarm(AlarmType):
    name = "OS::Aodh::GnocchiResourcesAlarm"
    alarm_type = "gnocchi_resources_threshold"
    support = Support(version="2015.1")
    description = "An alarm on a metric of one thing."
    properties = {
        "metric": text("Name of the metric.", required=True, update=True),
        "resource_id": text("The thing.", required=True, update=True),
        "resource_type": text("Type of the thing.", required=True, update=True),
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByMetricsAlarm(AlarmType):
    name = "OS::Aodh::GnocchiAggregationByMetricsAlarm"
    alarm_type = "gnocchi_aggregation_by_metrics_threshold"
    support = Support(version="2015.1")
    description = "An alarm on several metrics together."
    properties = {
        "metrics": listing("The metrics.", required=True, update=True, same=comparison.unordered),
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByResourcesAlarm(AlarmType):
    name = "OS::Aodh::GnocchiAggregationByResourcesAlarm"
    alarm_type = "gnocchi_aggregation_by_resources_threshold"
    support = Support(version="2015.1")
    description = "An alarm on a metric of several things together."
    properties = {
        "metric": text("Name of the metric.", required=True, update=True),
        "query": text("Which things, as JSON text.", required=True, update=True, same=comparison.json_text),
        "resource_type": text("Type of the things.", required=True, update=True),
        **GNOCCHI,
        **COMMON,
    }


class PrometheusAlarm(AlarmType):
    name = "OS::Aodh::PrometheusAlarm"
    alarm_type = "prometheus"
    support = Support(version="22.0.0")
    description = "An alarm on a query of Prometheus."
    properties = {
        "query": text("The query.", required=True, update=True),
        "comparison_operator": THRESHOLD["comparison_operator"],
        "threshold": THRESHOLD["threshold"],
        **COMMON,
    }


class LBMemberHealthAlarm(AlarmType):
    name = "OS::Aodh::LBMemberHealthAlarm"
    alarm_type = "loadbalancer_member_health"
    support = Support(version="13.0.0")
    description = "An alarm on unhealthy members of a pool of a load balancer."
    properties = {
        "pool": link("The pool.", "octavia.pool", required=True, update=True),
        "stack": text("Stack at the root of the one that has the pool.", required=True),
        "autoscaling_group_id": text("Group that has the members.", required=True, update=True),
        **COMMON,
    }

    def rule(self, values: Props) -> dict[str, Any]:
        return {
            "pool_id": values["pool"],
            "stack_id": values["stack"],
            "autoscaling_group_id": values["autoscaling_group_id"],
        }


class Alarm(ResourceType):
    name = "OS::Aodh::Alarm"
    support = deprecated("10.0.0", "Use OS::Aodh::GnocchiAggregationByResourcesAlarm instead.")
    description = "Stands in for an alarm on samples, which clouds do not have any more: it watches nothing."
    properties = {
        "meter_name": text("Name of the meter.", required=True),
        "period": integer("Seconds of a period.", update=True),
        "statistic": text(
            "How the samples of a period become one value.",
            update=True,
            constraints=(one_of("count", "avg", "sum", "min", "max"),),
        ),
        "matching_metadata": mapping("Metadata that samples must have.", default={}, update=True),
        "query": _conditions(),
        **THRESHOLD,
        **COMMON,
    }


class CombinationAlarm(Nothing):
    name = "OS::Aodh::CombinationAlarm"
    support = hidden("9.0.0", "Use OS::Aodh::CompositeAlarm instead.", deprecated("7.0.0"))
    description = "Stands in for an alarm on other alarms, which clouds do not have any more: it watches nothing."


TYPES: list[type[ResourceType]] = [
    *(CompositeAlarm, EventAlarm, PrometheusAlarm, LBMemberHealthAlarm),
    *(GnocchiResourcesAlarm, GnocchiAggregationByMetricsAlarm, GnocchiAggregationByResourcesAlarm),
    *(Alarm, CombinationAlarm),
]
