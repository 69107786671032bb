"""Finds the user of the process at the other end of a local TCP connection, from the kernel (ADR 0041)."""

import logging
import os
import socket
import struct
from pathlib import Path

LOG = logging.getLogger(__name__)
_ESTABLISHED = 1
_SOCK_DIAG = 4
"""Netlink protocol for information about sockets (linux/netlink.h)."""
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ANY_COOKIE = 0xFFFF_FFFF
_ALL_STATES = 0xFFFF_FFFF
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
Ends = tuple[str, int, str, int]
"""Address and port of the other end, then of this end."""


def uid_of_peer(connection: socket.socket) -> int | None:
    """Return the user id of the process at the other end; None if unknown, for instance after the process exited.

    Only an established connection is trusted: once a process has closed its socket, the kernel reports root as owner.
    """
    try:
        (peer, peer_port), (own, own_port) = connection.getpeername()[:2], connection.getsockname()[:2]
        ends = peer, peer_port, own, own_port
        try:
            uid = _uid_by_netlink(connection.family, ends)
        except OSError:  # not permitted, no such kernel module, or the other end is closed
            uid = _read_from_table(connection.family, ends) if _is_whole(connection) else None
        # Checked afterwards: while this end is established, no other process can have taken the other end.
        whole = _is_whole(connection)
    except (OSError, ValueError, struct.error) as error:
        LOG.debug("it cannot be told who has connected: %s", error)
        return None
    return uid if whole else None


def _is_whole(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED


def _uid_by_netlink(family: int, ends: Ends) -> int | None:
    """Ask the kernel about one connection, at constant cost however many there are (linux/inet_diag.h).

    Returns:
        User id of the other end; None unless the kernel reports an established connection with an open socket.
    """
    peer, peer_port, own, own_port = ends
    sides = struct.pack(
        "!HH16s16s", peer_port, own_port, *(socket.inet_pton(family, address) for address in (peer, own))
    )
    named = sides + struct.pack("=III", 0, _ANY_COOKIE, _ANY_COOKIE)
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + named
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG) as netlink:
        netlink.settimeout(1.0)
        netlink.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body)
        answer = netlink.recv(4096)
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _SOCK_DIAG_BY_FAMILY:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        raise OSError(-code, os.strerror(-code))
    _, state, _, _ = struct.unpack_from("=BBBB", answer, _HEADER.size)
    uid, inode = struct.unpack_from("=II", answer, _HEADER.size + 4 + len(named) + 12)
    same = answer[_HEADER.size + 4 :].startswith(sides)
    return int(uid) if same and state == _ESTABLISHED and inode else None


def _read_from_table(family: int, ends: Ends) -> int | None:
    """Find the connection in the kernel's table of all connections, if netlink does not answer."""
    peer, peer_port, own, own_port = ends
    sides = [f"{_in_hex(family, peer)}:{peer_port:04X}", f"{_in_hex(family, own)}:{own_port:04X}"]
    with _TABLES[socket.AddressFamily(family)].open(encoding="ascii") as table:
        for line in table:
            fields = line.split()
            if fields[1:3] == sides:
                whole = int(fields[3], 16) == _ESTABLISHED and fields[9] != "0"
                return int(fields[7]) if whole else None
    return None


def _in_hex(family: int, address: str) -> str:
    """Write an address as /proc/net does: 32-bit words in the machine's byte order."""
    packed = socket.inet_pton(family, address)
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
