"""Mistral: workflows, whose actions the engine runs itself."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Mistral(Service):
    name = "mistral"
    apis = {"mistral-api": "mistral.wsgi"}
    databases = ("mistral",)
    endpoints = {"workflow": Endpoint("mistral-api", "mistral", "/v2")}

    def configuration(self) -> Sections:
        return self.shared.sections("mistral") | {
            "executor": {"type": "local"},
            "pecan": {"auth_enable": True},
            "api": {"api_workers": 1},
        }

    def prepare(self) -> None:
        self.manage("mistral-db-manage", *self.file_arguments, "upgrade", "head")
        self.manage("mistral-db-manage", *self.file_arguments, "populate")

    def commands(self) -> dict[str, list[str]]:
        engine = [self.site.program("mistral-server"), *self.file_arguments, "--server", "engine,periodic"]
        return {"mistral-engine": engine}
