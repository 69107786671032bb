"""OpenStack: servers, networks, volumes, load balancers and more of a cloud that runs already.

`collection` says what the things of a kind have in common, `tokens` where their token travels, `answers` what the
services' answers mean, `service` sends requests; the other modules are named after the services.
"""

from homeostat.clouds.openstack.clouds import OpenStack
from homeostat.clouds.openstack.config import OpenStackConfig

__all__ = ["OpenStack", "OpenStackConfig"]
