"""What further services make of the values that templates set; see `test_normalisations`."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from tests.openstack import test_images, test_networking
from tests.openstack.named_things import Things
from tests.openstack.normalising import check, places, tried
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack as RunningCloud
from tests.openstack.service_values import OF_SERVICE, SERVICES, SLOW

clouds, there, url = test_networking.clouds, test_networking.there, test_images.url


class World(Things):
    """What the values of further services name, made when a service is needed first."""

    def __init__(self, clouds: tuple[OpenStackCloud, ...], project: Project, there: dict[str, str]) -> None:
        super().__init__(clouds, project, there)
        self._known: set[str] = set()

    def serve(self, services: tuple[str, ...], request: pytest.FixtureRequest) -> None:
        for service in services or ("glance",):
            if service not in self._known:
                self._known.add(service)
                getattr(self, f"_{service}", lambda _: None)(request)

    def _glance(self, request: pytest.FixtureRequest) -> None:
        self.names["url"] = request.getfixturevalue("url")

    def _octavia(self, request: pytest.FixtureRequest) -> None:
        single, zone = '{"loadbalancer_topology": "SINGLE"}', '{"compute_zone": "nova"}'
        of = "OS::Octavia::"
        profile = self.make(
            "lb_flavor_profile", f"{of}FlavorProfile", True, flavor_data=single, provider_name="amphora"
        )
        self.make("lb_flavor", f"{of}Flavor", True, flavor_profile=profile)
        profile = self.make(
            "lb_zone_profile",
            f"{of}AvailabilityZoneProfile",
            True,
            availability_zone_data=zone,
            provider_name="amphora",
        )
        self.make("lb_zone", f"{of}AvailabilityZone", True, availability_zone_profile=profile)
        balancer = self.make("balancer", f"{of}LoadBalancer", vip_subnet=self.names["subnet"])
        web: dict[str, Any] = {"loadbalancer": balancer, "protocol": "HTTP"}
        listener = self.make("listener", f"{of}Listener", **web, protocol_port=80)
        self.make("free_pool", f"{of}Pool", **web, lb_algorithm="ROUND_ROBIN")
        self.make("policy", f"{of}L7Policy", listener=listener, action="REJECT")

    def _barbican(self, request: pytest.FixtureRequest) -> None:
        for called in ("secret", "other_secret", "third_secret"):
            self.make(called, "OS::Barbican::Secret", payload="p")

    def _designate(self, request: pytest.FixtureRequest) -> None:
        name = f"{uuid.uuid4().hex}.example."
        self.make("zone", "OS::Designate::Zone", name=name, email="a@example.org")
        self.names |= {"www": f"www.{name}", "upper_www": f"WWW.{name}", "wild": f"*.{name}"}

    def _manila(self, request: pytest.FixtureRequest) -> None:
        self.make("security_service", "OS::Manila::SecurityService", type="ldap")

    def _zaqar(self, request: pytest.FixtureRequest) -> None:
        self.make("queue", "OS::Zaqar::Queue")

    def _mistral(self, request: pytest.FixtureRequest) -> None:
        tasks = [{"name": "rest", "action": "std.noop"}]
        self.make("workflow", "OS::Mistral::Workflow", type="direct", tasks=tasks, input={"word": "x", "n": 0})

    def _ironic(self, request: pytest.FixtureRequest) -> None:
        admin = self.stack.enter_context(contextlib.closing(self.project.admin()))
        machine = admin.baremetal.create_node(name=f"m-{uuid.uuid4()}", driver="fake-hardware")
        self.stack.callback(admin.baremetal.delete_node, machine)
        group = admin.baremetal.create_port_group(name=f"g-{uuid.uuid4()}", node_uuid=machine.id)
        self.stack.callback(admin.baremetal.delete_port_group, group)
        for called, thing in (("machine", machine), ("machine_group", group)):
            self.names[called], self.names[f"{called}_name"] = thing.id, thing.name

    def _blazar(self, request: pytest.FixtureRequest) -> None:
        self.make("reservable", "OS::Blazar::Host", True, name="compute1")
        self.names["free_host"] = "compute2"

    def _vpnaas(self, request: pytest.FixtureRequest) -> None:
        of, network = "OS::Neutron::", self.make("vpn_network", "OS::Neutron::Net")
        subnet = self.make("vpn_subnet", f"{of}Subnet", network=network, cidr="10.71.0.0/24")
        router = self.make("vpn_router", f"{of}Router", external_gateway_info={"network": "public"})
        self.make("vpn_interface", f"{of}RouterInterface", router=router, subnet=subnet)
        for which in ("", "other_"):
            self.make(f"{which}vpn", f"{of}VPNService", router=router, subnet=subnet)
            self.make(f"{which}ike_policy", f"{of}IKEPolicy", auth_algorithm="sha256")
            self.make(f"{which}ipsec_policy", f"{of}IPsecPolicy", auth_algorithm="sha256")

    def _chain_ports(self) -> None:
        """Ports of devices: no others can be a pair."""
        if "chain_port_1" in self.names:
            return
        network = self.make("chain_network", "OS::Neutron::Net")
        subnet = self.make("chain_subnet", "OS::Neutron::Subnet", network=network, cidr="10.72.0.0/24")
        for number in range(1, 11):
            place: dict[str, Any] = {"fixed_ips": [{"subnet": subnet}], "device_id": "a device"}
            self.make(f"chain_port_{number}", "OS::Neutron::Port", network=network, **place)

    def _sfc(self, request: pytest.FixtureRequest) -> None:
        self._chain_ports()
        ports = [self.names[f"chain_port_{number}"] for number in range(1, 11)]
        for number in (1, 2):
            pair, spare = ports[2 * number : 2 * number + 2], ports[2 * number + 4 : 2 * number + 6]
            self.make(f"pair_{number}", "OS::Neutron::PortPair", ingress=pair[0], egress=pair[1])
            free = self.make(f"spare_pair_{number}", "OS::Neutron::PortPair", ingress=spare[0], egress=spare[1])
            self.make(f"pair_group_{number}", "OS::Neutron::PortPairGroup", port_pairs=[free])
        self.make("classifier", "OS::Neutron::FlowClassifier", protocol="udp", logical_source_port=ports[2])

    def _taas(self, request: pytest.FixtureRequest) -> None:
        self._chain_ports()
        self.make("tap_service", "OS::Neutron::TaaS::TapService", port=self.names["chain_port_3"])


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
    values = SERVICES[type_name]
    world.serve(services, request)
    world.have(values, key)
    cloud = world.operator if values.is_by_admin(key) else world.user
    rows = [tried(cloud, type_name, values, key, value, world.names) for value in values.tried[key]]
    check(f"{type_name} {key}", rows)
