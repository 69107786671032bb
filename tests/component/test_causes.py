"""What could not be made again for want of something is made once that is there (ADR 0098)."""

import dataclasses

import pytest

from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.explainer import Explainer
from tests.component.checked import STATUS, Checked, policy
from tests.component.running import Service, server


def allow(service: Service, quota: int | None) -> None:
    service.cloud.behaviour = dataclasses.replace(service.cloud.behaviour, quota=quota)


def released_by(service: Service, stack_id: str) -> str:
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(service.stack(stack_id), 100)
    return "; ".join(each.explanation.released_by for each in page.explanations)


def test_what_is_healed_is_made_once_its_quota_was_raised() -> None:
    service = Service()
    id = service.begin({"a": server(), "b": server()})
    service.rest()
    allow(service, 1)
    service.cloud.vanish(next(row.handle for row in service.rows(id) if row.name == "a"))
    service.live(1200.0)
    assert service.states(id)["a"] == "CREATE_FAILED"
    assert "a higher quota" in released_by(service, id)
    allow(service, None)
    service.live(660.0)
    assert service.states(id) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert len(service.cloud.things("server")) == 2


def test_what_was_never_complete_is_left_to_its_user() -> None:
    service = Service()
    allow(service, 1)
    id = service.begin({"a": server(), "b": server()})
    service.live(120.0)
    allow(service, None)
    service.live(1200.0)
    assert service.stack(id).status == "FAILED"


@pytest.mark.heavy
def test_a_node_is_made_once_its_quota_was_raised() -> None:
    service = Checked(3, policy(STATUS, verify_timeout=20))
    allow(service, 2)
    service.cloud.vanish(service.handle(0))
    service.live(300.0)
    assert service.states(service.group)["0"] == "CREATE_FAILED"
    allow(service, None)
    service.live(660.0)
    assert service.states(service.group) == {"0": "CHECK_COMPLETE", "1": "CREATE_COMPLETE", "2": "CREATE_COMPLETE"}
    assert len(service.cloud.things("server")) == 3
