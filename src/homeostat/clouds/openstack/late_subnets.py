"""Ports created before their network had a subnet: such a port has no address, and Nova refuses it for a server.

No dependency in a template orders a port in one nested stack after the subnet in another. So the refusal of a server is
transient while the network was created by this service and is young, and the port then gets its address, like any later
port.
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
"""Age up to which a network without subnets may still get one."""


def error_of(error: HomeostatError, network: Service, now: Callable[[], float] = time.time) -> HomeostatError:
    """Return the error to report for a refused server: transient if a port of it has no address yet.

    Raises:
        HomeostatError: Networking does not answer, or cannot give the port an address.
    """
    named = NO_ADDRESS.search(str(error)) if isinstance(error, Terminal) else None
    if named is None:
        return error
    port: Wire = network.get(f"/ports/{named[1]}")["port"]
    of: Wire = network.get(f"/networks/{port['network_id']}")["network"]
    # Ports and networks of users are left as they are: a port without address may be intended.
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
    """Give a port an address of each IP version, as Networking does for a new port."""
    firsts: dict[int, str] = {}
    for subnet_id in subnets:
        subnet = network.get(f"/subnets/{subnet_id}")["subnet"]
        firsts.setdefault(subnet["ip_version"], subnet_id)
    body = {"port": {"fixed_ips": [{"subnet_id": firsts[version]} for version in sorted(firsts)]}}
    LOG.info("port %s was made before its network had a subnet, and gets an address", port["id"])
    network.request("PUT", f"/ports/{port['id']}", body, of=port["id"])


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
