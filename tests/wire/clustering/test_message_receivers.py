"""Receivers of messages: a queue, its subscription, and what messaging sends to it."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clustering.service.message_receivers import RequestedAction, parse_message
from tests.waiting import until
from tests.wire.clustering.lives import done, made, members
from tests.wire.running import Running, database, serving

NEW = {"receiver": {"name": "r", "type": "message", "params": {"count": 2}}}


def made_receiver(senlin: httpx.Client, service: Running) -> tuple[Any, str]:
    """The receiver, and the address that messaging calls."""
    answer = senlin.post("/receivers", json=NEW)
    assert answer.status_code == 201, answer.text
    receiver = answer.json()["receiver"]
    queue = receiver["channel"]["queue_name"]

    def subscribed() -> Any:
        things = service.cloud.things("subscription").values()
        return [each for each in things if each["queue_name"] == queue]

    (subscription,) = until(subscribed, "the subscription")
    assert subscription["subscriber"].startswith("trust+http://")
    return receiver, subscription["subscriber"].removeprefix("trust+")


def test_a_message_begins_an_action(
    api: Any, profile: Any, senlin: httpx.Client, service: Running, project: str
) -> None:
    cluster = made(api, profile, desired_capacity=1, max_size=5)
    receiver, address = made_receiver(senlin, service)
    assert (receiver["type"], receiver["cluster_id"], receiver["action"]) == ("message", None, None)
    assert receiver["channel"] == {"queue_name": f"senlin-receiver-{receiver['id']}"}

    def send(body: Any) -> httpx.Response:
        message = {"body": body, "queue_name": receiver["channel"]["queue_name"], "Message_Type": "Notification"}
        return httpx.post(address, json=message, headers={"X-Project-Id": project})

    answer = send({"cluster": cluster.id, "action": "CLUSTER_SCALE_OUT", "params": {"more": "is ignored"}})
    assert (answer.status_code, answer.content) == (204, b"")
    actions = [each for each in api.actions(target=cluster.id) if each.action == "CLUSTER_SCALE_OUT"]
    assert [each.name for each in actions] == [f"receiver_{receiver['id'][:8]}_{cluster.id[:8]}"]
    done(api, {"action": actions[0].id})
    assert len(members(api, cluster)) == 3, "two more, as the receiver says"
    for body in ({}, "no map", {"cluster": "none-such", "action": "CLUSTER_CHECK"}, {"cluster": 1, "action": []}):
        assert send(body).status_code == 204, "it is noted, and done"
    assert len(list(api.actions(target=cluster.id))) == 2


def test_it_goes_with_its_queue(api: Any, senlin: httpx.Client, service: Running) -> None:
    receiver, address = made_receiver(senlin, service)
    assert api.get_receiver(receiver["id"]).type == "message"
    assert [each.id for each in api.receivers(type="message")] == [receiver["id"]]
    assert api.update_receiver(receiver["id"], name="s").name == "s"
    assert senlin.post(f"/receivers/{receiver['id']}/notify", headers={"X-Project-Id": "x"}).status_code == 404
    triggered = senlin.post(f"/webhooks/{receiver['id']}/trigger?V=2", json={})
    assert (triggered.status_code, "its queue" in triggered.text) == (400, True), triggered.text
    api.delete_receiver(receiver["id"])
    assert httpx.post(address, json={}).status_code == 404
    queue = receiver["channel"]["queue_name"]
    until(lambda: queue not in service.cloud.things("queue"), "the queue to be gone")
    assert list(api.receivers()) == []


def test_a_webhook_is_not_notified(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=0)
    hook = api.create_receiver(name="h", type="webhook", cluster_id=cluster.id, action="CLUSTER_SCALE_OUT")
    assert senlin.post(f"/receivers/{hook.id}/notify", json={}).status_code == 400


def test_a_cloud_without_messaging_refuses(tmp_path: Path) -> None:
    cloud = SimulatedCloud(time.time, kinds=frozenset({"server"}))
    with database(tmp_path) as db, serving(db, NoAccess(), cloud=cloud) as url:
        refused = httpx.post(f"{url}/clustering/v1/receivers", json=NEW)
        assert refused.status_code == 400
        assert "which this cloud does not have" in refused.json()["error"]["message"]
        assert httpx.get(f"{url}/clustering/v1/receivers").json() == {"receivers": []}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"body": {"cluster": "c", "action": "A"}}, RequestedAction("c", "A", {})),
        ({"cluster": "c", "action": "A", "params": {"a": 1}}, RequestedAction("c", "A", {"a": 1})),
        ({"body": '{"cluster": "c", "action": "A"}'}, RequestedAction("c", "A", {})),
        ({"body": "{"}, None),
        ({"body": "[1]"}, None),
        ({"cluster": "c", "action": "A", "params": "x"}, None),
        ({"action": "A"}, None),
        (None, None),
    ],
)
def test_what_a_message_asks_for(body: Any, expected: RequestedAction | None) -> None:
    assert parse_message(body) == expected
