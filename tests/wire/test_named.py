"""What a template names must exist in the cloud: the local one, behind a running API."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import heatclient.client
import pytest
from heatclient import exc
from heatclient.v1.client import Client as HeatClient
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.heat_api import REGION_KIND
from homeostat.clouds.local import LocalCloud
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.model.errors import Terminal
from tests.wire.running import database, serving

SERVER = """
heat_template_version: 2018-08-31
parameters: {image: {type: string, default: cirros}}
resources:
  srv:
    type: OS::Nova::Server
    properties: {image: {get_param: image}, flavor: m1.tiny, networks: [{network: private}]}
"""
FIREWALL = "heat_template_version: 2018-08-31\nresources: {stack: {type: OS::Heat::Stack, properties: {template: x}}}\n"


@pytest.fixture
def heat(tmp_path: Path) -> Iterator[HeatClient]:
    with (
        database(tmp_path) as db,
        contextlib.closing(LocalCloud(tmp_path / "cloud")) as cloud,
        serving(db, NoAccess(), cloud=cloud) as url,
    ):
        session = Session(auth=NoAuth(endpoint=f"{url}/v1/p"))
        yield heatclient.client.Client("1", session=session, service_type="orchestration")


def test_an_image_that_does_not_exist_is_refused_when_the_stack_is_created(heat: HeatClient) -> None:
    with pytest.raises(
        exc.HTTPBadRequest,
        match=r"resources\.srv\.properties\.image: : Error validating value 'winodws': The Image",
    ):
        heat.stacks.create(stack_name="web", template=SERVER, parameters={"image": "winodws"})
    stack_id = heat.stacks.create(stack_name="web", template=SERVER)["stack"]["id"]
    with pytest.raises(exc.HTTPBadRequest, match="The Image"):
        heat.stacks.update(stack_id, template=SERVER, parameters={"image": "winodws"})


class RefusingCloud(SimulatedCloud):
    """A cloud that lets this user look nothing up."""

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        raise Terminal(f"you may not look for a {kind}")


def test_what_a_user_may_not_look_up_is_no_error_of_the_service(tmp_path: Path) -> None:
    with (
        database(tmp_path) as db,
        serving(db, NoAccess(), cloud=RefusingCloud(time.time, kinds=frozenset({*CLOUD_KINDS, REGION_KIND}))) as url,
    ):
        heat = heatclient.client.Client("1", session=Session(auth=NoAuth(endpoint=f"{url}/v1/p")))
        heat.stacks.create(stack_name="web", template=SERVER)
        elsewhere = FIREWALL.replace(": x", ": 'heat_template_version: wallaby', context: {region_name: r}")
        with pytest.raises(exc.HTTPBadRequest, match="you may not look for"):
            heat.stacks.create(stack_name="far", template=elsewhere)


def test_a_type_of_a_service_that_is_not_there_is_refused_and_not_listed(heat: HeatClient) -> None:
    with pytest.raises(exc.HTTPBadRequest, match=r"HEAT-E99001 Service heat is not available .* OS::Heat::Stack"):
        heat.stacks.create(stack_name="web", template=FIREWALL.replace("x", "'heat_template_version: wallaby'"))
    listed = [each.resource_type for each in heat.resource_types.list()]
    assert "OS::Nova::Server" in listed
    assert "OS::Heat::Stack" not in listed
    with pytest.raises(exc.HTTPBadRequest, match="HEAT-E99001"):
        heat.resource_types.get("OS::Heat::Stack")
