"""OpenStack: servers, networks, volumes, load balancers and more of an existing cloud.

`collection` is the base class of all kinds, `tokens` the places of creation tokens, `answers` the meaning of the
services' answers, `service` sends requests; the other modules are named after the services.
"""

from homeostat.clouds.openstack.clouds import OpenStack
from homeostat.clouds.openstack.config import OpenStackConfig

__all__ = ["OpenStack", "OpenStackConfig"]
