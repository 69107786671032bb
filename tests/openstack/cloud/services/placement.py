"""Placement."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Placement(Service):
    name = "placement"
    apis = {"placement": "placement.wsgi.api"}
    databases = ("placement",)
    endpoints = {"placement": Endpoint("placement", "placement")}
    optional = False

    def configuration(self) -> Sections:
        found = self.shared.sections("placement")
        found["placement_database"] = found.pop("database")
        return found

    def prepare(self) -> None:
        self.manage("placement-manage", *self.file_arguments, "db", "sync")
