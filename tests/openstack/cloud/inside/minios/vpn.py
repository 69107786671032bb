"""VPNaaS's own driver, with the answers of an agent, of which there is none: what is on is ACTIVE, the rest DOWN."""

from typing import Any

from neutron_lib import constants, context
from neutron_vpnaas.services.vpn.service_drivers import ipsec

Thing = dict[str, Any]


class MiniVpnDriver(ipsec.IPsecVPNDriver):  # type: ignore[misc]
    def create_ipsec_site_connection(self, context: context.Context, connection: Thing) -> None:
        super().create_ipsec_site_connection(context, connection)
        self._answer(context, connection)

    def update_ipsec_site_connection(self, context: context.Context, old: Thing, connection: Thing) -> None:
        super().update_ipsec_site_connection(context, old, connection)
        self._answer(context, connection)

    def _answer(self, context: context.Context, connection: Thing) -> None:
        of_connection = {"status": _status(connection), "updated_pending_status": True}
        service = self.service_plugin.get_vpnservice(context, connection["vpnservice_id"])
        of_service = {"id": service["id"], "status": _status(service), "updated_pending_status": True}
        found = [{**of_service, "ipsec_site_connections": {connection["id"]: of_connection}}]
        self.service_plugin.update_status_by_agent(context, found)


def _status(thing: Thing) -> str:
    return str(constants.ACTIVE if thing["admin_state_up"] else constants.DOWN)
