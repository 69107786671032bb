"""The port to the outside world: the operations of a cloud that convergence uses, in batches.

Everything that acts on or observes real things goes through `Cloud`. Adapters: `local` (real processes), `simulated`
(in memory, virtual time), later `openstack`. Each passes the same contract tests (`tests/contract/test_clouds.py`).

Rules for adapters
* Arguments and answers are plain data (str, int, float, bool, None, list, dict) in the words of the table below.
* A batch is answered item by item, in the order of the request; a failed item is a value in the list, never an
  exception. An exception from the call itself means that the whole batch is `Transient` (not sent) or `Uncertain`
  (perhaps sent).
* `create` is idempotent on the token where the cloud allows it: a second call with the same token returns the same
  thing. In any case the thing carries its token, so that `find` finds it after a crash (CV18).
* A create returns as soon as the cloud has accepted it; the thing may still be building (`status`).
* Deleting an absent thing succeeds; the answer is then ABSENT with `not_found`. If the cloud was wrong and the thing
  reappears soon, it is removed then. A delete may take time: the answer is then a PRESENT observation whose status is
  `deleting`, and later observations are ABSENT.
* ABSENT requires that the cloud answered that the thing does not exist. A cloud that does not answer raises
  `Transient`; the observation is then unknown, never absent.

Objects by kind (fields beyond these are allowed; `status` words in lower case)
  server: {id, name, status: building|active|stopped|paused|suspended|error|deleting, locked, address,
    addresses: {network: [{addr, version, port, mac}]}, image, flavor, key_name, metadata, user_data,
    networks: [{network, port, fixed_ip}], security_groups, tags, fault, console_log?, pid? (local)}
  keypair: {id (= name), name, public_key, private_key (only in the create answer), type, fingerprint}
  network: {id, name, status, admin_state_up, shared, mtu, subnets: [id], tags}
  subnet: {id, name, network_id, cidr, gateway_ip, ip_version, enable_dhcp, dns_nameservers, allocation_pools,
    host_routes, tags}
  port: {id, name, network_id, status, mac_address, fixed_ips: [{subnet_id, ip_address}], security_groups, device_id,
    device_owner, admin_state_up, allowed_address_pairs, tags}; if created without network_id, it lies on the network
    of the first subnet of fixed_ips
  router: {id, name, status, admin_state_up, external_gateway_info, tags}
  router_interface: {id, router_id, subnet_id, port_id}
  floating_ip: {id, floating_network_id, floating_ip_address, fixed_ip_address, port_id, router_id, status}
  floating_ip_association: {id, floatingip_id, port_id, fixed_ip_address}
    Both may be created with `server` in place of `port_id`, which means the server's first port with an address; an
    association also with the address itself as floatingip_id. A floating_ip without floating_network_id, and a
    router_gateway without network_id, lie on the external network.
  floating_ip_port_forward: {id, floatingip_id, external_port, internal_port_id, internal_port, internal_ip_address,
    protocol}
  router_gateway: {id, router_id, network_id}
  extra_route_set: {id, router_id, routes: [{destination, nexthop}]}; other routes of the router are left alone
  security_group: {id, name, description, rules: [...], stateful}; rules does not include things of the next kind
  security_group_rule: {id, security_group_id, direction, ethertype, protocol, port_range_min, port_range_max,
    remote_group_id, remote_ip_prefix}
  qos_policy: {id, name, description, shared, rules: [...]}; qos_bandwidth_limit_rule: {id, policy, max_kbps,
    max_burst_kbps, direction}; qos_dscp_marking_rule: {id, policy, dscp_mark}; qos_minimum_bandwidth_rule: {id, policy,
    min_kbps, direction}; qos_minimum_packet_rate_rule: {id, policy, min_kpps, direction}
  segment: {id, name, network_id, network_type, physical_network, segmentation_id}
  address_scope: {id, name, shared, ip_version}; subnetpool: {id, name, prefixes, address_scope_id, default_quota,
    default_prefixlen, min_prefixlen, max_prefixlen, is_default, shared, tags}
  rbac_policy: {id, object_type, object_id, action, target_tenant}
  trunk: {id, name, status, port_id, sub_ports: [{port_id, segmentation_type, segmentation_id}], admin_state_up}
  metering_label: {id, name, description, shared}; metering_rule: {id, metering_label_id, remote_ip_prefix, direction,
    excluded}
  vpn_service: {id, name, status, subnet_id, router_id, admin_state_up}; ike_policy, ipsec_policy: {id, name,
    auth_algorithm, encryption_algorithm, lifetime: {units, value}, pfs, …}; ipsec_site_connection: {id, name, status,
    peer_address, peer_id, peer_cidrs, ikepolicy_id, ipsecpolicy_id, vpnservice_id, auth_mode, route_mode, …}
  firewall: {id, name, status, firewall_policy_id, admin_state_up}; firewall_policy: {id, name, firewall_rules: [id],
    audited}; firewall_rule: {id, name, protocol, action, position, firewall_policy_id, …}
  flow_classifier, port_pair: {id, name, ingress, egress}, port_pair_group: {id, name, port_pairs}, port_chain: {id,
    name, port_pair_groups, flow_classifiers}; tap_service: {id, name, status, port_id}; tap_flow: {id, name, status,
    source_port, tap_service_id, direction}
  l2_gateway: {id, name, devices}; l2_gateway_connection: {id, l2_gateway_id, network_id, segmentation_id};
    network_gateway: {id, name, devices, connections, default}
  server_group: {id, name, policies, rules, members: [id]}; servers name it as `scheduler_hints: {group}`
  flavor: {id, name, ram (MiB), vcpus, disk (GiB), is_public, extra_specs, tenants}
  host_aggregate: {id, name, availability_zone, hosts, metadata}
  compute_quota, network_quota, volume_quota, load_balancer_quota: {id, project, limits by name}; deleting one restores
    the defaults of the cloud
  volume: {id, name, status: creating|available|in-use|error|deleting, size (GiB), description, volume_type, metadata,
    image, source_volid, snapshot_id, availability_zone, bootable, attachments: [...], read_only, created_at}
  volume_type: {id, name, description, metadata, is_public, projects}; volume_type_encryption: {id, volume_type,
    provider, cipher, key_size, control_location}; volume_qos_specs: {id, name, specs};
    volume_qos_association: {id, qos_specs, volume_types}
  volume_attachment: {id, instance_uuid, volume_id, mountpoint, status}
  load_balancer: {id, name, status, vip_address, vip_subnet, vip_port_id, description, admin_state_up, pools, provider}
  listener: {id, name, status, loadbalancer, protocol, protocol_port, default_pool, connection_limit, admin_state_up}
  pool: {id, name, status, listener, loadbalancer, protocol, lb_algorithm, session_persistence, members,
    healthmonitor_id}
    A load_balancer may be created without vip_subnet: the cloud chooses one; a pool_member with `server` in place of
    address: the server's first address.
  pool_member: {id, status, operating_status: online|offline|no_monitor, pool, address, protocol_port, weight,
    admin_state_up}
  health_monitor: {id, status, pool, type, delay, timeout, max_retries, http_method, url_path, expected_codes,
    admin_state_up}
  l7_policy: {id, name, status, listener, action, redirect_pool, redirect_url, position, admin_state_up, rules: [...]};
    l7_rule: {id, status, l7policy, type, compare_type, key, value, invert, admin_state_up}
  load_balancer_flavor, load_balancer_zone: {id, name, description, enabled, …_profile_id};
    load_balancer_flavor_profile, load_balancer_zone_profile: {id, name, provider_name, …_data (JSON text)}
  remote_stack: {id, name, region, status: in_progress|complete|failed|deleting, action, fault, outputs: {name: value}};
    created with {name, region, template (text), parameters, files, timeout_mins?}; the handle of one in another region
    is `<region>/<id>`
  container (of objects): {id (= name), name, url, read_acl, write_acl, metadata, account_metadata, object_count,
    bytes_used, headers, purge}; with `purge` its objects are deleted with it, else one that is not empty is not deleted
  image: {id, name, status: queued|importing|active|deactivated|killed|error, disk_format, container_format, location
    (to download it from), min_disk, min_ram, protected, visibility, members, tags, active, extra_properties, …}
  domain, project, user, group, role: {id, name, description, enabled, domain_id; parent_id and tags of a project;
    default_project_id, email, password (never returned), groups, roles of a user; roles of a group}
  role_assignment: {id, user_id or group_id, roles: [{role, project_id or domain_id}]}
  service, region, endpoint: {id, name, type, description, enabled, parent_region_id, region_id, service_id, interface,
    url}
  secret: {id, name, status: active|error, payload, payload_content_type, payload_content_encoding, algorithm,
    bit_length, mode, expiration}
  secret_order: {id, name, status: pending|active|error, type: key|asymmetric|certificate, order_ref, secret_ref,
    container_ref, public_key, private_key, certificate, intermediates, …}
  secret_container: {id, name, status, type: generic|certificate|rsa, secret_refs: {name: ref}, container_ref,
    consumers}
  alarm: {id, name, type, <type>_rule, enabled, state, severity, description, repeat_actions, alarm_actions, ok_actions,
    insufficient_data_actions, time_constraints}
  dns_zone: {id, name, status: pending|active|error, type, email, ttl, description, masters, attributes, serial}
  dns_record_set: {id, name, status, zone_id, type, ttl, records, description}
  workflow: {id (= name), name, type, tasks, task_defaults, input, output, params, tags, executions}
  cron_trigger: {id (= name), name, pattern, workflow_name, workflow_input, first_time, count, next_execution_time,
    remaining_executions}
  external_resource: {id, status: idle|running|success|error|cancelled, action (SUSPEND or RESUME, the last one),
    actions: {CREATE|UPDATE|SUSPEND|RESUME|DELETE: {workflow, params}}, input, description, output}; each call runs the
    workflow of its action, if there is one
  share: {id, name, status: creating|available|error|error_deleting, share_proto, size (GiB), snapshot_id,
    share_network_id, share_type, metadata, is_public, access_rules, export_locations, host, availability_zone, …}
  share_network: {id, name, neutron_net_id, neutron_subnet_id, security_services, segmentation_id, cidr, ip_version,
    network_type}; share_type: {id, name, is_public, driver_handles_share_servers, extra_specs}
  share_security_service: {id, name, type, dns_ip, server, domain, user, password (never returned)}
  cluster_template: {id, name, image_id, flavor_id, master_flavor_id, keypair_id, external_network_id, coe, …}
  container_cluster: {id, name, status: create_in_progress|create_complete|create_failed|update_…, cluster_template_id,
    keypair, node_count, master_count, api_address, master_addresses, node_addresses, …}
  database_instance: {id, name, status: build|active|error|…, flavor_id, size (GiB), databases, users, networks,
    hostname, href, …}; database_cluster: {id, name, status, instances: [{id, status, …}], ip, …}
  queue: {id (= name), name, metadata, href}
  subscription: {id, queue_name, subscriber, ttl, options}
  signed_queue_url: {id, queue, signature, expires, paths, methods, project}; the cloud does not store it: its id
    contains everything
  workflow_trigger (a subscription that runs a workflow): {id, queue_name, ttl, workflow_id, params, input}
  app_container: {id, name, status: creating|running|stopped|paused|error|dead, image, command, cpu, memory, mounts,
    networks, restart_policy: {Name, MaximumRetryCount}, addresses, …}
  reservable_host: {id, name, status: up, extra_capability, hypervisor_hostname, vcpus, memory_mb, …}
  lease: {id, name, status: pending|active|terminated|error, start_date, end_date, reservations, events, …}
  baremetal_port: {id, node_uuid, address, portgroup_uuid, local_link_connection, pxe_enabled, …}
  signal_handle: {id, name, form: native|aws, transport, token?, endpoint?, url?}; the service itself provides this kind
    and the following ones
  wait_condition: {id, handle, signals: [{id, status, reason, data, at}], met (before it was adopted)}; created with
    {handle, timeout, count}
  software_config: {id, name, group, config, inputs, outputs, options}
  software_deployment: {id, name, server_id, config_id (the derived one), input_values, output_values, action, status,
    status_reason, replace_on_change}; created with {name, config, server_id, input_values, actions, transport}
  iam_user: {id, name, policies}; access_key: {id, name, user, access_key, secret_key}; deployed_server: {id, name,
    os_collect_config}

Operations by kind
* server: start, stop, reboot, pause, unpause, suspend, resume, lock, unlock, rebuild, snapshot. A locked server refuses
  every change, its deletion, and every operation but lock, unlock and snapshot. Locking a locked server, or suspending
  a suspended one, changes nothing.
* remote_stack, external_resource: suspend, resume (the field `action` reports the last one)
* remote_stack: validate with {region, template, parameters, files}; creates nothing, and is Rejected where the region
  refuses the template
* volume: snapshot
* kinds that the service itself provides: adopt with {token, spec, id, status, metadata, data}, see `builtin.cloud`
* queue: post with {messages: [{body, ttl (seconds)}]}
* app_container: start, unpause
* load_balancer, floating_ip: start, where they have a process that can die (their status is then `stopped`)

Snapshots
* `snapshot` with the arguments {token, name} starts to copy the data of a thing (a volume: a backup or snapshot; a
  server: an image of its disk) and returns at once. It is idempotent on the token: a second call continues the snapshot
  that carries the token, or restarts it if it was lost.
* As long as the thing exists, it lists its snapshots that carry a token: `snapshots: [{id, token, name, status:
  creating|available|error, fault, created_at}]`; without snapshots the field is left out.
* A snapshot remains when the thing is deleted. Deleting a thing during its snapshot may spoil the snapshot.
* Snapshots are a kind of their own (`model.plan.snapshots_of`), which has only `observe`, `find` and `delete`: {id,
  token, name, status}. Deleting an unfinished snapshot cancels it.
* A server whose `image` is the id of a snapshot gets the saved disk. A volume whose `backup_id` is one gets its data,
  whatever other source it has, also when an update changes `backup_id` or names it as changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from homeostat.model.errors import HomeostatError
from homeostat.model.observed import Observation


@dataclass(frozen=True, slots=True)
class Creation:
    """A thing to create.

    Attributes:
        token: Idempotency token, stored before the cloud is called.
        spec: Desired object.
    """

    token: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """An update in place; `changed` names the fields of `spec` that differ from the last request."""

    handle: str
    spec: Mapping[str, Any]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """An action on a thing that does not change its definition, such as start or reboot."""

    handle: str
    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Answer = Observation | HomeostatError
"""Result of one item of a batch: the present state, or an error (Terminal, Transient, Uncertain, Rejected)."""


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A notice that a thing changed; carries no data, so losing it costs only time (invariant 1, CONTRIBUTING.md)."""

    kind: str
    handle: str


class Cloud(Protocol):
    """One cloud as one project sees it.

    Attributes:
        name: Name of the cloud.
        kinds: Kinds of things that it has.
        listing_lag_s: Seconds after a create in which `observe` and `find` may still say ABSENT; 0 for a consistent
            cloud.
    """

    name: str
    kinds: frozenset[str]
    listing_lag_s: float

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        """Return the present state of things, one observation for each handle, in order.

        Raises:
            Transient: The cloud does not answer.
        """

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        """Return the things that carry these tokens (ABSENT where there is none), in order.

        Raises:
            Transient: The cloud does not answer.
        """

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Return the ids of the things with these names or ids, in order; None where there is no such thing.

        Where a cloud accepts any name, the name is the id.

        Args:
            kind: A kind of the table, or one that is named but never created here: `image`, `flavor`,
                `availability_zone`, ….
            names: Names or ids.

        Raises:
            Transient: The cloud does not answer.
            Rejected: PhysicalResourceNameAmbiguity: several things have the name.
        """

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create things; each carries its token from the first moment on."""

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        """Change existing things in place."""

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        """Delete things."""

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        """Carry out operations."""

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield changes as they happen, until `stop()` is true.

        Any change may be missed. A cloud without notices ends at once.
        """

    def close(self) -> None:
        """Close connections and threads; created things remain."""


Clouds = Callable[[str], Cloud]
"""Project -> the cloud as that project sees it."""
