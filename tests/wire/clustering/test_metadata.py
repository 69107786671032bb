"""Metadata of clusters, key by key, by openstacksdk."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from tests.wire.clustering.lives import made


def test_metadata_are_set_key_by_key(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0, metadata={"a": "1"})
    assert api.fetch_cluster_metadata(cluster).metadata == {"a": "1"}
    api.set_cluster_metadata(cluster, b="2")
    assert api.get_cluster(cluster.id).metadata == {"a": "1", "b": "2"}
    api.delete_cluster_metadata(api.get_cluster(cluster.id), ["a"])
    assert api.get_cluster(cluster.id).metadata == {"b": "2"}
    api.delete_cluster_metadata(cluster, None)
    assert api.get_cluster(cluster.id).metadata == {}


def test_one_key_is_set_and_read(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=0)
    url = f"/clusters/{cluster.id}/metadata"
    assert senlin.put(f"{url}/a", json={"meta": {"a": "1"}}).json() == {"meta": {"a": "1"}}
    assert senlin.get(f"{url}/a").json() == {"meta": {"a": "1"}}
    assert senlin.get(f"{url}/b").status_code == 404
    assert senlin.delete(f"{url}/b").status_code == 404
    assert senlin.put(f"{url}/a", json={"meta": {"b": "1"}}).status_code == 400
    assert senlin.put(url, json={"metadata": {str(number): "" for number in range(1001)}}).status_code == 400
    assert senlin.put(url, json={"metadata": {"c": "3"}}).json() == {"metadata": {"c": "3"}}


def test_another_project_sees_none(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=0)
    theirs = {"X-Project-Id": "another"}
    for method in ("GET", "POST", "PUT"):
        answer = senlin.request(method, f"/clusters/{cluster.id}/metadata", json={"metadata": {}}, headers=theirs)
        assert answer.status_code == 404
    with pytest.raises(exceptions.NotFoundException):
        api.fetch_cluster_metadata("none-such")
