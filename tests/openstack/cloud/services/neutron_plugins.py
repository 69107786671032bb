"""Plug-ins of Neutron: they run in its server, with tables in its database, and have no file of their own."""

from typing import ClassVar

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Service

PROGRAM = "neutron-db-manage"


class NeutronPlugin(Service):
    """One of them. service_plugins — by which Neutron loads it; provider — type of service and driver, if any;
    sections — of Neutron's file; distribution — that has its tables."""

    service_plugins: ClassVar[tuple[str, ...]]
    provider: ClassVar[str] = ""
    sections: ClassVar[Sections] = {}
    distribution: ClassVar[str]

    def configuration(self) -> Sections:
        return {}

    def prepare(self) -> None:
        file = str(self.site.run("etc", "neutron", "neutron.conf"))
        words = ("--config-file", file, "--subproject", self.distribution, "upgrade", "head")
        self.manage(PROGRAM, *words)


class Vpnaas(NeutronPlugin):
    name = "vpnaas"
    service_plugins = ("vpnaas",)
    provider = "VPN:minios:minios.vpn.MiniVpnDriver:default"
    distribution = "neutron-vpnaas"


class Sfc(NeutronPlugin):
    name = "sfc"
    service_plugins = ("flow_classifier", "sfc")
    sections = {"sfc": {"drivers": "dummy"}, "flowclassifier": {"drivers": "dummy"}}
    distribution = "networking-sfc"


class Taas(NeutronPlugin):
    name = "taas"
    service_plugins = ("taas",)
    provider = "TAAS:minios:minios.taas.MiniTaasDriver:default"
    distribution = "tap-as-a-service"


PLUGINS: tuple[type[NeutronPlugin], ...] = (Vpnaas, Sfc, Taas)
