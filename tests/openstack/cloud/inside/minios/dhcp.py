"""Driver of Neutron's agent for DHCP: each network gets its port, and no server that would answer guests."""

from typing import Any

from neutron.agent.linux import dhcp


class MiniDhcpDriver(dhcp.DhcpBase):  # type: ignore[misc]
    @classmethod
    def check_version(cls) -> None:
        """There is no program whose version could be wrong."""

    @classmethod
    def should_enable_metadata(cls, conf: Any, network: Any) -> bool:
        return False

    @property
    def active(self) -> bool:
        return True

    def enable(self) -> None:
        if any(subnet.enable_dhcp for subnet in self.network.subnets):
            self.device_manager.setup_dhcp_port(self.network, self.segment)

    def disable(self, retain_port: bool = False, block: bool = False, **_: Any) -> None:
        if not retain_port:
            manager = self.device_manager
            manager.plugin.release_dhcp_port(self.network.id, manager.get_device_id(self.network, self.segment))

    def reload_allocations(self) -> None:
        self.enable()

    def clean_devices(self) -> None:
        """There are none."""
