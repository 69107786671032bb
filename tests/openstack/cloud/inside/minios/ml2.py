"""ML2 mechanism driver that binds every port, on any segment and host, as ACTIVE."""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class MiniMechanismDriver(api.MechanismDriver):  # type: ignore[misc]
    def initialize(self) -> None:
        pass

    @property
    def connectivity(self) -> str:
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: api.PortContext) -> None:
        segment = context.segments_to_bind[0]
        details = {portbindings.CAP_PORT_FILTER: True}
        context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, details, status=constants.PORT_STATUS_ACTIVE)
