from collections.abc import Iterator
from typing import Any

import httpx
import openstack
import pytest
from openstack.connection import Connection

from tests.wire.clustering.lives import SERVER
from tests.wire.running import Running

LATEST = "1.14"


@pytest.fixture
def clustering(service: Running, project: str) -> Iterator[Connection]:
    """openstacksdk, as its users make it; `.clustering` is the API."""
    with openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_type="none",
        auth={"endpoint": f"{service.url}/clustering"},
        clustering_endpoint_override=f"{service.url}/clustering/v1",
        clustering_default_microversion=LATEST,
    ) as connection:
        connection.session.additional_headers["X-Project-Id"] = project
        yield connection


@pytest.fixture
def senlin(service: Running, project: str) -> Iterator[httpx.Client]:
    """Plain requests."""
    headers = {"X-Project-Id": project, "OpenStack-API-Version": f"clustering {LATEST}"}
    with httpx.Client(base_url=f"{service.url}/clustering/v1", headers=headers) as client:
        yield client


@pytest.fixture
def api(clustering: Connection) -> Any:
    return clustering.clustering


@pytest.fixture
def profile(api: Any) -> Any:
    return api.create_profile(name="web", spec=SERVER)
