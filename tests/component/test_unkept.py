"""What a cloud makes of a value that it is sent is no drift, as far as its answer shows it. What only a later look
shows is sent again once, and then said. What others change is still repaired."""

from collections.abc import Callable
from typing import Any

import pytest

from homeostat.clouds.simulated import SimulatedCloud
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.observed import Observation
from homeostat.services.explainer import Explainer
from tests.component.running import Service
from tests.simulation.actors import VirtualClock

PORT = "OS::Neutron::Port"
HOUR_S = 3600


class WilfulCloud(SimulatedCloud):
    """A cloud that drops empty names of security groups, keeps records for whole hours, and counts its updates."""

    updates = 0
    keeps = False
    silent = False
    """Whether its answers to creations show what was sent, and only looks what it has made of it."""

    late = False
    """Whether volumes are made without being read-only."""

    def _create(self, kind: str, intent: Any) -> Any:
        answer: Any = super()._create(kind, intent)
        if self.late and kind == "volume":
            for thing in self._things.values():
                thing.properties["read_only"] = False
            assert isinstance(answer, Observation)
            return self._true_look(kind, answer.handle)
        shown = self._dropped(kind, answer)
        return answer if self.silent else shown

    def _update(self, kind: str, change: Any) -> Any:
        self.updates += kind in ("port", "dns_record_set")
        answer = super()._update(kind, change)
        return self._dropped(kind, answer)

    def _dropped(self, kind: str, answer: Any) -> Any:
        for thing in self._things.values():
            groups = thing.properties.get("security_groups")
            if thing.kind == "port" and groups and not self.keeps:
                thing.properties["security_groups"] = [each for each in groups if each]
            if thing.kind == "dns_record_set":
                thing.properties["ttl"] = -(-thing.properties["ttl"] // HOUR_S) * HOUR_S
        return self._true_look(kind, answer.handle)


def wilful(clock: VirtualClock) -> SimulatedCloud:
    return WilfulCloud(clock.now)


def port(**more: Any) -> dict[str, Any]:
    return {"type": PORT, "properties": {"network": "n", "security_groups": ["default", ""], **more}}


@pytest.fixture
def there() -> Service:
    return Service(cloud=wilful)


def explained(there: Service, stack_id: str) -> list[tuple[str, str]]:
    with there.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), there.clock.now()).page(there.stack(stack_id), 100).explanations
    return [(each.explanation.why, each.explanation.reason) for each in found]


def change_name(there: Service, handle: str) -> None:
    there.cloud.change(handle, name="theirs")


def change_groups(there: Service, handle: str) -> None:
    there.cloud.change(handle, security_groups=["open"])


def test_what_its_answer_shows_is_no_drift_and_leads_to_no_act(there: Service) -> None:
    stack_id = there.create({"port": port()})
    there.live(600)
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert (there.cloud.updates, explained(there, stack_id)) == (0, [])  # type: ignore[attr-defined]
    there.update(stack_id, {"port": port(security_groups=["open", ""])})
    there.live(600)
    assert (there.cloud.updates, explained(there, stack_id)) == (1, [])  # type: ignore[attr-defined]


def test_what_only_a_look_shows_is_sent_again_once_and_then_said(there: Service) -> None:
    there.cloud.silent = True  # type: ignore[attr-defined]
    stack_id = there.create({"port": port()})
    there.rest(60)
    assert there.state(stack_id) == "CREATE_COMPLETE"
    there.live(600)
    assert there.cloud.updates == 1  # type: ignore[attr-defined]
    ((why, reason),) = explained(there, stack_id)
    assert why == "left_alone"
    assert "security_groups was sent again" in reason


@pytest.mark.parametrize("change", [change_name, change_groups])
def test_what_others_change_is_repaired_all_the_same(there: Service, change: Callable[[Service, str], None]) -> None:
    stack_id = there.create({"port": port(name="mine")})
    there.live(200)
    handle = there.row(stack_id, "port").handle
    before = there.cloud.updates  # type: ignore[attr-defined]
    change(there, handle)
    there.live(300)
    thing = there.cloud.things()[handle]
    assert (thing["name"], thing["security_groups"]) == ("mine", ["default"])
    assert there.cloud.updates <= before + 2  # type: ignore[attr-defined]


def test_what_was_kept_once_is_drift_each_time_that_others_change_it(there: Service) -> None:
    there.cloud.keeps = True  # type: ignore[attr-defined]
    stack_id = there.create({"port": port()})
    handle = there.row(stack_id, "port").handle
    for _ in range(4):
        there.cloud.change(handle, security_groups=["open"])
        there.live(130)
        assert there.cloud.things()[handle]["security_groups"] == ["default", ""]


def test_another_value_of_an_update_is_sent_and_judged_anew(there: Service) -> None:
    stack_id = there.create({"port": port()})
    there.live(200)
    there.update(stack_id, {"port": port(security_groups=["default"])})
    there.live(200)
    assert explained(there, stack_id) == []


def test_what_a_busy_thing_shows_is_no_sign(there: Service) -> None:
    """A volume can be made read-only once it is there: it is, by what differs then."""
    there.cloud.behaviour.build_s = 5.0
    there.cloud.keeps = True  # type: ignore[attr-defined]
    there.cloud.late = True  # type: ignore[attr-defined]
    stack_id = there.create({"disk": {"type": "OS::Cinder::Volume", "properties": {"size": 1, "read_only": True}}})
    there.live(200)
    assert there.cloud.things()[there.row(stack_id, "disk").handle]["read_only"] is True


def records(ttl: int) -> dict[str, Any]:
    given = {"zone": "z", "name": "www.example.", "type": "A", "records": ["10.0.0.1"], "ttl": ttl}
    return {"records": {"type": "OS::Designate::RecordSet", "properties": given}}


def test_what_a_busy_thing_shows_counts_where_all_is_stored_by_then(there: Service) -> None:
    """Records are pending until the name servers have them, and show what the service has made of ours before."""
    there.cloud.behaviour.build_s = 5.0
    stack_id = there.create(records(600))
    there.live(600)
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert (there.cloud.updates, explained(there, stack_id)) == (0, [])  # type: ignore[attr-defined]
    there.update(stack_id, records(4000))
    there.live(600)
    assert (there.cloud.updates, explained(there, stack_id)) == (1, [])  # type: ignore[attr-defined]
    there.cloud.change(there.row(stack_id, "records").handle, ttl=7)
    there.live(600)
    assert there.cloud.updates == 2  # type: ignore[attr-defined]
