"""Octavia: the real API and worker, with amphorae that are only rows (`inside/minios/octavia.py`)."""

from pathlib import Path

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Endpoint, Service

UNLIMITED = ("load_balancer", "listener", "member", "pool", "health_monitor", "l7policy", "l7rule")


class Octavia(Service):
    name = "octavia"
    apis = {"octavia-api": "octavia.wsgi.api"}
    databases = ("octavia",)
    endpoints = {"load-balancer": Endpoint("octavia-api", "octavia")}
    roles = ("load-balancer_member",)
    plugins = {
        "octavia.amphora.drivers": "minios.octavia:MiniAmphoraDriver",
        "octavia.compute.drivers": "minios.octavia:MiniComputeDriver",
        "octavia.network.drivers": "minios.octavia:MiniNetworkDriver",
    }

    def configuration(self) -> Sections:
        certificate, key = self._authority()
        return self.shared.sections("octavia") | {
            "oslo_messaging_notifications": self.shared.notifications,
            "service_auth": self.shared.account("octavia"),
            "neutron": self.shared.account("octavia"),
            "api_settings": {
                "enabled_provider_drivers": "amphora: noop amphorae",
                "default_provider_driver": "amphora",
                "api_base_uri": self.site.url("octavia-api"),
            },
            "oslo_messaging": {"topic": "octavia_prov"},
            "controller_worker": {
                "workers": 1,
                "amp_active_wait_sec": 1,
                "client_ca": certificate,
                "amphora_driver": "minios",
                "network_driver": "minios",
                "compute_driver": "minios",
                "image_driver": "image_noop_driver",
                "volume_driver": "volume_noop_driver",
                "loadbalancer_topology": "SINGLE",
            },
            "networking": {"port_detach_timeout": 5},
            "certificates": {
                "ca_certificate": certificate,
                "ca_private_key": key,
                "endpoint_type": "publicURL",
            },
            "quotas": {f"default_{kind}_quota": -1 for kind in UNLIMITED},
        }

    def _authority(self) -> tuple[Path, Path]:
        """Certificate and key of the authority that signs for amphorae."""
        certificate, key = self.state("ca.crt"), self.state("ca.key")
        if not key.exists():
            self.state().mkdir(parents=True, exist_ok=True)
            self.site.call(
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=minios"),
                *("-keyout", str(key), "-out", str(certificate)),
            )
        return certificate, key

    def prepare(self) -> None:
        self.manage("octavia-db-manage", *self.file_arguments, "upgrade", "head")

    def api_arguments(self) -> list[str]:
        return self.file_arguments

    def commands(self) -> dict[str, list[str]]:
        return {"octavia-worker": [self.site.program("python"), "-m", "minios.octavia", *self.file_arguments]}
