"""Stacks with VPNs, chains of services and taps, in a real Neutron with the plug-ins that have them."""

import contextlib
import string
import uuid
from collections.abc import Iterator

import pytest
import yaml

from tests.openstack.lives import Spec
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.serving import Served, serving

pytestmark = pytest.mark.services("vpnaas", "sfc", "taas")
RESOURCES = """\
net: {type: OS::Neutron::Net}
subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.72.0.0/24}}
router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
joint:
  type: OS::Neutron::RouterInterface
  properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}
vpn:
  type: OS::Neutron::VPNService
  depends_on: joint
  properties:
    description: $words
    router: {get_resource: router}
    subnet: {get_resource: subnet}
ike: {type: OS::Neutron::IKEPolicy, properties: {auth_algorithm: sha256}}
ipsec: {type: OS::Neutron::IPsecPolicy, properties: {auth_algorithm: sha256, encryption_algorithm: $cipher}}
connection:
  type: OS::Neutron::IPsecSiteConnection
  properties:
    description: $words
    peer_address: 192.0.2.8
    peer_id: 192.0.2.8
    peer_cidrs: [10.98.0.0/24]
    psk: secret
    vpnservice_id: {get_resource: vpn}
    ikepolicy_id: {get_resource: ike}
    ipsecpolicy_id: {get_resource: ipsec}
in:
  type: OS::Neutron::Port
  properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}}]}
out:
  type: OS::Neutron::Port
  properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}}]}
server:
  type: OS::Nova::Server
  properties:
    image: mini
    flavor: m1.tiny
    networks: [{port: {get_resource: in}}, {port: {get_resource: out}}]
pair:
  type: OS::Neutron::PortPair
  depends_on: server
  properties: {ingress: {get_resource: in}, egress: {get_resource: out}}
group: {type: OS::Neutron::PortPairGroup, properties: {port_pairs: [{get_resource: pair}]}}
classifier:
  type: OS::Neutron::FlowClassifier
  properties: {protocol: $protocol, logical_source_port: {get_resource: in}}
chain:
  type: OS::Neutron::PortChain
  properties:
    port_pair_groups: [{get_resource: group}]
    flow_classifiers: [{get_resource: classifier}]
    chain_parameters: {symmetric: $symmetric}
tap: {type: OS::Neutron::TaaS::TapService, properties: {port: {get_resource: out}}}
flow:
  type: OS::Neutron::TaaS::TapFlow
  properties:
    port: {get_resource: in}
    tap_service: {get_resource: tap}
    direction: $direction
"""
USUAL = {"words": "first", "cipher": "aes-128", "direction": "BOTH", "protocol": "tcp", "symmetric": "false"}


def resources(**changed: str) -> Spec:
    return dict(yaml.safe_load(string.Template(RESOURCES).substitute({**USUAL, **changed})))


@pytest.fixture(scope="module")
def served(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(project, tmp_path_factory.mktemp("service") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def stack(served: Served) -> Iterator[str]:
    """Name of a stack that has one of each."""
    name = f"services-{uuid.uuid4().hex[:6]}"
    served.create(name, resources(), look_s=5)
    assert served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", served.failures(name)
    yield name
    served.delete(name)
    eventually(lambda: served.http.get(f"stacks/{name}").status_code == 404, "the stack to go")


REPLACED: tuple[tuple[str, str, set[str]], ...] = (
    ("words", "other words", set()),
    ("cipher", "aes-256", {"ipsec", "connection"}),
    ("direction", "IN", {"flow"}),
    ("protocol", "udp", {"classifier"}),
    ("symmetric", "true", {"chain"}),
)


def test_an_update_changes_in_place_or_replaces_what_it_has_to(served: Served, stack: str) -> None:
    now: dict[str, str] = {}
    for name, value, replaced in REPLACED:
        before, now = served.handles(stack), {**now, name: value}
        served.update(stack, resources(**now))
        assert served.at_rest(stack)["stack_status"] == "UPDATE_COMPLETE", served.failures(stack)
        after = served.handles(stack)
        assert {each for each in before if before[each] != after[each]} == replaced, name


def test_what_is_changed_outside_is_corrected_and_nothing_else_is(served: Served, stack: str, project: Project) -> None:
    handles = served.handles(stack)
    looked_at = served.looked_at(stack)
    eventually(lambda: served.looked_at(stack) > looked_at, "another look")
    assert served.failures(stack) == []
    path, body = f"/sfc/port_chains/{handles['chain']}", {"port_chain": {"name": "outside", "flow_classifiers": []}}
    with contextlib.closing(project.connection()) as user:
        assert user.network.put(path, json=body).status_code == 200

        def shown() -> Spec:
            return dict(user.network.get(path).json()["port_chain"])

        eventually(lambda: shown()["flow_classifiers"] == [handles["classifier"]], "the classifier to be back")
    eventually(lambda: served.is_well(stack), "all to be well")
    assert served.handles(stack) == handles
