"""Types of the services around the clouds, in a stack."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Change
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected
from tests.component.running import Service
from tests.unit.resources.resource_cases import MINIMAL

CONTAINER, METRIC, EXTERNAL = "OS::Swift::Container", "OS::Aodh::GnocchiResourcesAlarm", "OS::Mistral::ExternalResource"
TRIGGER = "OS::Mistral::CronTrigger"


def resource(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": name, "properties": {**MINIMAL[name], **properties}}


def test_a_container_with_objects_stays_unless_it_may_be_purged() -> None:
    service = Service()
    stack_id = service.create({"box": resource(CONTAINER)})
    (handle,) = service.cloud.things("container")
    service.cloud.change(handle, object_count=3)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    assert "Deleting non-empty container" in service.row(stack_id, "box").reason
    service.cloud.change(handle, object_count=0)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


def test_a_template_with_a_retired_type_is_refused_with_its_remedy() -> None:
    with pytest.raises(Rejected, match=r"resources.old.*OS::Glance::WebImage instead"):
        Service().create({"old": {"type": "OS::Glance::Image", "properties": {"name": "x"}}})


def test_what_drifts_in_the_rule_of_an_alarm_is_brought_back() -> None:
    service = Service()
    stack_id = service.create({"hot": resource(METRIC, threshold=5)})
    service.rest()
    (handle,) = service.cloud.things("alarm")
    rule = {**service.cloud.things()[handle]["gnocchi_resources_threshold_rule"], "threshold": 50}
    service.cloud.change(handle, gnocchi_resources_threshold_rule=rule)
    service.live(200)
    assert service.cloud.things()[handle]["gnocchi_resources_threshold_rule"]["threshold"] == 5
    assert service.states(stack_id)["hot"].endswith("_COMPLETE")


class Counting(SimulatedCloud):
    """Counts updates."""

    updates = 0

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        self.updates += len(changes)
        return super().update(kind, changes)


@pytest.mark.parametrize(("always", "updates"), [(True, 1), (False, 0)])
def test_an_external_resource_may_be_updated_always(always: bool, updates: int) -> None:
    service = Service(cloud=lambda clock: Counting(clock.now))
    resources = {"it": resource(EXTERNAL, always_update=always)}
    stack_id = service.create(resources)
    service.rest()
    service.update(stack_id, resources)
    service.rest()
    service.live(200)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert isinstance(service.cloud, Counting)
    assert service.cloud.updates == updates


@pytest.mark.parametrize(("count", "made"), [(3, 1), (None, 2)])
def test_a_trigger_that_ends_by_itself_is_not_made_anew(count: int | None, made: int) -> None:
    """The cloud removes one that has run as often as it was to: another one would run as often once more."""
    service = Service()
    stack_id = service.create({"it": resource(TRIGGER, pattern="0 4 * * *", count=count)})
    service.rest()
    (handle,) = service.cloud.things("cron_trigger")
    service.cloud.vanish(handle)
    service.live(200)
    assert service.states(stack_id)["it"].endswith("_COMPLETE")
    created = [each for each in service.events(stack_id, "it") if (each.action, each.status) == ("CREATE", "COMPLETE")]
    assert len(created) == made
    assert len(service.cloud.things("cron_trigger")) == made - 1
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}
