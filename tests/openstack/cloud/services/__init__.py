"""The services, one module each: those of every cloud, and those that are there when asked for."""

from tests.openstack.cloud.services.aodh import Aodh
from tests.openstack.cloud.services.barbican import Barbican
from tests.openstack.cloud.services.blazar import Blazar
from tests.openstack.cloud.services.cinder import Cinder
from tests.openstack.cloud.services.designate import Designate
from tests.openstack.cloud.services.dhcp import Dhcp
from tests.openstack.cloud.services.glance import Glance
from tests.openstack.cloud.services.gnocchi import Gnocchi
from tests.openstack.cloud.services.ironic import Ironic
from tests.openstack.cloud.services.keystone import Keystone
from tests.openstack.cloud.services.manila import Manila
from tests.openstack.cloud.services.mistral import Mistral
from tests.openstack.cloud.services.neutron import Neutron
from tests.openstack.cloud.services.neutron_plugins import PLUGINS
from tests.openstack.cloud.services.nova import Nova
from tests.openstack.cloud.services.octavia import Octavia
from tests.openstack.cloud.services.placement import Placement
from tests.openstack.cloud.services.service import Service
from tests.openstack.cloud.services.swift import Swift
from tests.openstack.cloud.services.zaqar import Zaqar
from tests.openstack.cloud.site import Site

BASE: tuple[type[Service], ...] = (Keystone, Placement, Nova, Glance, Neutron, Cinder)
_OPTIONAL: tuple[type[Service], ...] = (
    *(Octavia, Barbican, Swift, Designate, Mistral, Zaqar, Aodh, Manila, Gnocchi, Ironic, Blazar, Dhcp),
    *PLUGINS,
)
OPTIONAL: dict[str, type[Service]] = {each.name: each for each in _OPTIONAL}


def services_of(site: Site) -> list[Service]:
    """Those of a cloud, in the order in which they are started."""
    chosen = [kind for name, kind in OPTIONAL.items() if name in site.settings.services]
    return [kind(site) for kind in (*BASE, *chosen)]
