"""Loopback addresses of subnets, and the choice of a free one. Pure.

An address of a subnet is mapped to the loopback address at the same offset: with cidr 10.1.0.0/24 and loopback block
127.40.8.0/24, the address 10.1.0.9 is reached as 127.40.8.9.
"""

import ipaddress
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from homeostat.model.errors import Terminal, Transient

LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
_WIDEST = 16
_FIRST, _LAST = 16, 240
"""First and last second byte of the loopback addresses used here: 127.0 is left to users and system services."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_network(cidr: str) -> Network:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise Terminal(f"cidr {cidr!r} is not a network: {error}") from error


def loopback_block(cidr: Network, taken: Sequence[ipaddress.IPv4Network], seed: str) -> ipaddress.IPv4Network:
    """Return the loopback block for a subnet: its cidr if this is a loopback network, else a free block of its size.

    Args:
        cidr: Network of the subnet.
        taken: Blocks in use.
        seed: Spreads the blocks of several clouds on one machine, so that they seldom collide.

    Raises:
        Terminal: The cidr overlaps another subnet.
        Transient: No block is free.
    """
    if isinstance(cidr, ipaddress.IPv4Network) and cidr.subnet_of(LOOPBACK):
        overlapping = [str(block) for block in taken if block.overlaps(cidr)]
        if overlapping:
            raise Terminal(f"cidr {cidr} overlaps the addresses {overlapping[0]} of another subnet of this cloud")
        return cidr
    host_bits = min(cidr.max_prefixlen - cidr.prefixlen, 32 - _WIDEST if cidr.version == 4 else 12)
    size = 1 << host_bits
    first, last = int(LOOPBACK[_FIRST << 16]), int(LOOPBACK[_LAST << 16])
    busy = sorted((int(block[0]), int(block[-1])) for block in taken)
    start = first + zlib.crc32(seed.encode()) % ((last - first) // size) * size
    free = _first_gap(busy, start, last, size) or _first_gap(busy, first, last, size)
    if free is None:
        raise Transient(f"no loopback block of {size} addresses is free: delete subnets that are no longer needed")
    return ipaddress.IPv4Network((free, 32 - host_bits))


def _first_gap(busy: Sequence[tuple[int, int]], start: int, end: int, size: int) -> int | None:
    """Return the lowest multiple of `size` in [start, end) that begins `size` numbers outside of all ranges.

    None if there is none. The ranges must be sorted.
    """
    at = start
    for low, high in busy:
        if at + size <= low:
            break
        if high >= at:
            at = (high // size + 1) * size
    return at if at + size <= end else None


def choose(subnet: Mapping[str, Any], taken: Collection[str], wanted: str | None) -> str:
    """Return a free loopback address of a subnet.

    Args:
        subnet: Spec and facts of the subnet's record.
        taken: Loopback addresses in use.
        wanted: Address as the user writes it, in the subnet or in its loopback block; None for any.

    Raises:
        Terminal: `wanted` is not in the subnet.
        Transient: `wanted` is in use, or no address is free.
    """
    block = ipaddress.IPv4Network(subnet["loopback_cidr"])
    if wanted:
        address = translate(subnet, wanted)
        if address in taken:
            raise Transient(f"address {wanted} ({address}) is in use")
        return address
    gateway = subnet.get("gateway_ip")
    reserved = {reached_as(subnet, gateway)} if gateway else set()
    for low, high in _pools(subnet, block):
        for number in range(low, high + 1):
            address = str(ipaddress.IPv4Address(number))
            if address not in taken and address not in reserved:
                return address
    raise Transient(f"all addresses of subnet {subnet['cidr']} are in use")


def _pools(subnet: Mapping[str, Any], block: ipaddress.IPv4Network) -> list[tuple[int, int]]:
    pools = subnet.get("allocation_pools")
    if not pools:
        first, last = int(block.network_address), int(block.broadcast_address)
        return [(first + 1, last - 1)] if block.prefixlen < 31 else [(first, last)]
    ends = [(translate(subnet, pool["start"]), translate(subnet, pool["end"])) for pool in pools]
    return [(int(ipaddress.IPv4Address(low)), int(ipaddress.IPv4Address(high))) for low, high in ends]


def default_pools(subnet: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the default allocation pools of a subnet: all addresses that can be reached, without the gateway's."""
    cidr = parse_network(subnet["cidr"])
    size = min(cidr.num_addresses, ipaddress.IPv4Network(subnet["loopback_cidr"]).num_addresses)
    first, last = (1, size - 2) if size > 2 else (0, size - 1)
    gateway = subnet.get("gateway_ip")
    at = int(ipaddress.ip_address(gateway)) - int(cidr.network_address) if gateway else -1
    ranges = [(first, min(at - 1, last)), (at + 1, last)] if first <= at <= last else [(first, last)]
    return [{"start": str(cidr[low]), "end": str(cidr[high])} for low, high in ranges if low <= high]


def reached_as(subnet: Mapping[str, Any], address: str) -> str | None:
    """Return the loopback address for `address`; None if it is not in this subnet."""
    try:
        return translate(subnet, address)
    except Terminal:
        return None


def translate(subnet: Mapping[str, Any], address: str) -> str:
    """Return the loopback address for `address`.

    Raises:
        Terminal: It is not an address of this subnet.
    """
    block = ipaddress.IPv4Network(subnet["loopback_cidr"])
    cidr = parse_network(subnet["cidr"])
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as error:
        raise Terminal(f"{address!r} is not an address") from error
    if parsed.version == 4 and parsed in block:
        return str(parsed)
    offset = int(parsed) - int(cidr.network_address)
    if parsed.version != cidr.version or parsed not in cidr or offset >= block.num_addresses:
        raise Terminal(f"address {address} is not within {cidr} (reached here as {block})")
    return str(block[offset])
