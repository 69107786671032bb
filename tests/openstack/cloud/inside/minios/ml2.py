"""ML2 mechanism driver that binds every port, on any segment and host, with drivers for trunks and QoS.

A port is ACTIVE at once, unless it waits for the agent of its network, where there is one.
"""

from neutron.db import provisioning_blocks
from neutron.services.qos.drivers.openvswitch.driver import SUPPORTED_RULES
from neutron.services.trunk.drivers import base as trunk
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import resources
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base as qos
from neutron_lib.services.trunk.constants import SEGMENTATION_TYPE_VLAN

INTERFACES = [portbindings.VIF_TYPE_OVS, portbindings.VIF_TYPE_UNBOUND]


class MiniTrunkDriver(trunk.DriverBase):  # type: ignore[misc]
    is_loaded = True


class MiniMechanismDriver(api.MechanismDriver):  # type: ignore[misc]
    def initialize(self) -> None:
        # Each registers itself when its plugin has started, as long as it is held.
        self._trunks = MiniTrunkDriver("minios", INTERFACES, [SEGMENTATION_TYPE_VLAN], can_trunk_bound_port=True)
        self._qos = qos.DriverBase("minios", INTERFACES, [portbindings.VNIC_NORMAL], SUPPORTED_RULES)

    @property
    def connectivity(self) -> str:
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: api.PortContext) -> None:
        segment = context.segments_to_bind[0]
        details = {portbindings.CAP_PORT_FILTER: True}
        waits = provisioning_blocks.is_object_blocked(context._plugin_context, context.current["id"], resources.PORT)
        status = constants.PORT_STATUS_DOWN if waits else constants.PORT_STATUS_ACTIVE
        context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, details, status=status)
