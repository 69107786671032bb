"""TCP forwarder of a load balancer or floating address: `guest.py DIRECTORY forwarder.py`, outside of the package.

Reads DIRECTORY/config.json whenever it changes (`forwarder_files.py` writes and describes it), and reports the health
of members and the bind errors of listeners in DIRECTORY/state.json.
"""

import asyncio
import contextlib
import json
import os
import ssl
import sys
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

TICK_S = 0.1
CONNECT_S = 2.0
CHUNK = 1 << 16
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Config = dict[str, Any]


@dataclass(eq=False)
class Member:
    """A member of a pool.

    Attributes:
        online: Whether the member is healthy; None before the first check, and without checks.
        successes: Successful checks since the last failed check.
        failures: Failed checks since the last successful check.
        current: See `Pool.next_in_turn`.
    """

    config: Config
    online: bool | None = None
    successes: int = 0
    failures: int = 0
    connections: int = 0
    current: int = 0

    def judge(self, passed: bool, retries: int) -> None:
        """Record a check. The first result counts at once, later results after `retries` equal ones in a row."""
        self.successes, self.failures = (self.successes + 1, 0) if passed else (0, self.failures + 1)
        if self.online is None or (self.successes if passed else self.failures) >= retries:
            self.online = passed


@dataclass(eq=False)
class Pool:
    config: Config
    members: list[Member]

    def choose(self, peer: str, tried: Collection[Member]) -> Member | None:
        usable = [
            member
            for member in self.members
            if member.config["weight"] > 0 and member.online is not False and member not in tried
        ]
        if not usable:
            return None
        if self.config["algorithm"] == "LEAST_CONNECTIONS":
            return min(usable, key=lambda member: (member.connections + 1) / member.config["weight"])
        if self.config["algorithm"].startswith("SOURCE_IP"):
            return usable[zlib.crc32(peer.encode()) % len(usable)]
        return self.next_in_turn(usable)

    def next_in_turn(self, usable: list[Member]) -> Member:
        """Choose by smooth weighted round robin, which interleaves the turns of a heavy member with lighter ones."""
        for member in usable:
            member.current += member.config["weight"]
        chosen = max(usable, key=lambda member: member.current)
        chosen.current -= sum(member.config["weight"] for member in usable)
        return chosen


@dataclass(eq=False)
class Listener:
    config: Config
    pool: Pool | None = None
    server: asyncio.Server | None = None
    problem: str = ""
    connections: int = 0

    async def bind(self) -> None:
        try:
            self.server = await asyncio.start_server(self.accept, self.config["address"], self.config["port"])
            self.problem = ""
        except OSError as error:
            self.problem = f"cannot listen on {self.config['address']}:{self.config['port']}: {error.strerror}"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")[0]
        self.connections += 1
        try:
            if self.admits(peer) and not await self.forward(peer, reader, writer):
                writer.write(UNAVAILABLE if self.config["protocol"] == "HTTP" else b"")
        finally:
            self.connections -= 1
            writer.close()

    def admits(self, peer: str) -> bool:
        cidrs, limit = self.config["allowed_cidrs"], self.config["connection_limit"]
        if 0 <= limit < self.connections:
            return False
        return not cidrs or any(ip_address(peer) in ip_network(cidr, strict=False) for cidr in cidrs)

    async def forward(self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Relay to the first member that accepts; return False if none does."""
        tried: set[Member] = set()
        while member := self.pool.choose(peer, tried) if self.pool else None:
            tried.add(member)
            try:
                opening = asyncio.open_connection(member.config["address"], member.config["port"])
                member_reader, member_writer = await asyncio.wait_for(opening, CONNECT_S)
            except (OSError, TimeoutError):
                continue
            member.connections += 1
            try:
                await asyncio.gather(pump(reader, member_writer), pump(member_reader, writer))
            finally:
                member.connections -= 1
                member_writer.close()
            return True
        return False


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of the stream, and close the target's side; a broken connection breaks the other side, too."""
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


async def is_healthy(member: Config, monitor: Config) -> bool:
    """Return the result of a health check."""
    try:
        return await asyncio.wait_for(probe(member, monitor), monitor["timeout"] or 1)
    except (OSError, TimeoutError, ValueError, IndexError):
        return False


async def probe(member: Config, monitor: Config) -> bool:
    secure = ssl._create_unverified_context() if monitor["type"] in ("HTTPS", "TLS-HELLO") else None
    reader, writer = await asyncio.open_connection(member["check_address"], member["check_port"], ssl=secure)
    try:
        if monitor["type"] not in ("HTTP", "HTTPS"):
            return True
        request = f"{monitor['http_method']} {monitor['url_path']} HTTP/1.0"
        writer.write(f"{request}\r\nHost: {member['check_address']}\r\n\r\n".encode())
        answer = await reader.readline()
        return expected(int(answer.split()[1]), monitor["expected_codes"])
    finally:
        writer.close()


def expected(code: int, codes: str) -> bool:
    """Return whether a code is in `codes`: `200`, `200,202` or `200-204`."""
    for part in codes.split(","):
        low, _, high = part.partition("-")
        if int(low) <= code <= int(high or low):
            return True
    return False


@dataclass(eq=False)
class Balancer:
    """Loop that keeps listeners, members and checks in line with the configuration, and reports their state."""

    directory: str
    listeners: dict[tuple[str, int], Listener] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    checks: list["asyncio.Task[None]"] = field(default_factory=list)
    reported: str = ""

    async def run(self) -> None:
        applied: Config = {}
        while True:
            # Compare contents, not time stamps: two changes within a tick of the file system's clock have the same.
            with open(f"{self.directory}/config.json", encoding="utf-8") as file:
                config = mirrored(json.load(file))
            if config != applied:
                self.apply(config)
                applied = config
            for listener in self.listeners.values():
                if listener.server is None:
                    await listener.bind()
            self.report()
            await asyncio.sleep(TICK_S)

    def apply(self, config: Config) -> None:
        """Apply a configuration; members keep their health, listeners their sockets and connections."""
        members = [member for pool in config["pools"].values() for member in pool["members"]]
        self.members = {member["id"]: self.member(member) for member in members}
        self.pools = {
            id: Pool(pool, [self.members[member["id"]] for member in pool["members"]])
            for id, pool in config["pools"].items()
        }
        wanted = {(entry["address"], entry["port"]): entry for entry in config["listeners"]}
        for key in self.listeners.keys() - wanted.keys():
            removed = self.listeners.pop(key)
            if removed.server is not None:
                removed.server.close()
        for key, entry in wanted.items():
            listener = self.listeners.setdefault(key, Listener(entry))
            listener.config = entry
            listener.pool = self.pools.get(entry["pool"])
        for check in self.checks:
            check.cancel()
        self.checks = [asyncio.create_task(self.check(pool)) for pool in self.pools.values() if pool.config["monitor"]]

    def member(self, config: Config) -> Member:
        known = self.members.get(config["id"])
        if known is None or not config["monitored"]:
            return Member(config)
        known.config = config
        return known

    async def check(self, pool: Pool) -> None:
        monitor = pool.config["monitor"]
        while True:
            verdicts = await asyncio.gather(*(is_healthy(member.config, monitor) for member in pool.members))
            for member, passed in zip(pool.members, verdicts, strict=True):
                member.judge(passed, monitor["max_retries"])
            self.report()
            await asyncio.sleep(max(monitor["delay"], TICK_S))

    def report(self) -> None:
        words = {None: "no_monitor", True: "online", False: "error"}
        state = {
            "listeners": {listener.config["id"]: listener.problem for listener in self.listeners.values()},
            "members": {id: words[member.online] for id, member in self.members.items()},
        }
        text = json.dumps(state)
        if text != self.reported:
            path = f"{self.directory}/state.json"
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(f"{path}.new", path)
            self.reported = text


def mirrored(config: Config) -> Config:
    """Replace a mirror by listeners: at its own address, for each port that has a listener at the target address."""
    mirror = config.get("mirror")
    if not mirror:
        return config
    ports = listening(mirror["to"])
    listener = {"address": mirror["from"], "protocol": "TCP", "connection_limit": -1, "allowed_cidrs": []}
    member = {"address": mirror["to"], "weight": 1, "monitored": False}
    pool = {"algorithm": "ROUND_ROBIN", "monitor": None}
    return {
        "listeners": [{**listener, "id": str(port), "port": port, "pool": str(port)} for port in ports],
        "pools": {str(port): {**pool, "members": [{**member, "id": str(port), "port": port}]} for port in ports},
    }


def listening(address: str) -> list[int]:
    """Return the TCP ports with a listener at exactly this IPv4 address."""
    wanted = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
    with open("/proc/net/tcp", encoding="ascii") as file:
        sockets = [line.split() for line in file]
    addresses = [fields[1].split(":") for fields in sockets if fields[3] == "0A"]
    return sorted({int(port, 16) for host, port in addresses if host == wanted})


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):  # the directory was removed, and with it the load balancer
        asyncio.run(Balancer(sys.argv[1]).run())
