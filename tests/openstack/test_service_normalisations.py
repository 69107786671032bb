"""What further services make of the values that templates set; see `test_normalisations`."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.resources.registry import type_of
from tests.openstack import test_images, test_networking
from tests.openstack.lives import make, remove
from tests.openstack.normalising import check, places, tried
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack as RunningCloud
from tests.openstack.service_values import OF_SERVICE, SERVICES, SLOW

clouds, there, url = test_networking.clouds, test_networking.there, test_images.url


class World:
    """What the values name, made when a service is needed first."""

    def __init__(self, clouds: tuple[OpenStackCloud, ...], project: Project, there: dict[str, str]) -> None:
        self.user, self.operator = clouds
        self.project = project
        self.names = {**there, "own_project": project.id, "unique_id": str(uuid.uuid4())}
        self.stack = contextlib.ExitStack()
        self._known: set[str] = set()

    def have(self, services: tuple[str, ...], request: pytest.FixtureRequest) -> None:
        for service in services or ("glance",):
            if service not in self._known:
                self._known.add(service)
                getattr(self, f"_{service}", lambda _: None)(request)

    def _make(self, called: str, type_name: str, by_admin: bool = False, **properties: object) -> str:
        cloud = self.operator if by_admin else self.user
        name = f"{called}-{uuid.uuid4().hex[:6]}"
        has_name = "name" in type_of(type_name).properties
        given = {**({"name": name} if has_name else {}), **properties}
        made = make(cloud, type_name, given, name)
        self.stack.callback(remove, cloud, type_of(type_name).kind, made)
        self.names[called], self.names[f"{called}_name"] = made, str(given.get("name", name))
        return made

    def _glance(self, request: pytest.FixtureRequest) -> None:
        self.names["url"] = request.getfixturevalue("url")

    def _octavia(self, request: pytest.FixtureRequest) -> None:
        single, zone = '{"loadbalancer_topology": "SINGLE"}', '{"compute_zone": "nova"}'
        of = "OS::Octavia::"
        profile = self._make(
            "lb_flavor_profile", f"{of}FlavorProfile", True, flavor_data=single, provider_name="amphora"
        )
        self._make("lb_flavor", f"{of}Flavor", True, flavor_profile=profile)
        profile = self._make(
            "lb_zone_profile",
            f"{of}AvailabilityZoneProfile",
            True,
            availability_zone_data=zone,
            provider_name="amphora",
        )
        self._make("lb_zone", f"{of}AvailabilityZone", True, availability_zone_profile=profile)
        balancer = self._make("balancer", f"{of}LoadBalancer", vip_subnet=self.names["subnet"])
        web: dict[str, Any] = {"loadbalancer": balancer, "protocol": "HTTP"}
        listener = self._make("listener", f"{of}Listener", **web, protocol_port=80)
        self._make("free_pool", f"{of}Pool", **web, lb_algorithm="ROUND_ROBIN")
        self._make("policy", f"{of}L7Policy", listener=listener, action="REJECT")

    def _barbican(self, request: pytest.FixtureRequest) -> None:
        for called in ("secret", "other_secret", "third_secret"):
            self._make(called, "OS::Barbican::Secret", payload="p")

    def _designate(self, request: pytest.FixtureRequest) -> None:
        name = f"{uuid.uuid4().hex}.example."
        self._make("zone", "OS::Designate::Zone", name=name, email="a@example.org")
        self.names |= {"www": f"www.{name}", "upper_www": f"WWW.{name}", "wild": f"*.{name}"}

    def _manila(self, request: pytest.FixtureRequest) -> None:
        self._make("security_service", "OS::Manila::SecurityService", type="ldap")

    def _zaqar(self, request: pytest.FixtureRequest) -> None:
        self._make("queue", "OS::Zaqar::Queue")

    def _mistral(self, request: pytest.FixtureRequest) -> None:
        tasks = [{"name": "rest", "action": "std.noop"}]
        self._make("workflow", "OS::Mistral::Workflow", type="direct", tasks=tasks, input={"word": "x", "n": 0})

    def _ironic(self, request: pytest.FixtureRequest) -> None:
        admin = self.stack.enter_context(contextlib.closing(self.project.admin()))
        machine = admin.baremetal.create_node(name=f"m-{uuid.uuid4()}", driver="fake-hardware")
        self.stack.callback(admin.baremetal.delete_node, machine)
        group = admin.baremetal.create_port_group(name=f"g-{uuid.uuid4()}", node_uuid=machine.id)
        self.stack.callback(admin.baremetal.delete_port_group, group)
        for called, thing in (("machine", machine), ("machine_group", group)):
            self.names[called], self.names[f"{called}_name"] = thing.id, thing.name

    def _blazar(self, request: pytest.FixtureRequest) -> None:
        self._make("reservable", "OS::Blazar::Host", True, name="compute1")


@pytest.fixture(scope="module")
def world(
    clouds: tuple[OpenStackCloud, ...], project: Project, there: dict[str, str], openstack_cloud: RunningCloud
) -> Iterator[World]:
    found = World(clouds, project, there)
    with found.stack:
        yield found


def _case(services: tuple[str, ...], name: str, key: str) -> object:
    marks = [pytest.mark.services(*services)] if services else [pytest.mark.slow]
    slow = [pytest.mark.slow] if SLOW & {*services} else []
    # A host with servers cannot be made reservable; while it is, Nova places nothing else of others on it.
    alone = [pytest.mark.alone] if "blazar" in services else []
    return pytest.param(services, name, key, marks=[*marks, *slow, *alone], id=f"{name} {key}")


CASES = [_case(services, name, key) for services, table in OF_SERVICE.items() for name, key in places(table)]


@pytest.mark.parametrize(("services", "type_name", "key"), CASES)
def test_what_a_service_makes_of_a_value_is_no_drift(
    services: tuple[str, ...], type_name: str, key: str, world: World, request: pytest.FixtureRequest
) -> None:
    world.have(services, request)
    values = SERVICES[type_name]
    cloud = world.operator if values.by_admin else world.user
    rows = [tried(cloud, type_name, values, key, value, world.names) for value in values.tried[key]]
    check(f"{type_name} {key}", rows)
