"""Actions that are cancelled."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from homeostat.store import schema
from tests.waiting import until
from tests.wire.clustering.lives import made, members
from tests.wire.running import Running


@contextlib.contextmanager
def slow(service: Running) -> Iterator[None]:
    """In a cloud where making and deleting takes ten seconds."""
    before = service.cloud.behaviour
    service.cloud.behaviour = replace(before, build_s=10.0, delete_s=10.0)
    try:
        yield
    finally:
        service.cloud.behaviour = before


CANCELLED = {"action": {"status": "CANCELLED"}}


@pytest.mark.parametrize("force", ["", "?force=true"])
def test_an_action_stops(api: Any, profile: Any, senlin: httpx.Client, service: Running, force: str) -> None:
    cluster = made(api, profile, desired_capacity=1)
    with slow(service):
        action = api.scale_out_cluster(cluster, 2)["action"]
        answer = senlin.patch(f"/actions/{action}{force}", json=CANCELLED)
        assert (answer.status_code, answer.content) == (202, b"")
        shown = api.get_action(action)
        assert (shown.status, shown.status_reason) == ("CANCELLED", "Action execution cancelled")
    again = senlin.patch(f"/actions/{action}", json=CANCELLED)
    assert (again.status_code, again.json()["error"]["type"]) == (409, "ActionImmutable")
    next_one = api.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=1)
    api.wait_for_status(api.get_action(next_one["action"]), "SUCCEEDED", wait=60)
    assert len(members(api, cluster)) == 1


def test_what_cannot_be_cancelled(api: Any, profile: Any, senlin: httpx.Client, service: Running) -> None:
    cluster = made(api, profile, desired_capacity=1)
    (created,) = api.actions(target=cluster.id)
    assert senlin.patch(f"/actions/{created.id}", json=CANCELLED).status_code == 409
    wrong = senlin.patch(f"/actions/{created.id}", json={"action": {"status": "READY"}})
    assert (wrong.status_code, "Unknown status READY" in wrong.json()["error"]["message"]) == (400, True)
    assert senlin.patch("/actions/none-such", json=CANCELLED).status_code == 404
    old = {"OpenStack-API-Version": "clustering 1.11"}
    refused = senlin.patch(f"/actions/{created.id}", json=CANCELLED, headers=old)
    assert refused.json()["error"]["type"] == "MethodVersionNotFound"
    theirs = senlin.patch(f"/actions/{created.id}", json=CANCELLED, headers={"X-Project-Id": "another"})
    assert theirs.status_code == 404
    with slow(service):
        deletion = api.delete_cluster(cluster.id)
        refused = senlin.patch(f"/actions/{deletion.id}", json=CANCELLED)
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "FeatureNotSupported")
    api.wait_for_delete(cluster, wait=60)


def test_actions_of_nodes_without_a_cluster_are_settled(api: Any, profile: Any, service: Running) -> None:
    """How one has ended is stored once the next one begins."""
    node = api.wait_for_status(api.create_node(name="n", profile_id=profile.id), "ACTIVE", wait=60)
    until(lambda: all(each.status == "SUCCEEDED" for each in api.actions(target=node.id)), "the action to end")
    api.update_node(node, name="m")
    with service.db.read() as tx:
        mine = select(schema.action.c.status).where(schema.action.c.target == node.id)
        stored = list(tx.execute(mine.order_by(schema.action.c.created_at)).scalars())
    assert stored[0] == "SUCCEEDED"
