"""Receivers: addresses that alarms call, without logging in."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from tests.wire.clustering.lives import made, members


def hook(api: Any, cluster: Any, action: str = "CLUSTER_SCALE_OUT", **params: Any) -> Any:
    return api.create_receiver(name="r", type="webhook", cluster_id=cluster.id, action=action, params=params)


def called(api: Any, url: str, **options: Any) -> Any:
    """The action that a call has begun, once it has ended."""
    answer = httpx.post(url, **options)
    assert answer.status_code == 202, answer.text
    return api.wait_for_status(api.get_action(answer.json()["action"]), "SUCCEEDED", wait=60)


def test_a_receiver_lives(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    receiver = hook(api, cluster, count=2)
    assert receiver.channel["alarm_url"].endswith(f"/v1/webhooks/{receiver.id}/trigger?V=2&count=2")
    assert api.find_receiver("r").params == {"count": 2}
    assert [each.id for each in api.receivers(cluster_id=cluster.id)] == [receiver.id]
    assert api.update_receiver(receiver, params={"count": 3}).params == {"count": 3}
    api.delete_receiver(receiver)
    assert list(api.receivers()) == []


def test_its_address_begins_its_action(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    receiver = hook(api, cluster, count=2)
    action = called(api, receiver.channel["alarm_url"])
    assert (action.action, action.name) == ("CLUSTER_SCALE_OUT", f"webhook_{receiver.id[:8]}")
    assert len(members(api, cluster)) == 2


def test_what_an_alarm_sends_besides_is_ignored(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    url = hook(api, cluster, count=2).channel["alarm_url"]
    alarm = {"alarm_name": "load", "severity": "low", "current": "alarm", "previous": "ok", "count": 1}
    called(api, url, json=alarm)
    assert len(members(api, cluster)) == 1, "what is sent goes first"


def test_the_first_form_has_its_params_apart(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    url = hook(api, cluster).channel["alarm_url"].replace("V=2", "V=1")
    called(api, url, json={"params": {"count": 2}})
    assert len(members(api, cluster)) == 2


def test_an_unknown_or_incomplete_address_is_refused(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    receiver = hook(api, cluster)
    url = receiver.channel["alarm_url"]
    assert httpx.post(url.replace(receiver.id, receiver.id[::-1])).status_code == 404
    assert httpx.post(url.partition("?")[0]).status_code == 400
    api.delete_receiver(receiver)
    assert httpx.post(url).status_code == 404


def test_it_goes_with_its_cluster(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    url = hook(api, cluster).channel["alarm_url"]
    api.delete_cluster(cluster.id)
    api.wait_for_delete(cluster, wait=60)
    assert httpx.post(url).status_code == 404
    assert list(api.receivers()) == []


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"type": "other"}, "is not acceptable"),
        ({"action": "CLUSTER_CREATE"}, "cannot be any of"),
        ({"cluster_id": "nowhere"}, "could not be found"),
    ],
)
def test_a_wrong_receiver_is_refused(api: Any, profile: Any, values: dict[str, Any], says: str) -> None:
    cluster = made(api, profile, desired_capacity=0)
    right = {"name": "r", "type": "webhook", "cluster_id": cluster.id, "action": "CLUSTER_CHECK"}
    with pytest.raises(exceptions.BadRequestException, match=says):
        api.create_receiver(**{**right, **values})
