"""VPNs, chains of services and taps, in a real Neutron with the plug-ins that have them."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal, Transient
from tests.openstack.lives import Life, Spec, adapter, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project

pytestmark = pytest.mark.services("vpnaas", "sfc", "taas")
API = "neutron-api"
WORDS: tuple[Spec, ...] = ({"name": "other", "description": "words"}, {"name": "third", "description": ""})
SECRET = {"peer_address": "192.0.2.7", "peer_id": "192.0.2.7", "peer_cidrs": ["10.99.0.0/24"], "psk": "secret"}
ROWS: tuple[tuple[str, Spec, tuple[Spec, ...]], ...] = (
    # Neutron lets it be changed once it has a connection.
    ("VPNService", {"subnet": "$subnet", "router": "$router"}, ()),
    (
        "IKEPolicy",
        {"auth_algorithm": "sha256"},
        (*WORDS, {"lifetime": {"units": "seconds", "value": 7200}, "ike_version": "v2", "pfs": "group14"}),
    ),
    (
        "IPsecPolicy",
        {"auth_algorithm": "sha256", "encryption_algorithm": "aes-256", "transform_protocol": "esp"},
        WORDS,
    ),
    (
        "IPsecSiteConnection",
        {
            **SECRET,
            "vpnservice_id": "$vpn",
            "ikepolicy_id": "$ike",
            "ipsecpolicy_id": "$ipsec",
            "dpd": {"actions": "restart", "interval": 10, "timeout": 60},
        },
        (*WORDS, {"admin_state_up": False}),
    ),
    (
        "FlowClassifier",
        {
            "protocol": "tcp",
            "logical_source_port": "$port_1",
            "destination_port_range_min": 80,
            "destination_port_range_max": 81,
        },
        WORDS,
    ),
    ("PortPair", {"ingress": "$port_1", "egress": "$port_2"}, WORDS),
    (
        "PortPairGroup",
        {"port_pairs": ["$pair_1"]},
        (*WORDS, {"port_pairs": ["$pair_1", "$pair_2"]}, {"port_pairs": ["$pair_2"]}),
    ),
    (
        "PortChain",
        {"port_pair_groups": ["$group_1"], "flow_classifiers": ["$classifier"]},
        (*WORDS, {"port_pair_groups": ["$group_2", "$group_1"]}, {"flow_classifiers": []}),
    ),
    ("TaaS::TapService", {"port": "$port_1"}, WORDS),
    ("TaaS::TapFlow", {"port": "$port_2", "tap_service": "$tap", "direction": "IN", "vlan_filter": "10,20-30"}, WORDS),
)


class World:
    """What the rows name, made when a row needs it first."""

    def __init__(self, cloud: OpenStackCloud) -> None:
        self.cloud = cloud
        self.made: list[tuple[str, str]] = []
        self.names: dict[str, str] = {}

    def make(self, called: str, type_name: str, **properties: Any) -> str:
        if called not in self.names:
            name = f"OS::Neutron::{type_name}"
            self.names[called] = make(self.cloud, name, properties)
            self.made.append((Life(name, properties).of.kind, self.names[called]))
        return self.names[called]

    def fill(self) -> None:
        network = self.make("network", "Net")
        subnet = self.make("subnet", "Subnet", network=network, cidr="10.71.0.0/24")
        router = self.make("router", "Router", external_gateway_info={"network": "public"})
        self.make("interface", "RouterInterface", router=router, subnet=subnet)
        for number in range(1, 7):
            # Only ports of devices can be a pair, as those of servers.
            place = {"fixed_ips": [{"subnet": subnet}], "device_id": "a device"}
            self.make(f"port_{number}", "Port", network=network, **place)
        self.make("vpn", "VPNService", router=router, subnet=subnet)
        self.make("ike", "IKEPolicy", auth_algorithm="sha256")
        self.make("ipsec", "IPsecPolicy", auth_algorithm="sha256")
        ports = [self.names[f"port_{number}"] for number in range(1, 7)]
        for number in (1, 2):
            self.make(f"pair_{number}", "PortPair", ingress=ports[2 * number], egress=ports[2 * number + 1])
            spare = self.make(f"spare_{number}", "PortPair", ingress=ports[number], egress=ports[number + 2])
            self.make(f"group_{number}", "PortPairGroup", port_pairs=[spare])
        self.make("classifier", "FlowClassifier", protocol="udp", logical_source_port=ports[5])
        self.make("tap", "TaaS::TapService", port=ports[3])

    def filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(each) for each in value]
        return self.names[value[1:]] if isinstance(value, str) and value.startswith("$") else value


@pytest.fixture(scope="module")
def world(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with adapter(project, tmp_path_factory.mktemp("cloud")) as cloud:
        found = World(cloud)
        try:
            found.fill()
            yield found
        finally:
            for kind, handle in reversed(found.made):
                remove(cloud, kind, handle)


def life(world: World, row: tuple[str, Spec, tuple[Spec, ...]]) -> Life:
    name, properties, changes = row
    return Life(f"OS::Neutron::{name}", world.filled(properties), tuple(map(world.filled, changes)))


def called(row: tuple[str, Spec, tuple[Spec, ...]]) -> str:
    return row[0]


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_a_thing_lives_and_dies(row: tuple[str, Spec, tuple[Spec, ...]], world: World) -> None:
    one = life(world, row)
    check_never(world.cloud, one.of.kind, str(uuid.uuid4()))
    check_life(world.cloud, one)


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_a_lost_answer_has_made_one_thing(
    row: tuple[str, Spec, tuple[Spec, ...]], world: World, project: Project
) -> None:
    one = life(world, row)
    path = world.cloud.collections[one.of.kind].path
    check_lost(world.cloud, project, one, API, f"{path}$")


@pytest.mark.parametrize("kind", ["vpn_service", "ike_policy", "ipsec_policy", "port_pair", "port_pair_group"])
def test_what_another_thing_uses_is_not_deleted_yet(kind: str, world: World) -> None:
    """The error passes: what deletes it waits for that to go."""
    properties = world.filled({**SECRET, "vpnservice_id": "$vpn", "ikepolicy_id": "$ike", "ipsecpolicy_id": "$ipsec"})
    connection = make(world.cloud, "OS::Neutron::IPsecSiteConnection", properties)
    chain = make(world.cloud, "OS::Neutron::PortChain", world.filled({"port_pair_groups": ["$group_1"]}))
    used = {
        "vpn_service": "vpn",
        "ike_policy": "ike",
        "ipsec_policy": "ipsec",
        "port_pair": "spare_1",
        "port_pair_group": "group_1",
    }
    try:
        assert isinstance(world.cloud.delete(kind, [world.names[used[kind]]])[0], Transient)
    finally:
        remove(world.cloud, "port_chain", chain)
        remove(world.cloud, "ipsec_site_connection", connection)


@pytest.mark.parametrize(("kind", "called"), [("ike_policy", "ike"), ("ipsec_policy", "ipsec")])
def test_a_policy_that_a_connection_uses_is_not_changed(kind: str, called: str, world: World) -> None:
    """No time brings that about: the error is for good, and says what does."""
    properties = world.filled({**SECRET, "vpnservice_id": "$vpn", "ikepolicy_id": "$ike", "ipsecpolicy_id": "$ipsec"})
    connection = make(world.cloud, "OS::Neutron::IPsecSiteConnection", properties)
    try:
        change = Change(world.names[called], {"description": "other"}, ("description",))
        (answer,) = world.cloud.update(kind, [change])
        assert isinstance(answer, Terminal)
        assert "add another policy" in str(answer)
    finally:
        remove(world.cloud, "ipsec_site_connection", connection)


@pytest.mark.parametrize("type_name", ["IKEPolicy", "IPsecPolicy"])
def test_an_algorithm_that_is_stored_no_more_is_refused(type_name: str, world: World) -> None:
    """It is the default of Heat's types, and the service answers with an internal error."""
    one = Life(f"OS::Neutron::{type_name}", {"auth_algorithm": "sha1"})
    (answer,) = world.cloud.create(one.of.kind, [Creation(f"p-{uuid.uuid4()}", one.spec("p"))])
    assert isinstance(answer, Terminal)
    assert "no policy with sha1 any more: set auth_algorithm to sha256" in str(answer)


def test_a_connection_of_a_subnet_without_a_router_is_refused(world: World) -> None:
    spec = Life("OS::Neutron::VPNService", world.filled({"subnet": "$subnet", "router": "$router"})).spec("v")
    (answer,) = world.cloud.create("vpn_service", [Creation(f"v-{uuid.uuid4()}", {**spec, "subnet_id": "no such"})])
    assert isinstance(answer, Terminal)
