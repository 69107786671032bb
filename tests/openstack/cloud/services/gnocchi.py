"""Gnocchi: metrics for Aodh's alarms. Nothing measures; tests push."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Gnocchi(Service):
    name = "gnocchi"
    apis = {"gnocchi-api": "gnocchi.rest.wsgi"}
    databases = ("gnocchi",)
    endpoints = {"metric": Endpoint("gnocchi-api", "gnocchi")}

    def configuration(self) -> Sections:
        files: dict[str, object] = {"driver": "file", "file_basepath": self.state()}
        coordination = f"file://{self.state('coordination')}"
        return {
            "DEFAULT": {"parallel_operations": 1, "coordination_url": coordination},
            "indexer": {"url": self.shared.database("gnocchi")["connection"]},
            "storage": dict(files),
            "incoming": dict(files),
            "api": {"auth_mode": "keystone"},
            "metricd": {"workers": 1, "metric_processing_delay": 1},
            "keystone_authtoken": self.shared.sections("gnocchi")["keystone_authtoken"],
        }

    def before_start(self) -> None:
        # Its files are not among the databases that are kept.
        upgraded = self.state("upgraded")
        if not upgraded.exists():
            self.manage("gnocchi-upgrade", *self.file_arguments)
            upgraded.touch()

    def api_arguments(self) -> list[str]:
        return self.file_arguments

    def commands(self) -> dict[str, list[str]]:
        return {"gnocchi-metricd": [self.site.program("gnocchi-metricd"), *self.file_arguments]}
