"""Cinder, without storage (`inside/minios/volume.py`)."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Cinder(Service):
    name = "cinder"
    apis = {"cinder-api": "cinder.wsgi.api"}
    databases = ("cinder",)
    endpoints = {"block-storage": Endpoint("cinder-api", "cinder", "/v3")}
    optional = False

    def configuration(self) -> Sections:
        found = self.shared.sections("cinder")
        found["DEFAULT"] |= {
            "enabled_backends": "mini",
            "default_volume_type": "__DEFAULT__",
            "auth_strategy": "keystone",
            "glance_api_servers": self.site.url("glance-api"),
            "api_paste_config": self.packaged("cinder", "api-paste.ini"),
            "resource_query_filters_file": self.packaged("cinder", "resource_filters.json"),
            "quota_volumes": -1,
            "quota_snapshots": -1,
            "quota_gigabytes": -1,
            "graceful_shutdown_timeout": 5,
            "report_interval": 3,
            "service_down_time": 12,
        }
        if "barbican" in self.site.settings.services:
            # It keeps the keys of encrypted volumes there, as the user who makes one.
            found["key_manager"] = {"backend": "barbican"}
            found["barbican"] = {
                "auth_endpoint": self.site.url("keystone", "/v3"),
                "barbican_endpoint": self.site.url("barbican-api"),
            }
        return found | {
            "mini": {"volume_driver": "minios.volume.MiniVolumeDriver", "volume_backend_name": "mini"},
            "nova": self.shared.account("nova"),
            "oslo_messaging_notifications": self.shared.notifications,
        }

    def prepare(self) -> None:
        self.manage("cinder-manage", *self.file_arguments, "db", "sync")

    def api_arguments(self) -> list[str]:
        return self.file_arguments

    def commands(self) -> dict[str, list[str]]:
        names = ("cinder-scheduler", "cinder-volume")
        return {name: [self.site.program(name), *self.file_arguments] for name in names}
