"""Keystone, on Fernet tokens that live a day."""

import base64
import os

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import REGION, Service
from tests.openstack.cloud.site import PASSWORD


class Keystone(Service):
    name = "keystone"
    apis = {"keystone": "keystone.wsgi.api"}
    databases = ("keystone",)
    optional = False

    def configuration(self) -> Sections:
        tokens = {"key_repository": self.site.run("state", "fernet-keys")}
        return {
            "DEFAULT": {"debug": self.site.settings.debug},
            "database": self.shared.database("keystone"),
            "token": {"provider": "fernet", "expiration": 86400},
            "fernet_tokens": dict(tokens),
            "fernet_receipts": dict(tokens),
            "credential": {"key_repository": self.site.run("state", "credential-keys")},
            "cache": {"enabled": True, "backend": "oslo_cache.dict"},
            "identity": {"password_hash_rounds": 4},
            "oslo_messaging_notifications": {"driver": "noop"},
        }

    def write_keys(self) -> None:
        """New Fernet keys: 0 is the staged one, 1 the primary."""
        for kind in ("fernet", "credential"):
            directory = self.site.run("state", f"{kind}-keys")
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in "01":
                (directory / number).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))

    def prepare(self) -> None:
        url = self.site.url("keystone", "/v3")
        self.manage("keystone-manage", *self.file_arguments, "db_sync")
        self.manage(
            "keystone-manage",
            *self.file_arguments,
            "bootstrap",
            *("--bootstrap-password", PASSWORD),
            *("--bootstrap-public-url", url),
            *("--bootstrap-internal-url", url),
            *("--bootstrap-region-id", REGION),
        )
