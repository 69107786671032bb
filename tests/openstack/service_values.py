"""Values that templates set on what further services have; see `normal_values`."""

from collections.abc import Mapping

from tests.openstack.alarm_values import ALARMING
from tests.openstack.network_service_values import SERVICE_CHAINS, TAPS, VIRTUAL_PRIVATE_NETWORKS
from tests.openstack.normal_values import NAMES, OFF, TEXTS, Values

LIMITED = ("healthmonitor", "listener", "loadbalancer", "pool", "member")
LOAD_BALANCING: Mapping[str, Values] = {
    "OS::Octavia::LoadBalancer": Values(
        {"vip_subnet": "$subnet"},
        {
            "name": NAMES,
            "description": TEXTS,
            "admin_state_up": OFF,
            "vip_subnet": ["$subnet_name"],
            "vip_address": ["10.30.0.90"],
            "provider": ["amphora", "octavia"],
            "flavor": ["$lb_flavor", "$lb_flavor_name"],
            "availability_zone": ["$lb_zone"],
        },
    ),
    "OS::Octavia::Listener": Values(
        {"loadbalancer": "$balancer", "protocol": "HTTP", "protocol_port": 8001},
        {
            "name": NAMES,
            "description": TEXTS,
            "admin_state_up": OFF,
            "loadbalancer": ["$balancer_name"],
            "protocol": ["TCP", "UDP"],
            "protocol_port": ["8002"],
            "default_pool": ["$free_pool", "$free_pool_name"],
            "connection_limit": [-1, 100, "200"],
            "allowed_cidrs": [["10.0.0.0/8", "192.168.0.0/16"], ["10.0.0.7/8"], []],
        },
    ),
    "OS::Octavia::Pool": Values(
        {"loadbalancer": "$balancer", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"},
        {
            "name": NAMES,
            "description": TEXTS,
            "admin_state_up": OFF,
            "lb_algorithm": ["LEAST_CONNECTIONS", "SOURCE_IP"],
            "loadbalancer": ["$balancer_name"],
            "protocol": ["TCP"],
            "listener": ["$listener", "$listener_name"],
            "session_persistence": [
                {"type": "SOURCE_IP"},
                {"type": "HTTP_COOKIE"},
                {"type": "APP_COOKIE", "cookie_name": "C"},
            ],
            "tls_enabled": [True, "false"],
        },
        together={"listener": {"loadbalancer": None}},
    ),
    "OS::Octavia::PoolMember": Values(
        {"pool": "$free_pool", "address": "10.30.0.91", "protocol_port": 80},
        {
            "pool": ["$free_pool_name"],
            "address": ["10.30.0.92", "FD00:0:0::7"],
            "protocol_port": ["8080"],
            "monitor_address": ["10.30.0.93", "FD00:0:0::8"],
            "monitor_port": ["81"],
            "weight": [0, "7"],
            "admin_state_up": OFF,
            "subnet": ["$subnet", "$subnet_name"],
            "tags": [["b", "a", "A"], ["a b"]],
        },
    ),
    "OS::Octavia::HealthMonitor": Values(
        {"pool": "$free_pool", "type": "HTTP", "delay": 5, "timeout": 4, "max_retries": 3},
        {
            "pool": ["$free_pool_name"],
            "type": ["TCP", "PING"],
            "delay": ["6"],
            "timeout": ["3"],
            "max_retries": ["5"],
            "url_path": ["/Health?a=b", "/"],
            "http_method": ["HEAD"],
            "expected_codes": ["200-204", "200,202", "200, 202"],
            "admin_state_up": OFF,
        },
    ),
    "OS::Octavia::L7Policy": Values(
        {"listener": "$listener", "action": "REJECT"},
        {
            "name": NAMES,
            "action": ["REDIRECT_TO_URL"],
            "description": TEXTS,
            "admin_state_up": OFF,
            "listener": ["$listener_name"],
            "position": [1, "1", 7],
            "redirect_pool": ["$free_pool", "$free_pool_name"],
            "redirect_url": ["HTTP://A.Example/Path"],
        },
        together={
            "action": {"redirect_url": "http://a.example/"},
            "redirect_pool": {"action": "REDIRECT_TO_POOL"},
            "redirect_url": {"action": "REDIRECT_TO_URL"},
        },
    ),
    "OS::Octavia::L7Rule": Values(
        {"l7policy": "$policy", "type": "PATH", "compare_type": "STARTS_WITH", "value": "/x"},
        {
            "l7policy": ["$policy_name"],
            "type": ["HOST_NAME"],
            "compare_type": ["ENDS_WITH", "REGEX"],
            "value": ["/Some/Path"],
            "invert": [True, "false"],
            "admin_state_up": OFF,
            "key": ["X-Key", "x-key"],
        },
        together={"key": {"type": "HEADER", "compare_type": "EQUAL_TO"}},
    ),
    "OS::Octavia::Quota": Values(
        {"project": "$own_project"},
        {"project": ["$own_project"], **{name: [7, "-1"] for name in LIMITED}},
        by_admin=True,
        together={name: {"member" if name == "pool" else "pool": 5} for name in (*LIMITED, "project")},
    ),
    "OS::Octavia::FlavorProfile": Values(
        {"name": "$unique", "flavor_data": '{"loadbalancer_topology": "SINGLE"}', "provider_name": "amphora"},
        {
            "name": ["Mixed Case"],
            "flavor_data": ['{"loadbalancer_topology":    "ACTIVE_STANDBY"}'],
            "provider_name": ["octavia"],
        },
        by_admin=True,
    ),
    "OS::Octavia::Flavor": Values(
        {"name": "$unique", "flavor_profile": "$lb_flavor_profile"},
        {
            "name": ["Mixed Case"],
            "description": TEXTS,
            "enabled": OFF,
            "flavor_profile": ["$lb_flavor_profile_name"],
        },
        by_admin=True,
    ),
    "OS::Octavia::AvailabilityZoneProfile": Values(
        {"name": "$unique", "availability_zone_data": '{"compute_zone": "nova"}', "provider_name": "amphora"},
        {
            "name": ["Mixed Case"],
            "availability_zone_data": ['{"compute_zone":   "nova"}'],
            "provider_name": ["octavia"],
        },
        by_admin=True,
    ),
    "OS::Octavia::AvailabilityZone": Values(
        {"name": "$unique", "availability_zone_profile": "$lb_zone_profile"},
        {
            "name": ["$unique_mixed"],
            "description": TEXTS,
            "enabled": OFF,
            "availability_zone_profile": ["$lb_zone_profile_name"],
        },
        by_admin=True,
    ),
}
BINARY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
UNTIL = ["2090-01-01T00:00:00", "2090-01-01T01:00:00+01:00"]
CERTIFIED = {"certificate_ref": "$secret"}
KEY_MANAGER: Mapping[str, Values] = {
    "OS::Barbican::Secret": Values(
        {"payload": "words"},
        {
            "name": NAMES,
            "payload": ["grüße", "  spaces  ", "two\nlines"],
            "payload_content_type": ["text/plain"],
            "payload_content_encoding": ["base64"],
            "secret_type": ["passphrase", "symmetric"],
            "bit_length": [256, "256"],
            "mode": ["CBC"],
            "algorithm": ["AES"],
            "expiration": UNTIL,
        },
        together={
            "payload_content_encoding": {"payload": BINARY, "payload_content_type": "application/octet-stream"},
        },
    ),
    "OS::Barbican::Order": Values(
        {"type": "key", "algorithm": "aes", "bit_length": 256},
        {
            "name": NAMES,
            "type": ["asymmetric"],
            "algorithm": ["AES"],
            "bit_length": ["128"],
            "mode": ["cbc"],
            "payload_content_type": ["application/octet-stream"],
            "expiration": UNTIL,
            "pass_phrase": ["words"],
        },
        together={
            "type": {"algorithm": "rsa", "bit_length": 2048},
            "pass_phrase": {"type": "asymmetric", "algorithm": "rsa", "bit_length": 2048},
        },
    ),
    "OS::Barbican::GenericContainer": Values(
        {},
        {
            "name": NAMES,
            "secrets": [
                [{"name": "b", "ref": "$secret"}, {"name": "A", "ref": "$other_secret"}],
                [{"name": "a", "ref": "$secret_name"}],
                [],
            ],
        },
    ),
    "OS::Barbican::CertificateContainer": Values(
        {},
        {
            "name": NAMES,
            "certificate_ref": ["$secret", "$secret_name"],
            "private_key_ref": ["$other_secret"],
            "private_key_passphrase_ref": ["$other_secret"],
            "intermediates_ref": ["$other_secret"],
        },
        together={
            "name": CERTIFIED,
            "private_key_ref": CERTIFIED,
            "private_key_passphrase_ref": {**CERTIFIED, "private_key_ref": "$third_secret"},
            "intermediates_ref": CERTIFIED,
        },
    ),
    "OS::Barbican::RSAContainer": Values(
        {},
        {
            "name": NAMES,
            "private_key_ref": ["$secret", "$secret_name"],
            "private_key_passphrase_ref": ["$third_secret"],
            "public_key_ref": ["$other_secret"],
        },
        together={
            name: {"private_key_ref": "$secret", "public_key_ref": "$other_secret"}
            for name in ("name", "private_key_ref", "private_key_passphrase_ref", "public_key_ref")
        },
    ),
}
DNS: Mapping[str, Values] = {
    "OS::Designate::Zone": Values(
        {"name": "$unique_zone", "email": "a@example.org"},
        {
            "name": ["$unique_upper_zone"],
            "email": ["A.B@Example.org"],
            "ttl": [600, "600"],
            "description": TEXTS,
            "type": ["PRIMARY"],
            "primaries": [["10.0.0.2", "10.0.0.1"], ["10.0.0.2:5354"], ["10.0.0.1", "10.0.0.1"], ["FD00:0:0::7"]],
            "masters": [["10.0.0.2", "10.0.0.1"]],
            "attributes": [{"Key": "Value"}, {"n": 1}],
        },
        together={
            "primaries": {"type": "SECONDARY", "email": None, "primaries": ["10.0.0.3"]},
            "masters": {"type": "SECONDARY", "email": None},
        },
    ),
    "OS::Designate::RecordSet": Values(
        {"zone": "$zone", "name": "$www", "type": "A", "records": ["10.0.0.1"]},
        {
            "zone": ["$zone_name"],
            "name": ["$upper_www", "$wild"],
            "type": ["AAAA", "TXT", "MX", "CNAME", "SRV"],
            "records": [["10.0.0.3", "10.0.0.2"], ["10.0.0.1", "10.0.0.1"]],
            "ttl": [600, "600"],
            "description": TEXTS,
        },
    ),
}
OBJECT_STORAGE: Mapping[str, Values] = {
    "OS::Swift::Container": Values(
        {},
        {
            "name": ["Mixed Case", "grüße"],
            "X-Container-Read": [".r:*", ".r:*,.rlistings", ".R:*, .RLISTINGS"],
            "X-Container-Write": ["*:*"],
            "X-Container-Meta": [{"web-index": "index.html", "web-error": "error.html"}, {"Key": "V"}, {"n": 1}],
            "X-Account-Meta": [{"Key": "V"}],
            "PurgeOnDelete": [True, "false"],
        },
    ),
}
SHARED_FILE_SYSTEMS: Mapping[str, Values] = {
    "OS::Manila::Share": Values(
        {"share_protocol": "NFS", "size": 1},
        {
            "name": NAMES,
            "description": TEXTS,
            "share_protocol": ["CIFS"],
            "size": ["2"],
            "metadata": [{"Key": "Value"}, {"n": 1, "b": True}],
            "share_type": ["default"],
            "is_public": [False],
            "snapshot": ["$share_snapshot"],
            "access_rules": [
                [{"access_to": "10.0.0.0/24", "access_type": "ip", "access_level": "ro"}],
                [{"access_to": "10.0.0.7/32", "access_type": "ip"}, {"access_to": "10.0.0.1", "access_type": "ip"}],
            ],
        },
    ),
    "OS::Manila::ShareNetwork": Values(
        {"neutron_network": "$network", "neutron_subnet": "$subnet"},
        {
            "name": NAMES,
            "description": TEXTS,
            "neutron_network": ["$network_name"],
            "neutron_subnet": ["$subnet_name"],
            "security_services": [["$security_service"], ["$security_service_name"]],
        },
    ),
    "OS::Manila::SecurityService": Values(
        {"type": "ldap"},
        {
            "name": NAMES,
            "description": TEXTS,
            "type": ["kerberos"],
            "dns_ip": ["10.0.0.2", "FD00:0:0::7"],
            "server": ["Ldap.Example.org"],
            "domain": ["Example.org"],
            "user": ["User"],
            "password": ["swordfish"],
        },
    ),
    "OS::Manila::ShareType": Values(
        {"name": "$unique", "driver_handles_share_servers": False},
        {
            "name": ["Mixed Case"],
            "driver_handles_share_servers": ["true"],
            "is_public": [False, "true"],
            "snapshot_support": OFF,
            "extra_specs": [{"Key": "Value"}, {"n": 1, "b": True}],
        },
        by_admin=True,
    ),
}
IMAGES: Mapping[str, Values] = {
    "OS::Glance::WebImage": Values(
        {"disk_format": "raw", "container_format": "bare", "location": "$url"},
        {
            "name": NAMES,
            "container_format": ["ovf"],
            "location": ["$url"],
            "id": ["$unique_id"],
            "disk_format": ["aki"],
            "min_disk": [1, "1"],
            "min_ram": [64, "64"],
            "protected": ["false"],
            "tags": [["b", "a"]],
            "architecture": ["x86_64", "X86_64"],
            "os_distro": ["Debian"],
            "os_version": ["12"],
            "kernel_id": ["$unique_id"],
            "ramdisk_id": ["$unique_id"],
            "extra_properties": [{"hw_disk_bus": "virtio"}, {"Key": "Value"}, {"n": 1, "b": True}],
            "visibility": ["private", "shared"],
            "active": OFF,
            "members": [["$other_project"]],
            "owner": ["$own_project"],
        },
        together={"members": {"visibility": "shared"}, "disk_format": {"container_format": "aki"}},
    ),
}
MESSAGING: Mapping[str, Values] = {
    "OS::Zaqar::Queue": Values(
        {},
        {
            "name": ["Mixed_Case", "two words"],
            "metadata": [
                {"Key": "Value"},
                {"n": 1, "b": True, "f": 1.5, "m": {"x": [1]}},
                {"_max_messages_post_size": 1000},
                {"_default_message_ttl": "600"},
            ],
        },
    ),
    "OS::Zaqar::Subscription": Values(
        {"queue_name": "$queue", "subscriber": "$unique_url"},
        {
            "queue_name": ["$queue_name"],
            "subscriber": ["$unique_upper_url", "$unique_mail"],
            "ttl": [600, "600"],
            "options": [{"post_data": "x"}, {"from": "A@Example.org", "n": 1}],
        },
    ),
}
TASKS = [{"name": "hello", "action": "std.echo output='Good morning!'", "publish": {"result": "Bye"}}]
WORKFLOWS: Mapping[str, Values] = {
    "OS::Mistral::Workflow": Values(
        {"type": "direct", "tasks": [{"name": "rest", "action": "std.noop"}]},
        {
            "name": ["Mixed_Case"],
            "type": ["reverse"],
            "use_request_body_as_input": [True],
            "tags": [["b", "a"]],
            "description": TEXTS,
            "input": [{"stack_id": None, "n": 1, "b": True, "text": "Value"}],
            "output": [{"said": "<% $.said %>"}],
            "params": [{"env": {"a": 1}}],
            "task_defaults": [{"on_error": ["fail"], "timeout": 9}],
            "tasks": [TASKS],
        },
        together={"type": {"params": {"task_name": "rest"}}},
    ),
    "OS::Mistral::CronTrigger": Values(
        {"pattern": "0 4 * * *", "workflow": {"name": "$workflow"}},
        {
            "name": ["Mixed_Case"],
            "pattern": ["*/5 * * * *", "0 4 * * MON"],
            "workflow": [{"name": "$workflow", "input": {"word": "w"}}],
            "first_time": ["2090-01-01 04:00"],
            "count": [3, "3"],
        },
    ),
    "OS::Mistral::ExternalResource": Values(
        {"actions": {"CREATE": {"workflow": "$workflow"}, "DELETE": {"workflow": "$workflow"}}},
        {
            "actions": [{"CREATE": {"workflow": "$workflow", "params": {"env": {"a": 1}}}}],
            "input": [{"word": "w"}],
            "description": ["words"],
            "replace_on_change_inputs": [["word"]],
            "always_update": OFF,
        },
        together={"replace_on_change_inputs": {"input": {"word": "w"}}},
    ),
}
LINK = {"switch_id": "0A:1B:2C:3D:4E:5F", "port_id": "Ethernet3/1", "switch_info": "switch1"}
BARE_METAL: Mapping[str, Values] = {
    "OS::Ironic::Port": Values(
        {"node": "$machine", "address": "$unique_address"},
        {
            "node": ["$machine_name"],
            "address": ["$unique_upper_address"],
            "portgroup": ["$machine_group", "$machine_group_name"],
            "local_link_connection": [LINK],
            "pxe_enabled": OFF,
            "physical_network": ["physnet1"],
            "extra": [{"Key": "Value", "n": 1, "m": {"x": [1]}}],
            "is_smartnic": [False],
        },
        by_admin=True,
    ),
}
RESERVED = {"resource_type": "physical:host", "min": 1, "max": 1}
RESERVATIONS: Mapping[str, Values] = {
    "OS::Blazar::Host": Values(
        {"name": "$free_host"},
        {"name": ["$free_host"], "extra_capability": [{"Key": "Value"}, {"n": 1}]},
        by_admin=True,
    ),
    "OS::Blazar::Lease": Values(
        {
            "name": "$unique",
            "start_date": "2090-01-01 10:00",
            "end_date": "2090-01-10 10:00",
            "reservations": [RESERVED],
        },
        {
            "name": ["$unique_mixed"],
            "start_date": ["2090-01-02 10:00"],
            "end_date": ["2090-01-11 10:00"],
            "before_end_date": ["2090-01-09 10:00"],
            "reservations": [
                [{**RESERVED, "min": "1", "hypervisor_properties": '[">=", "$vcpus", "1"]', "resource_properties": ""}],
                [{"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 64, "disk_gb": 1}],
            ],
            "events": [[{"event_type": "before_end_lease", "time": "2090-01-08 10:00"}]],
        },
        by_admin=True,
    ),
}
OF_SERVICE: Mapping[tuple[str, ...], Mapping[str, Values]] = {
    ("octavia",): LOAD_BALANCING,
    ("barbican",): KEY_MANAGER,
    ("designate",): DNS,
    ("swift",): OBJECT_STORAGE,
    ("manila",): SHARED_FILE_SYSTEMS,
    (): IMAGES,
    ("aodh", "gnocchi"): ALARMING,
    ("zaqar",): MESSAGING,
    ("mistral",): WORKFLOWS,
    ("ironic",): BARE_METAL,
    ("blazar",): RESERVATIONS,
    ("vpnaas",): VIRTUAL_PRIVATE_NETWORKS,
    ("sfc",): SERVICE_CHAINS,
    ("taas",): TAPS,
}
"""Optional services that are needed -> types."""
SERVICES: Mapping[str, Values] = {name: values for table in OF_SERVICE.values() for name, values in table.items()}
SLOW = {"octavia", "designate", "manila", "aodh"}
"""Services whose things take seconds to be made."""
