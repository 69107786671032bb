"""Swift: a proxy and one server of each kind, with one replica."""

import getpass

from tests.openstack.cloud.files import Sections, write_ini
from tests.openstack.cloud.services.service import Endpoint, Service

PIPELINE = (
    "catch_errors minios gatekeeper healthcheck listing_formats bulk tempurl formpost authtoken keystoneauth staticweb "
    "copy container_quotas account_quotas slo dlo versioned_writes symlink proxy-server"
)
SERVERS = ("account", "container", "object")


class Swift(Service):
    name = "swift"
    apis = {"swift-proxy": None}
    endpoints = {"object-store": Endpoint("swift-proxy", "swift", "/v1/AUTH_%(project_id)s")}

    def configuration(self) -> Sections:
        return {
            "swift-hash": {"swift_hash_path_suffix": "minios"},
            "storage-policy:0": {"name": "Policy-0", "default": "yes"},
        }

    def write_files(self) -> None:
        self.state("devices", "d1").mkdir(parents=True, exist_ok=True)
        for server in SERVERS:
            self._write_server(server)
        self._write_proxy()

    def _base(self, server: str) -> dict[str, object]:
        return {
            "bind_ip": "127.0.0.1",
            "bind_port": self.site.port(f"swift-{server}"),
            "swift_dir": self.file.parent,
            "workers": 0,
            "user": getpass.getuser(),
            "log_address": "/dev/null",
            "mount_check": "false",
            "fallocate_reserve": 0,
            "devices": self.state("devices"),
        }

    def _write_server(self, server: str) -> None:
        own = self.file.parent
        sections: Sections = {
            "DEFAULT": self._base(server),
            "pipeline:main": {"pipeline": f"{server}-server"},
            f"app:{server}-server": {"use": f"egg:swift#{server}"},
        }
        write_ini(own / f"{server}.conf", sections)
        if not (own / f"{server}.ring.gz").exists():
            device = f"r1z1-127.0.0.1:{self.site.port(f'swift-{server}')}/d1"
            for step in (("create", "4", "1", "0"), ("add", device, "1"), ("rebalance",)):
                self.manage("swift-ring-builder", str(own / f"{server}.builder"), *step)

    def _write_proxy(self) -> None:
        names = [name for name in PIPELINE.split() if name != "proxy-server"]
        filters: Sections = {f"filter:{name}": {"use": f"egg:swift#{name}"} for name in names}
        filters["filter:minios"] = {"paste.filter_factory": "minios.wsgi:filter_factory", "service": "swift-proxy"}
        filters["filter:authtoken"] = {
            "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
            "delay_auth_decision": "True",
            "cache": "none",
            "www_authenticate_uri": self.site.url("keystone", "/v3"),
            **self.shared.account("swift"),
        }
        filters["filter:keystoneauth"]["operator_roles"] = "admin, member"
        filters["filter:versioned_writes"]["allow_object_versioning"] = "true"
        sections: Sections = {
            "DEFAULT": self._base("proxy"),
            "pipeline:main": {"pipeline": PIPELINE},
            **filters,
            "app:proxy-server": {
                "use": "egg:swift#proxy",
                "account_autocreate": "true",
                "allow_account_management": "true",
            },
        }
        write_ini(self.file.parent / "proxy.conf", sections)

    def commands(self) -> dict[str, list[str]]:
        return {
            f"swift-{server}": [self.site.program(f"swift-{server}-server"), str(self.file.parent / f"{server}.conf")]
            for server in ("proxy", *SERVERS)
        }
