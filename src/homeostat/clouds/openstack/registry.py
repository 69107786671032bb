"""The kinds of things that the service offers on an OpenStack."""

from collections.abc import Mapping

from homeostat.clouds.openstack import network
from homeostat.clouds.openstack.collection import Collection

COLLECTIONS: tuple[type[Collection], ...] = (network.Networks, network.Subnets, network.Ports)
VERSIONS: Mapping[str, tuple[str, str]] = {"compute": ("2.53", "2.96"), "block-storage": ("3.50", "3.71")}
"""Service -> the lowest and the highest microversion that this adapter was tried with."""
