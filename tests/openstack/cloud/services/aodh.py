"""Aodh: alarms on events, on other alarms and on load balancers; with Gnocchi on metrics, too."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service


class Aodh(Service):
    name = "aodh"
    apis = {"aodh-api": "aodh.wsgi.api"}
    databases = ("aodh",)
    endpoints = {"alarming": Endpoint("aodh-api", "aodh")}

    def configuration(self) -> Sections:
        found = self.shared.sections("aodh")
        found["DEFAULT"] |= {"event_alarm_cache_ttl": 0, "member_creation_time": 0}
        return found | {
            "service_credentials": self.shared.account("aodh"),
            "evaluator": {"evaluation_interval": 5, "workers": 1},
            "notifier": {"workers": 1},
            "listener": {"workers": 1},
        }

    def prepare(self) -> None:
        self.manage("aodh-dbsync", *self.file_arguments)

    def commands(self) -> dict[str, list[str]]:
        names = ("aodh-evaluator", "aodh-notifier", "aodh-listener")
        return {name: [self.site.program(name), *self.file_arguments] for name in names}
