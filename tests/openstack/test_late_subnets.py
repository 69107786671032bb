"""A port made before its network had a subnet, as in a nested stack that began early: its server is waited for."""

import uuid

from homeostat.clouds.port import Answer, Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from tests.openstack import test_servers as servers
from tests.openstack.one_thing import present
from tests.openstack.running import eventually
from tests.openstack.test_servers import World

world = servers.world


def _token() -> str:
    return f"{uuid.uuid4().hex[:12]}-1"


def _made(world: World, kind: str, **spec: object) -> str:
    (answer,) = world.cloud.create(kind, [Creation(_token(), spec)])
    assert isinstance(answer, Observation), answer
    return answer.handle


def test_a_server_gets_its_address_once_there_is_a_subnet(world: World) -> None:
    network = _made(world, "network", name="late")
    port = _made(world, "port", network_id=network)
    token = _token()

    def ask() -> Answer:
        spec = {**world.spec(networks=[{"port": port}]), "name": "late"}
        return world.cloud.create("server", [Creation(token, spec)])[0]

    first = ask()
    assert isinstance(first, Transient)
    assert "has no subnet yet" in str(first)
    _made(world, "subnet", network_id=network, cidr="10.77.0.0/24", ip_version=4)

    def made() -> Observation | None:
        answer = ask()
        return None if isinstance(answer, Transient) else present(answer)

    server = eventually(made, "the server to be made")
    (seen,) = world.cloud.observe("port", [port])
    assert [each["ip_address"][:6] for each in seen.properties["fixed_ips"]] == ["10.77."]
    world.cloud.delete("server", [server.handle])
