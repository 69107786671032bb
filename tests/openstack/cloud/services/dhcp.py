"""Neutron's agent for DHCP, and the server that it talks to. Networks get its ports, but no guest gets an address."""

from pathlib import Path

from tests.openstack.cloud.files import Sections
from tests.openstack.cloud.services.service import Service

REPORT_S = 3
DOWN_S = 12
"""Neutron takes an agent for dead that has not reported for so long."""
ANSWER_S = 5
"""How long the agent waits for an answer: it starts together with the server, and asks once more."""


class Dhcp(Service):
    name = "dhcp"

    @property
    def requirements(self) -> Path | None:
        """None: it came with Neutron."""
        return None

    def configuration(self) -> Sections:
        found = self.shared.sections("dhcp")
        found["DEFAULT"] |= {
            "interface_driver": "null",
            "dhcp_driver": "minios.dhcp.MiniDhcpDriver",
            "rpc_response_timeout": ANSWER_S,
        }
        helper = " ".join((self.site.program("privsep-helper"), *self.file_arguments))
        return found | {"AGENT": {"report_interval": REPORT_S}, "privsep": {"helper_command": helper}}

    def commands(self) -> dict[str, list[str]]:
        server = str(self.site.run("etc", "neutron", "neutron.conf"))
        return {
            "neutron-rpc-server": [self.site.program("neutron-rpc-server"), "--config-file", server],
            "neutron-dhcp-agent": [self.site.program("neutron-dhcp-agent"), *self.file_arguments],
        }
