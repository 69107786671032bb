"""Alarms with a real Aodh, and Gnocchi for those on metrics."""

import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = [pytest.mark.services("aodh", "gnocchi"), pytest.mark.slow]
URL = "http://127.0.0.1:9/alarm"
THRESHOLD = {
    "threshold": 5.0,
    "comparison_operator": "gt",
    "aggregation_method": "mean",
    "evaluation_periods": 2,
    "granularity": 300,
}
RESOURCE = {"metric": "cpu", "resource_type": "generic"}
PART = {"type": "gnocchi_resources_threshold", **THRESHOLD, **RESOURCE, "resource_id": "r"}
COMMON = {
    "description": "d",
    "severity": "moderate",
    "alarm_actions": [URL, f"{URL}2"],
    "time_constraints": [{"name": "nightly", "start": "0 23 * * *", "duration": 3600, "timezone": "Europe/Amsterdam"}],
}
CHANGES = {"description": None, "severity": "critical", "alarm_actions": [], "ok_actions": [URL], "enabled": False}


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


def _life(type: str, properties: lives.Spec, *changes: lives.Spec) -> Life:
    return Life(f"OS::Aodh::{type}", {**COMMON, **properties}, (CHANGES, *changes))


QUERY = [{"field": "traits.instance_id", "type": "string", "op": "eq", "value": "x"}]
LIVES = {
    life.of.alarm_type: life  # type: ignore[attr-defined]
    for life in (
        _life("EventAlarm", {"event_type": "compute.*", "query": QUERY}, {"event_type": "network.*", "query": []}),
        _life(
            "CompositeAlarm",
            {"composite_rule": {"operator": "or", "rules": [PART, {"and": [PART, {**PART, "threshold": 7.0}]}]}},
            {"composite_rule": {"operator": "and", "rules": [PART, {**PART, "metric": "memory"}]}},
        ),
        _life("GnocchiResourcesAlarm", {**THRESHOLD, **RESOURCE, "resource_id": "a"}, {"threshold": 6, "metric": "m"}),
        _life(
            "GnocchiAggregationByMetricsAlarm",
            {**THRESHOLD, "metrics": [str(uuid.uuid4()), str(uuid.uuid4())]},
            {"metrics": [str(uuid.uuid4())], "granularity": 60},
        ),
        _life(
            "GnocchiAggregationByResourcesAlarm",
            {**THRESHOLD, **RESOURCE, "query": '{"=":   {"id": "x"}}'},
            {"threshold": 8, "evaluation_periods": 1},
            {"query": '{"and": [{"=": {"id": "x"}}, {"=": {"id": "y"}}]}'},
        ),
        _life("PrometheusAlarm", {"query": "up", "threshold": 1, "comparison_operator": "lt"}, {"query": "down"}),
        _life(
            "LBMemberHealthAlarm",
            {"pool": str(uuid.uuid4()), "stack": str(uuid.uuid4()), "autoscaling_group_id": "g"},
            {"autoscaling_group_id": "h"},
        ),
    )
}


@pytest.mark.parametrize("type", LIVES)
def test_it_lives_and_dies(type: str, cloud: OpenStackCloud) -> None:
    check_life(cloud, LIVES[type])


def test_what_never_was_is_absent(cloud: OpenStackCloud) -> None:
    check_never(cloud, "alarm", str(uuid.uuid4()))


def test_a_lost_answer_has_made_one(cloud: OpenStackCloud, project: Project) -> None:
    check_lost(cloud, project, LIVES["event"], "aodh-api", "/v2/alarms$")


def test_an_alarm_that_the_service_refuses_does_not_spoil_the_others(cloud: OpenStackCloud) -> None:
    good = LIVES["event"].spec("good")
    bad = {**good, "event_rule": {"query": [{"field": "no good!", "op": "eq", "value": "x"}]}}
    refused, made = cloud.create("alarm", [Creation(f"a-{uuid.uuid4()}", spec) for spec in (bad, good)])
    assert isinstance(refused, Terminal)
    assert "Query value" in str(refused)
    assert isinstance(made, Observation)
    remove(cloud, "alarm", made.handle)


def test_many_alarms_are_one_list(cloud: OpenStackCloud, project: Project) -> None:
    made = [make(cloud, "OS::Aodh::EventAlarm", {"event_type": f"e{number}"}) for number in range(5)]
    assert [each.present for each in cloud.observe("alarm", [*made, str(uuid.uuid4())])] == [True] * 5 + [False]
    for each in made:
        remove(cloud, "alarm", each)


def test_an_event_raises_an_alarm_and_a_change_leaves_it_raised(cloud: OpenStackCloud, project: Project) -> None:
    event = f"test.{uuid.uuid4().hex}"
    made = make(cloud, "OS::Aodh::EventAlarm", {"event_type": event})

    def state() -> str:
        return str(cloud.observe("alarm", [made])[0].properties["state"])

    def raised() -> bool:
        project.cloud.event(event, project_id=project.id)
        return state() == "alarm"

    until(raised, "the alarm to be raised", rest=lives.rest)
    accepted(lambda: cloud.update("alarm", [Change(made, {"severity": "critical"}, ("severity",))]))
    seen = cloud.observe("alarm", [made])[0].properties
    assert (seen["state"], seen["severity"], seen["event_rule"]["event_type"]) == ("alarm", "critical", event)
    remove(cloud, "alarm", made)
