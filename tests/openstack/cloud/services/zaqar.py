"""Zaqar: queues, kept by a Redis of its own."""

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service

TRUSTEE = ("auth_type", "auth_url", "username", "password", "user_domain_id")


class Zaqar(Service):
    name = "zaqar"
    apis = {"zaqar-api": "zaqar.transport.wsgi.app"}
    databases = ("zaqar",)
    endpoints = {"messaging": Endpoint("zaqar-api", "zaqar")}
    programs = {"redis-server": "redis-server"}
    first = ("redis",)

    def configuration(self) -> Sections:
        found = self.shared.sections("zaqar")
        login = found["keystone_authtoken"]
        found["DEFAULT"] |= {"unreliable": True, "pooling": False, "auth_strategy": "keystone"}
        return found | {
            "drivers": {"transport": "wsgi", "message_store": "redis", "management_store": "sqlalchemy"},
            "drivers:message_store:redis": {"uri": f"redis://127.0.0.1:{self.site.port('redis')}"},
            "drivers:management_store:sqlalchemy": {"uri": self.shared.database("zaqar")["connection"]},
            "storage": {"message_pipeline": "zaqar.notification.notifier"},
            "signed_url": {"secret_key": "minios"},
            # By a trust from its user, a subscription may call what asks for a token. A trust needs no project.
            "trustee": {name: login[name] for name in TRUSTEE},
        }

    def prepare(self) -> None:
        self.manage("zaqar-sql-db-manage", *self.file_arguments, "upgrade", "head")

    def commands(self) -> dict[str, list[str]]:
        port = str(self.site.port("redis"))
        return {
            "redis": [
                *("redis-server", "--bind", "127.0.0.1", "--port", port),
                *("--save", "", "--dir", str(self.state())),
            ]
        }
