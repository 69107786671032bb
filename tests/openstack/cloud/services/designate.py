"""Designate: DNS zones, whose name servers exist in the worker's imagination only (`inside/minios/designate.py`)."""

import shutil

from tests.openstack.cloud import mariadb
from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service

POOL = "794ccc2cd75144feb57f8894c9f5c842"
"""Designate's default one."""
POLLING = {"poll_delay": 0, "poll_retry_interval": 1, "poll_max_retries": 3, "poll_timeout": 1}
"""How name servers are asked. Retries times both other times: for so long a lost update stays `PENDING`."""


class Designate(Service):
    name = "designate"
    apis = {"designate-api": "designate.wsgi.api"}
    databases = ("designate",)
    endpoints = {"dns": Endpoint("designate-api", "designate")}

    def configuration(self) -> Sections:
        found = self.shared.sections("designate")
        found["DEFAULT"] |= {
            "graceful_shutdown_timeout": 5,
            "quota_zones": 100000,
            "quota_zone_recordsets": 100000,
            "quota_zone_records": 100000,
            "quota_recordset_records": 1000,
        }
        return found | {
            "storage:sqlalchemy": found.pop("database"),
            "service:api": {
                "auth_strategy": "keystone",
                "api_base_uri": self.site.url("designate-api"),
                "enable_host_header": True,
                "enable_api_v2": True,
            },
            "service:central": {"workers": 1},
            "service:producer": {"workers": 1},
            "service:worker": {"workers": 1, **POLLING},
            "producer_task:increment_serial": {"interval": 1},
            # Designate loses an update now and then, until this repairs it.
            "producer_task:worker_periodic_recovery": {"interval": 5},
        }

    def write_files(self) -> None:
        shutil.copy(self.packaged("designate", "api-paste.ini"), self.file.parent)

    def prepare(self) -> None:
        self.manage("designate-manage", *self.file_arguments, "database", "sync")
        new = "REPLACE(UUID(), '-', '')"
        mariadb.run_sql(
            self.site,
            "USE designate",
            f"INSERT INTO pool_targets (id, version, pool_id, type) VALUES ({new}, 1, '{POOL}', 'fake')",
            "INSERT INTO pool_nameservers (id, version, pool_id, host, port) "
            f"VALUES ({new}, 1, '{POOL}', '192.0.2.53', 53)",
            "INSERT INTO pool_ns_records (id, version, pool_id, priority, hostname) "
            f"VALUES ({new}, 1, '{POOL}', 1, 'ns1.example.org.')",
        )

    def commands(self) -> dict[str, list[str]]:
        own = {"designate-worker": [self.site.program("python"), "-m", "minios.designate", *self.file_arguments]}
        names = ("designate-central", "designate-producer")
        return own | {name: [self.site.program(name), *self.file_arguments] for name in names}
