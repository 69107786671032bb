"""A service that asks for a pause gets one."""

import contextlib
import time
import uuid
from pathlib import Path

import pytest
import yaml

from homeostat.clouds.openstack import OpenStack as Clouds
from homeostat.clouds.openstack import OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.port import Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

PAUSE_S = 1


def test_after_a_retry_after_the_service_is_left_alone_for_that_time(
    openstack_cloud: OpenStack, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"test": {"auth": project.auth}}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    config = OpenStackConfig(cloud="test")
    with contextlib.closing(Clouds(config, Connections(config))) as clouds:
        cloud = clouds.of(project.id)
        (made,) = cloud.create("network", [Creation(f"test-{uuid.uuid4()}", {"name": "paused"})])
        assert isinstance(made, Observation)
        headers = {"Retry-After": str(PAUSE_S)}
        path = f"/networks/{made.handle}$"
        with openstack_cloud.fault(
            "http", service="neutron-api", method="GET", path=path, status=429, times=1, headers=headers
        ):
            with pytest.raises(Transient) as refused:
                cloud.observe("network", [made.handle])
            paused_at = time.monotonic()
            (seen,) = cloud.observe("network", [made.handle])
        assert refused.value.retry_after_s == PAUSE_S
        assert seen.present
        assert time.monotonic() - paused_at >= PAUSE_S * 0.9
        cloud.delete("network", [made.handle])
