"""Blazar: reservations of Nova's hosts and instances."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import REGION, Endpoint, Service
from tests.openstack.cloud.site import PASSWORD


class Blazar(Service):
    name = "blazar"
    apis = {"blazar-api": "blazar.wsgi.api"}
    databases = ("blazar",)
    endpoints = {"reservation": Endpoint("blazar-api", "blazar", "/v1")}

    def configuration(self) -> Sections:
        found = self.shared.sections("blazar")
        found["DEFAULT"] |= {
            "os_auth_protocol": "http",
            "os_auth_host": "127.0.0.1",
            "os_auth_port": self.site.port("keystone"),
            "os_auth_prefix": "",
            "os_admin_username": "blazar",
            "os_admin_password": PASSWORD,
            "os_admin_project_name": "service",
            "os_region_name": REGION,
            "identity_service": "identity",
        }
        return found | {
            "manager": {"plugins": "physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin"},
            "enforcement": {"enabled_filters": ""},
        }

    def prepare(self) -> None:
        self.manage("blazar-db-manage", *self.file_arguments, "upgrade", "head")

    def commands(self) -> dict[str, list[str]]:
        return {"blazar-manager": [self.site.program("blazar-manager"), *self.file_arguments]}
