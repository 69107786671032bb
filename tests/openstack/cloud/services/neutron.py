"""Neutron: every port is bound at once (`inside/minios/ml2.py`). It has no agents, besides that of `dhcp.py`."""

from tests.openstack.cloud.files import Sections, write_ini
from tests.openstack.cloud.services.dhcp import DOWN_S, Dhcp
from tests.openstack.cloud.services.neutron_plugins import PLUGINS, NeutronPlugin
from tests.openstack.cloud.services.service import Endpoint, Service

SERVICE_PLUGINS = ("router", "qos", "trunk", "port_forwarding", "segments", "metering")

UNLIMITED = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")


class Neutron(Service):
    name = "neutron"
    apis = {"neutron-api": "neutron.wsgi.api"}
    databases = ("neutron",)
    endpoints = {"network": Endpoint("neutron-api", "neutron")}
    plugins = {"neutron.ml2.mechanism_drivers": "minios.ml2:MiniMechanismDriver"}
    optional = False

    def configuration(self) -> Sections:
        found, plugins = self.shared.sections("neutron"), self._plugins()
        found["DEFAULT"] |= {
            "core_plugin": "ml2",
            "service_plugins": ",".join(
                (*SERVICE_PLUGINS, *(name for each in plugins for name in each.service_plugins))
            ),
            "dns_domain": "mini.test.",
            "auth_strategy": "keystone",
            "dhcp_agent_notification": Dhcp.name in self.site.settings.services,
            "agent_down_time": DOWN_S,
            "notify_nova_on_port_status_changes": False,
            "notify_nova_on_port_data_changes": True,
            "api_paste_config": self.packaged("neutron", "api-paste.ini"),
        }
        for each in plugins:
            found |= each.sections
        providers = [each.provider for each in plugins if each.provider]
        if providers:
            # The option may be there several times.
            found["service_providers"] = {"service_provider": "\nservice_provider = ".join(providers)}
        return found | {
            "oslo_messaging_notifications": self.shared.notifications,
            "nova": self.shared.account("nova"),
            "ml2": {
                "type_drivers": "flat,vlan,vxlan",
                "tenant_network_types": "vxlan",
                "mechanism_drivers": "minios",
                "extension_drivers": "port_security,qos,uplink_status_propagation,dns_domain_ports",
            },
            "ml2_type_vxlan": {"vni_ranges": "1:100000"},
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_vlan": {"network_vlan_ranges": "physnet1:1:4000"},
            "quotas": {f"quota_{kind}": -1 for kind in UNLIMITED},
        }

    def _plugins(self) -> list[type[NeutronPlugin]]:
        return [each for each in PLUGINS if each.name in self.site.settings.services]

    def write_files(self) -> None:
        write_ini(self.file.parent / "plugins" / "ml2" / "ml2_conf.ini", {})

    def prepare(self) -> None:
        self.manage("neutron-db-manage", *self.file_arguments, "upgrade", "heads")
