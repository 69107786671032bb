"""The one way out to addresses that users name (templates, web hooks): a guard on scheme, address, size and time.

A user must not read through the service what only the service can reach. So an address that is not public is refused
unless the operator allows it, and the connection goes to the very address that was judged: a name cannot answer with a
public address first and with another one afterwards.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from homeostat.model.errors import Rejected, Transient

REDIRECTS_MAX = 5
SCHEMES = {"http": 80, "https": 443}
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
INSIDE = tuple(ipaddress.ip_network(each) for each in ("192.0.0.0/24", "168.63.129.16/32", "fec0::/10"))
"""Not for the open internet, though Python says so: protocol assignments and what clouds put among them for their
machines, the address at which Azure's machines reach their host, and what was site-local in IPv6."""
USER_AGENT = b"homeostat"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]
"""Host and port -> addresses as text. Fails: OSError."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be fetched. hosts, networks — allowed though they are not public; size_max — bytes of a text; timeout_s
    — for the whole fetch, redirects included."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    size_max: int = 524_288
    timeout_s: float = 30.0

    def allow(self, host: str, address: Address) -> bool:
        """May this address be connected to under this name?"""
        return is_public(address) or host.lower() in self.hosts or any(address in each for each in self.networks)


def read_rules(allowed: Iterable[str]) -> Rules:
    """From settings: names of hosts, addresses, or networks such as 10.0.0.0/8. Fails: ValueError naming the entry."""
    hosts, networks = set(), []
    for each in allowed:
        try:
            networks.append(ipaddress.ip_network(each, strict=False))
        except ValueError:
            if "/" in each or ":" in each or not each:
                raise ValueError(f"{each}: write a host name, an address, or a network such as 10.0.0.0/8") from None
            hosts.add(each.lower())
    return Rules(frozenset(hosts), tuple(networks))


def is_public(address: Address) -> bool:
    """Is it an address of the open internet, also when it hides within another one (IPv6 transition addresses)?"""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    if any(address in each for each in INSIDE):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _resolve(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Refused(Exception):
    """The rules do not allow it; the text is for the user."""


FAILURES = (
    *(Refused, UnicodeDecodeError, httpx.InvalidURL, httpcore.TimeoutException, TimeoutError),
    *(httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError),
)
"""What asking may fail with."""


def _reason(error: Exception, timeout_s: float) -> str:
    if isinstance(error, httpcore.TimeoutException | TimeoutError):
        return f"it took more than {timeout_s:g} s"
    return str(error) or type(error).__name__


def _not_public(host: str, addresses: str = "") -> str:
    known = f" ({addresses})" if addresses else ""
    return f"{host} is not on the public internet{known}; the operator can allow it with --fetch-from"


class _Timed(httpcore.NetworkStream):
    """A stream whose every act ends at one deadline: a server that sends a byte now and then gains nothing by it."""

    def __init__(self, stream: httpcore.NetworkStream, left_s: Callable[[], float]) -> None:
        self._stream = stream
        self._left_s = left_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, self._left_s()), self._left_s)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Guarded(httpcore.NetworkBackend):
    """Connects to addresses that the rules allow. left_s — seconds to the deadline; fails: TimeoutError."""

    def __init__(self, rules: Rules, resolve: Resolve, left_s: Callable[[], float]) -> None:
        self._rules = rules
        self._resolve = resolve
        self._left_s = left_s
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Refused(f"the name {host} cannot be resolved: {error}") from error
        allowed = [each for each in addresses if self._rules.allow(host, ipaddress.ip_address(each.partition("%")[0]))]
        if not allowed:
            raise Refused(_not_public(host, ", ".join(addresses) or "no address"))
        failure: Exception | None = None
        for address in allowed:
            try:
                stream = self._backend.connect_tcp(address, port, self._left_s(), local_address, socket_options)
                return _Timed(stream, self._left_s)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or Refused(f"{host} has no address")


class Outbound:
    """Fetches texts, and posts to web hooks. Safe to share between threads; keeps no connections and no cookies, uses
    no proxy.

    Takes: resolve — how names become addresses; monotonic — seconds, for the time limit.
    """

    def __init__(
        self,
        rules: Rules = Rules(),
        resolve: Resolve = _resolve,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules
        self._resolve = resolve
        self._monotonic = monotonic

    def fetch(self, url: str) -> str:
        """The text at an http or https URL, redirects followed.

        Fails: Rejected — HTTPBadRequest saying what is wrong with which URL, DownloadLimitExceeded for a text that is
        too large.
        """
        deadline = self._monotonic() + self.rules.timeout_s
        at = url
        try:
            for _ in range(REDIRECTS_MAX + 1):
                found = self._get(_parsed(at), deadline)
                if isinstance(found, bytes):
                    return found.decode("utf-8-sig")
                at = str(httpx.URL(at).join(found))
            raise Refused(f"it redirects more than {REDIRECTS_MAX} times")
        except FAILURES as error:
            raise self._failed(url, at, _reason(error, self.rules.timeout_s)) from error

    def check(self, url: str) -> None:
        """May it be asked for, as far as that can be told without asking? Names are judged when they are connected to.

        Fails: ValueError saying what is wrong with it.
        """
        try:
            host = _parsed(url).host
            address = ipaddress.ip_address(host)
        except (Refused, httpx.InvalidURL) as error:
            raise ValueError(str(error)) from error
        except ValueError:  # a name
            return
        if not self.rules.allow(host, address):
            raise ValueError(_not_public(host))

    def post(self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
        """Post to an http or https URL; redirects are not followed, and the answer's body is not read.

        Fails: Transient unless the answer is a 2xx.
        """
        deadline = self._monotonic() + timeout_s
        try:
            more = [(name.encode(), value.encode()) for name, value in headers.items()]
            with self._asked("POST", _parsed(url), deadline, more, body) as answer:
                if not 200 <= answer.status < 300:
                    raise Refused(f"the server answered {answer.status}")
        except FAILURES as error:
            raise Transient(f"Could not post to {url}: {_reason(error, timeout_s)}") from error

    def _failed(self, url: str, at: str, why: str) -> Rejected:
        through = "" if at == url else f" (redirected to {at})"
        return Rejected("HTTPBadRequest", f"Could not fetch {url}{through}: {why}")

    def _get(self, url: httpx.URL, deadline: float) -> bytes | str:
        """The body, or where it redirects to. Fails: Refused, and what the connection raises."""
        with self._asked("GET", url, deadline) as answer:
            told = {name.lower(): value.decode("latin-1") for name, value in answer.headers}
            if answer.status in (301, 302, 303, 307, 308):
                if not told.get(b"location"):
                    raise Refused("it redirects to nowhere")
                return told[b"location"]
            if answer.status != 200:
                raise Refused(f"the server answered {answer.status}")
            if told.get(b"content-encoding", "identity") != "identity":
                raise Refused(f"it is encoded ({told[b'content-encoding']}), which was not asked for")
            return self._body(answer, str(url))

    @contextmanager
    def _asked(
        self, method: str, url: httpx.URL, deadline: float, more: Sequence[tuple[bytes, bytes]] = (), body: bytes = b""
    ) -> Iterator[httpcore.Response]:
        """The answer, its body not yet read. more — further headers."""
        # The Host header must name the host and not the address; encodings are refused, since they unfold.
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", USER_AGENT),
            (b"Accept", b"*/*"),
            (b"Accept-Encoding", b"identity"),
            *([(b"Content-Length", str(len(body)).encode())] if method == "POST" else []),
            *more,
        ]
        where = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        backend = _Guarded(self.rules, self._resolve, lambda: self._left_s(deadline))
        with (
            httpcore.ConnectionPool(ssl_context=ssl.create_default_context(), network_backend=backend) as pool,
            pool.stream(method, where, headers=headers, content=body or None) as answer,
        ):
            yield answer

    def _body(self, answer: httpcore.Response, url: str) -> bytes:
        parts, size = [], 0
        for part in answer.iter_stream():
            size += len(part)
            if size > self.rules.size_max:
                message = f"Could not fetch {url}: it is larger than {self.rules.size_max} bytes"
                raise Rejected("DownloadLimitExceeded", message)
            parts.append(part)
        return b"".join(parts)

    def _left_s(self, deadline: float) -> float:
        """Fails: TimeoutError."""
        left_s = deadline - self._monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def _parsed(url: str) -> httpx.URL:
    """Fails: Refused, httpx.InvalidURL."""
    found = httpx.URL(url)
    if found.scheme not in SCHEMES:
        raise Refused(f"only {' and '.join(SCHEMES)} can be used")
    if not found.host:
        raise Refused("it names no host")
    if found.userinfo:
        raise Refused("it holds a user or password, which would be stored with the stack: leave them out")
    return found
