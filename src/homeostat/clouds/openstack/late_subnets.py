"""Ports that were made before their network had a subnet: they have no address, and no server takes them.

A template does not say that a port in a nested stack needs the subnet of another one. So the refusal of a server is
waited for while the network is one of this service's and young, and the port then gets its address, as any made later.
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import InDescription
from homeostat.model.errors import HomeostatError, Terminal, Transient

LOG = logging.getLogger(__name__)
TOKEN = InDescription()
NO_ADDRESS = re.compile(r"Port (\S+) requires a FixedIP")
YOUNG_S = 600.0
"""Age up to which a network without subnets may be about to get one."""


def meant(error: HomeostatError, network: Service, now: Callable[[], float] = time.time) -> HomeostatError:
    """Return what the refusal of a server means: it is transient where a port has no address yet.

    Raises:
        HomeostatError: Networking does not answer, or does not give the port an address.
    """
    named = NO_ADDRESS.search(str(error)) if isinstance(error, Terminal) else None
    if named is None:
        return error
    port: Wire = network.get(f"/ports/{named[1]}")["port"]
    of: Wire = network.get(f"/networks/{port['network_id']}")["network"]
    # What users have made themselves, they have made as it shall be.
    if not (TOKEN.read(port) and TOKEN.read(of)):
        return error
    if port["fixed_ips"]:
        return Transient(f"port {named[1]} has just got an address")
    if of["subnets"]:
        _give(network, port, of["subnets"])
        return Transient(f"port {named[1]} gets an address on the network's first subnet")
    if now() - _seconds(of["created_at"]) < YOUNG_S:
        return Transient(f"port {named[1]} has no address: its network {of['id']} has no subnet yet")
    return error


def _give(network: Service, port: Wire, subnets: Sequence[str]) -> None:
    """Give a port an address of each version of IP, as Networking does for a new one."""
    firsts: dict[int, str] = {}
    for each in subnets:
        found = network.get(f"/subnets/{each}")["subnet"]
        firsts.setdefault(found["ip_version"], each)
    body = {"port": {"fixed_ips": [{"subnet_id": firsts[version]} for version in sorted(firsts)]}}
    LOG.info("port %s was made before its network had a subnet, and gets an address", port["id"])
    network.request("PUT", f"/ports/{port['id']}", body, of=port["id"])


def _seconds(text: str) -> float:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
