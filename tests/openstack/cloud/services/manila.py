"""Manila: shares on its own dummy driver, without that one's delays."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Manila(Service):
    name = "manila"
    apis = {"manila-api": "manila.wsgi.api"}
    databases = ("manila",)
    endpoints = {"shared-file-system": Endpoint("manila-api", "manila", "/v2")}

    def configuration(self) -> Sections:
        found = self.shared.sections("manila")
        found["DEFAULT"] |= {
            "enabled_share_backends": "mini",
            "enabled_share_protocols": "NFS,CIFS",
            "default_share_type": "default",
            "auth_strategy": "keystone",
            "api_paste_config": self.packaged("manila", "api-paste.ini"),
            "report_interval": 3,
            "service_down_time": 12,
            "graceful_shutdown_timeout": 5,
        }
        return found | {
            "mini": {
                "share_driver": "manila.tests.share.drivers.dummy.DummyDriver",
                "share_backend_name": "mini",
                "driver_handles_share_servers": False,
                "dummy_driver_default_driver_method_delay": 0,
                "dummy_driver_driver_methods_delays": "create_share:0",
            },
            "neutron": self.shared.account("neutron"),
            "nova": self.shared.account("nova"),
            "quota": dict.fromkeys(("shares", "gigabytes", "snapshots", "snapshot_gigabytes", "share_networks"), -1),
        }

    def prepare(self) -> None:
        self.manage("manila-manage", *self.file_arguments, "db", "sync")

    def api_arguments(self) -> list[str]:
        return self.file_arguments

    def commands(self) -> dict[str, list[str]]:
        names = ("manila-scheduler", "manila-share")
        return {name: [self.site.program(name), *self.file_arguments] for name in names}
