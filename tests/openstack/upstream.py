"""Stacks as Heat leaves them when it abandons them: things made by its clients' requests, and its document of them.

Heat puts nothing of its own on things: they have its names, `<stack>-<resource>-<12 letters>`, and no token.
"""

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from homeostat.clouds.openstack.compute import generated_pair
from tests.openstack.running import eventually

Wire = dict[str, Any]
LETTERS = string.ascii_lowercase + string.digits
TEMPLATE = """
heat_template_version: wallaby
parameters:
  image: {type: string}
  flavor: {type: string, default: m1.tiny}
  public: {type: string}
  key_name: {type: string}
  note: {type: string, default: first}
  size: {type: number, default: 1}
  member_count: {type: number, default: 2}
resources:
  net:
    type: OS::Neutron::Net
  subnet:
    type: OS::Neutron::Subnet
    properties:
      network: {get_resource: net}
      cidr: 192.168.55.0/24
      dns_nameservers: [192.0.2.53]
  router:
    type: OS::Neutron::Router
    properties:
      external_gateway_info: {network: {get_param: public}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}
  group:
    type: OS::Neutron::SecurityGroup
    properties:
      description: {get_param: note}
      rules:
        - {protocol: tcp, port_range_min: 22, port_range_max: 22}
        - {protocol: icmp}
        - {remote_mode: remote_group_id}
  rule:
    type: OS::Neutron::SecurityGroupRule
    properties:
      security_group: {get_resource: group}
      protocol: tcp
      port_range_min: 80
      port_range_max: 80
  port:
    type: OS::Neutron::Port
    properties:
      network: {get_resource: net}
      fixed_ips: [{subnet: {get_resource: subnet}}]
      security_groups: [{get_resource: group}]
  key:
    type: OS::Nova::KeyPair
    properties: {name: {get_param: key_name}, save_private_key: true}
  affinity:
    type: OS::Nova::ServerGroup
    properties: {policies: [soft-anti-affinity]}
  web:
    type: OS::Nova::Server
    properties:
      image: {get_param: image}
      flavor: {get_param: flavor}
      key_name: {get_resource: key}
      networks: [{port: {get_resource: port}}]
      scheduler_hints: {group: {get_resource: affinity}}
      metadata: {note: {get_param: note}}
      user_data: "#!/bin/sh"
  own:
    type: OS::Nova::Server
    properties:
      name: {get_param: note}
      image: {get_param: image}
      flavor: m1.tiny
      networks: [{subnet: {get_resource: subnet}}]
      security_groups: [{get_resource: group}]
  plain:
    type: OS::Nova::Server
    properties:
      image: {get_param: image}
      flavor: m1.tiny
      networks: [{network: {get_resource: net}}]
  volume:
    type: OS::Cinder::Volume
    properties: {size: {get_param: size}, metadata: {note: {get_param: note}}}
  attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {volume_id: {get_resource: volume}, instance_uuid: {get_resource: web}}
  address:
    type: OS::Neutron::FloatingIP
    properties: {floating_network: {get_param: public}}
  association:
    type: OS::Neutron::FloatingIPAssociation
    properties: {floatingip_id: {get_resource: address}, port_id: {get_resource: port}}
  members:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: member_count}
      resource_def:
        type: OS::Cinder::Volume
        properties: {size: 1, name: "member %index%"}
  inner:
    type: inner.yaml
    properties: {network: {get_resource: net}, note: {get_param: note}}
outputs:
  address: {value: {get_attr: [address, floating_ip_address]}}
  volume: {value: {get_attr: [inner, volume]}}
"""
INNER = """
heat_template_version: wallaby
parameters:
  network: {type: string}
  note: {type: string}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}}
  volume:
    type: OS::Cinder::Volume
    properties: {size: 1, description: {get_param: note}}
outputs:
  volume: {value: {get_resource: volume}}
"""
BALANCED = """
heat_template_version: wallaby
parameters:
  subnet: {type: string}
  weight: {type: number, default: 1}
resources:
  balancer:
    type: OS::Octavia::LoadBalancer
    properties: {vip_subnet: {get_param: subnet}}
  listener:
    type: OS::Octavia::Listener
    properties: {loadbalancer: {get_resource: balancer}, protocol: HTTP, protocol_port: 80}
  pool:
    type: OS::Octavia::Pool
    properties: {listener: {get_resource: listener}, protocol: HTTP, lb_algorithm: ROUND_ROBIN}
  member:
    type: OS::Octavia::PoolMember
    properties:
      pool: {get_resource: pool}
      address: 192.0.2.7
      protocol_port: 8080
      weight: {get_param: weight}
  monitor:
    type: OS::Octavia::HealthMonitor
    properties: {pool: {get_resource: pool}, type: HTTP, delay: 5, timeout: 3, max_retries: 3}
  policy:
    type: OS::Octavia::L7Policy
    properties: {listener: {get_resource: listener}, action: REJECT}
  rule:
    type: OS::Octavia::L7Rule
    properties: {l7policy: {get_resource: policy}, type: PATH, compare_type: STARTS_WITH, value: /private}
"""


@dataclass(slots=True)
class Abandoned:
    """A stack that Heat has abandoned.

    ids — path of a resource -> its physical id. data — path -> its `resource_data`.
    """

    name: str
    template: str
    parameters: Wire
    files: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    data: dict[str, Wire] = field(default_factory=dict)

    def called(self, resource: str) -> str:
        """Heat's name for a thing that has none."""
        return f"{self.name}-{resource}-{''.join(secrets.choice(LETTERS) for _ in range(12))}"

    def document(self) -> Wire:
        """What `DELETE …/abandon` has answered."""
        template = yaml.safe_load(self.template)
        types = {name: each["type"] for name, each in template["resources"].items()}
        return self._document(self.name, template, types, "", self.parameters)

    def _document(self, name: str, template: Any, types: Mapping[str, str], path: str, parameters: Wire) -> Wire:
        return {
            "name": name,
            "id": "0c2f0bd2-7a28-4f2c-8a08-d9c4ad8f3c5e",
            "action": "DELETE" if not path else "CREATE",
            "status": "IN_PROGRESS" if not path else "COMPLETE",
            "project_id": "a" * 32,
            "stack_user_project_id": "b" * 32,
            "tags": None,
            "environment": {
                "parameters": parameters,
                "parameter_defaults": {},
                "event_sinks": [],
                "resource_registry": {"resources": {}},
                "encrypted_param_names": [],
            },
            "files": dict(self.files),
            "template": template,
            "resources": {each: self._entry(f"{path}{each}", each, type) for each, type in types.items()},
        }

    def _entry(self, path: str, name: str, type: str) -> Wire:
        inside = [each.removeprefix(f"{path}.") for each in self.ids if each.startswith(f"{path}.")]
        if inside:
            types = self._inside(type, inside)
            template = {
                "heat_template_version": "2015-04-30",
                "resources": {each: {"type": types[each]} for each in types},
            }
            return self._document(self.called(name), template, types, f"{path}.", {})
        return {
            "name": name,
            "resource_id": self.ids[path],
            "type": type,
            "action": "CREATE",
            "status": "COMPLETE",
            "metadata": {},
            "resource_data": self.data.get(path, {}),
        }

    def _inside(self, type: str, names: list[str]) -> dict[str, str]:
        if type in self.files:
            return {name: each["type"] for name, each in yaml.safe_load(self.files[type])["resources"].items()}
        return dict.fromkeys(names, "OS::Cinder::Volume")


def web(user: Any, name: str, image: str, public: str) -> Abandoned:
    """A stack of `TEMPLATE` with all its things."""
    parameters = {"image": image, "public": public, "key_name": f"{name}-key"}
    stack = Abandoned(name, TEMPLATE, parameters, {"inner.yaml": INNER})
    _networking(user, stack)
    _computing(user, stack)
    return stack


def _networking(user: Any, stack: Abandoned) -> None:
    ids, network = stack.ids, user.network
    ids["net"] = net = network.create_network(name=stack.called("net"), admin_state_up=True, shared=False).id
    subnet = network.create_subnet(
        name=stack.called("subnet"),
        network_id=net,
        ip_version=4,
        cidr="192.168.55.0/24",
        enable_dhcp=True,
        dns_nameservers=["192.0.2.53"],
    )
    public = {"network_id": network.find_network(stack.parameters["public"], ignore_missing=False).id}
    router = network.create_router(name=stack.called("router"), admin_state_up=True, external_gateway_info=public)
    network.add_interface_to_router(router, subnet=subnet.id)
    ids |= {"subnet": subnet.id, "router": router.id, "interface": f"{router.id}:subnet_id={subnet.id}"}
    ids["group"] = group = network.create_security_group(name=stack.called("group"), description="first").id
    alike = {"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"}
    network.create_security_group_rule(**alike, protocol="tcp", port_range_min=22, port_range_max=22)
    network.create_security_group_rule(**alike, protocol="icmp")
    network.create_security_group_rule(**alike, remote_group_id=group)
    rule = network.create_security_group_rule(**alike, protocol="tcp", port_range_min=80, port_range_max=80)
    ids["rule"] = rule.id
    place = [{"subnet_id": subnet.id}]
    port = network.create_port(
        name=stack.called("port"), network_id=net, fixed_ips=place, security_groups=[group], admin_state_up=True
    )
    address = network.create_ip(floating_network_id=public["network_id"])
    network.update_ip(address, port_id=port.id)
    ids |= {"port": port.id, "address": address.id, "association": "1742"}
    ids["inner.port"] = network.create_port(name=stack.called("port"), network_id=net, admin_state_up=True).id


def _computing(user: Any, stack: Abandoned) -> None:
    ids, compute, storage = stack.ids, user.compute, user.block_storage
    public, private = generated_pair()
    ids["key"] = compute.create_keypair(name=stack.parameters["key_name"], public_key=public).name
    stack.data["key"] = {"private_key": private}
    group = compute.create_server_group(name=stack.called("affinity"), policy="soft-anti-affinity")
    ids["affinity"] = group.id
    # Heat makes the port of an entry with a subnet itself, and notes it.
    mine = user.network.create_port(
        name="own-port-0",
        network_id=ids["net"],
        fixed_ips=[{"subnet_id": ids["subnet"]}],
        security_groups=[ids["group"]],
    )
    stack.data["own"] = {"internal_ports": f'[{{"id": "{mine.id}"}}]'}
    alike = {"imageRef": stack.parameters["image"], "flavorRef": user.compute.find_flavor("m1.tiny").id}
    servers: dict[str, Wire] = {
        "web": {
            "name": stack.called("web"),
            "key_name": ids["key"],
            "networks": [{"port": ids["port"]}],
            "metadata": {"note": "first"},
            "scheduler_hints": {"group": group.id},
            "user_data": "IyEvYmluL3No",
        },
        "own": {"name": "first", "networks": [{"port": mine.id}]},
        "plain": {"name": stack.called("plain"), "networks": [{"uuid": ids["net"]}]},
    }
    for name, each in servers.items():
        ids[name] = compute.create_server(**alike, **each).id
    volumes: dict[str, Wire] = {
        "volume": {"name": stack.called("volume"), "metadata": {"note": "first"}},
        "inner.volume": {"name": stack.called("volume"), "description": "first"},
        **{f"members.{number}": {"name": f"member {number}"} for number in range(2)},
    }
    for name, fields in volumes.items():
        ids[name] = storage.create_volume(size=1, **{"description": fields["name"], **fields}).id
    eventually(lambda: all(compute.get_server(ids[name]).status == "ACTIVE" for name in servers) or None, "servers")
    eventually(lambda: all(storage.get_volume(ids[name]).status == "available" for name in volumes) or None, "volumes")
    compute.create_volume_attachment(ids["web"], volume_id=ids["volume"])
    ids["attachment"] = ids["volume"]
    eventually(lambda: storage.get_volume(ids["volume"]).status == "in-use" or None, "an attachment")


def balanced(user: Any, name: str, subnet: str) -> Abandoned:
    """A stack of `BALANCED` with all its things."""
    stack, service = Abandoned(name, BALANCED, {"subnet": subnet}), user.load_balancer
    ids = stack.ids

    def add(resource: str, made: Any) -> str:
        ids[resource] = made.id
        eventually(lambda: service.get_load_balancer(balancer).provisioning_status == "ACTIVE" or None, resource)
        return str(made.id)

    called = stack.called
    ids["balancer"] = balancer = service.create_load_balancer(name=called("balancer"), vip_subnet_id=subnet).id
    eventually(lambda: service.get_load_balancer(balancer).provisioning_status == "ACTIVE" or None, "a load balancer")
    alike = {"protocol": "HTTP", "admin_state_up": True}
    listener = add(
        "listener",
        service.create_listener(name=called("listener"), loadbalancer_id=balancer, protocol_port=80, **alike),
    )
    pool = add(
        "pool",
        service.create_pool(name=called("pool"), listener_id=listener, lb_algorithm="ROUND_ROBIN", **alike),
    )
    add("member", service.create_member(pool, address="192.0.2.7", protocol_port=8080, weight=1, admin_state_up=True))
    add(
        "monitor",
        service.create_health_monitor(
            pool_id=pool, type="HTTP", delay=5, timeout=3, max_retries=3, http_method="GET", url_path="/"
        ),
    )
    policy = add("policy", service.create_l7_policy(name=called("policy"), listener_id=listener, action="REJECT"))
    add("rule", service.create_l7_rule(policy, type="PATH", compare_type="STARTS_WITH", value="/private"))
    return stack
