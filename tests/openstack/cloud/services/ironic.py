"""Ironic: machines of its own fake hardware."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Ironic(Service):
    name = "ironic"
    apis = {"ironic-api": "ironic.wsgi"}
    databases = ("ironic",)
    endpoints = {"baremetal": Endpoint("ironic-api", "ironic")}

    def configuration(self) -> Sections:
        interfaces = {
            **dict.fromkeys(("boot", "deploy", "inspect", "management", "power"), "fake"),
            **{each: f"no-{each}" for each in ("bios", "console", "firmware", "raid", "rescue", "vendor")},
            "network": "noop",
            "storage": "noop",
        }
        found = self.shared.sections("ironic")
        found["DEFAULT"] |= {
            "auth_strategy": "keystone",
            "enabled_hardware_types": "fake-hardware",
            **{f"enabled_{name}_interfaces": kind for name, kind in interfaces.items()},
            **{f"default_{name}_interface": kind for name, kind in interfaces.items()},
        }
        return found | {
            "conductor": {"heartbeat_interval": 5},
            "service_catalog": self.shared.account("ironic"),
            "dhcp": {"dhcp_provider": "none"},
        }

    def prepare(self) -> None:
        self.manage("ironic-dbsync", *self.file_arguments, "create_schema")

    def api_arguments(self) -> list[str]:
        return self.file_arguments

    def commands(self) -> dict[str, list[str]]:
        return {"ironic-conductor": [self.site.program("ironic-conductor"), *self.file_arguments]}
