"""Barbican: secrets, containers and orders, which the API works off itself."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Barbican(Service):
    name = "barbican"
    apis = {"barbican-api": "minios.paste"}
    databases = ("barbican",)
    endpoints = {"key-manager": Endpoint("barbican-api", "barbican")}
    roles = ("creator",)

    def configuration(self) -> Sections:
        found = self.shared.sections("barbican")
        found["DEFAULT"] |= {"host_href": self.site.url("barbican-api"), "db_auto_create": False}
        del found["database"]["max_overflow"]
        found["simple_crypto_plugin"] = {"kek": "bWluaW9zbWluaW9zbWluaW9zbWluaW9zbWluaW9zMTI="}
        return found

    def prepare(self) -> None:
        self.manage("barbican-db-manage", "upgrade")

    def api_arguments(self) -> list[str]:
        return [str(self.packaged("barbican", "barbican-api-paste.ini")), "main"]
