"""Guarded requests to URLs that users name (templates, web hooks), limited in scheme, address, size and time.

A user must not read through the service what only the service can reach (server-side request forgery). So an address
that is not public is refused unless the operator allows it, and the connection goes to exactly the checked address: a
name cannot resolve to a public address for the check and to another address for the connection.
"""

import ipaddress
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

import httpcore
import httpx

from homeostat.clouds.timed_streams import RequestTime, TimedStream
from homeostat.clouds.unanswered import FAILURES, Answered, Refused, kind_of, reason_of, why_unsaid
from homeostat.model.answers import Kind
from homeostat.model.errors import Rejected, Transient

REDIRECTS_MAX = 5
SCHEMES = {"http": 80, "https": 443}
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
INSIDE = tuple(ipaddress.ip_network(text) for text in ("192.0.0.0/24", "168.63.129.16/32", "fec0::/10"))
"""Not public, although Python says so: protocol assignments, which clouds use for services of their machines; the
address at which Azure's machines reach their host; and the former site-local addresses of IPv6."""
USER_AGENT = b"homeostat"
WITH_BODY = ("POST", "PUT")
SAID_MAX = 300
"""Maximum number of bytes read from the answer to a call."""
KEPT_MAX, KEPT_S = 200, 75.0
"""Maximum number of idle connections kept for the next look at their server, and their maximum idle time in seconds."""
GONE = (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError)
"""Errors of an idle connection that its server has closed."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Server = tuple[bytes, bytes, int, bool]
"""Scheme, host and port, and whether the certificate is checked."""
Resolve = Callable[[str, int], Sequence[str]]
"""Host and port -> addresses as texts; raises OSError."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for allowed requests.

    Attributes:
        hosts: Names that are allowed although their addresses are not public.
        networks: Networks that are allowed although they are not public.
        size_max: Largest text, in bytes.
        timeout_s: Timeout of the whole fetch with its redirects, in seconds.
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    size_max: int = 524_288
    timeout_s: float = 30.0

    def allow(self, host: str, address: Address) -> bool:
        """Return whether a connection to this address of this host is allowed."""
        return is_public(address) or host.lower() in self.hosts or any(address in network for network in self.networks)


def read_rules(allowed: Iterable[str]) -> Rules:
    """Read rules from settings: names of hosts, addresses, or networks such as 10.0.0.0/8.

    Raises:
        ValueError: An entry is wrong; the message names it.
    """
    hosts, networks = set(), []
    for text in allowed:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            if "/" in text or ":" in text or not text:
                raise ValueError(f"{text}: write a host name, an address, or a network such as 10.0.0.0/8") from None
            hosts.add(text.lower())
    return Rules(frozenset(hosts), tuple(networks))


def is_public(address: Address) -> bool:
    """Return whether an address is public; IPv6 transition addresses are judged by their embedded address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    if any(address in network for network in INSIDE):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _resolve(host: str, port: int) -> Sequence[str]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _not_public(host: str, addresses: str = "") -> str:
    known = f" ({addresses})" if addresses else ""
    return f"{host} is not on the public internet{known}; the operator can allow it with --fetch-from"


def _allowed(rules: Rules, host: str, addresses: Sequence[str]) -> list[str]:
    """Return the addresses of a host that the rules allow."""
    return [text for text in addresses if rules.allow(host, ipaddress.ip_address(text.partition("%")[0]))]


class _Guarded(httpcore.NetworkBackend):
    """A network backend that connects only to addresses that the rules allow."""

    def __init__(self, rules: Rules, resolve: Resolve, time: RequestTime) -> None:
        self._rules, self._resolve, self._time = rules, resolve, time
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
            raise Refused(f"the name {host} cannot be resolved: {error}", Kind.UNRESOLVED) from error
        allowed = _allowed(self._rules, host, addresses)
        if not allowed:
            raise Refused(_not_public(host, ", ".join(addresses) or "no address"))
        failure: Exception | None = None
        for address in allowed:
            try:
                left_s = self._time.left_s()
                with self._time.waiting():
                    stream = self._backend.connect_tcp(address, port, left_s, local_address, socket_options)
                return TimedStream(stream, self._time)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or Refused(f"{host} has no address")


class _Kept:
    """Idle connections: one per server, for the most recently asked servers.

    Each server has its own pool, since a pool scans all its connections for each request.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pools: OrderedDict[Server, tuple[float, httpcore.ConnectionPool]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, server: Server) -> httpcore.ConnectionPool | None:
        """Remove and return the pool of a server, for exclusive use; None if absent."""
        with self._lock:
            _, pool = self._pools.pop(server, (0.0, None))
        return pool

    def give(self, server: Server, pool: httpcore.ConnectionPool) -> None:
        """Keep a pool for the next use; close pools idle for too long, or too many."""
        now = self._monotonic()
        with self._lock:
            closed = [self._pools.pop(server)[1]] if server in self._pools else []
            self._pools[server] = (now, pool)
            while len(self._pools) > KEPT_MAX or next(iter(self._pools.values()))[0] < now - KEPT_S:
                closed.append(self._pools.popitem(last=False)[1][1])
        for idle in closed:
            idle.close()


class Outbound:
    """Client that fetches texts and posts to web hooks.

    Safe to share between threads. Keeps no cookies, and uses no proxy; only `answer` keeps connections, since it asks
    the same URLs again and again.
    """

    def __init__(
        self,
        rules: Rules = Rules(),
        resolve: Resolve = _resolve,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a client.

        Args:
            rules: Allowed requests.
            resolve: Resolves names to addresses.
            monotonic: Seconds of a monotonic clock, for the time limit.
        """
        self.rules = rules
        self._resolve = resolve
        self._monotonic = monotonic
        self._time = RequestTime(monotonic)
        self._kept = _Kept(monotonic)

    def fetch(self, url: str) -> str:
        """Fetch the text at an http or https URL, following redirects.

        Raises:
            Rejected: HTTPBadRequest (the message names the URL and the reason), or DownloadLimitExceeded for a text
                that is too large.
        """
        deadline = self._monotonic() + self.rules.timeout_s
        at = url
        try:
            for _ in range(REDIRECTS_MAX + 1):
                answer = self._get(_parsed(at), deadline)
                if isinstance(answer, bytes):
                    return answer.decode("utf-8-sig")
                at = str(httpx.URL(at).join(answer))
            raise Refused(f"it redirects more than {REDIRECTS_MAX} times")
        except FAILURES as error:
            raise self._failed(url, at, reason_of(error, self.rules.timeout_s)) from error

    def check(self, url: str) -> None:
        """Check a URL as far as possible without a request; names are checked when connecting.

        Raises:
            ValueError: The URL is not allowed; the message says why.
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

    def check_now(self, url: str) -> None:
        """Check a URL by the present addresses of its name; a name that does not resolve now is accepted.

        Raises:
            ValueError: The URL is not allowed; the message says why.
        """
        self.check(url)
        host = httpx.URL(url).host
        try:
            addresses = self._resolve(host, httpx.URL(url).port or SCHEMES[httpx.URL(url).scheme])
        except (OSError, UnicodeError):
            return
        if addresses and not _allowed(self.rules, host, addresses):
            raise ValueError(_not_public(host, ", ".join(addresses)))

    def post(self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
        """Post to an http or https URL; redirects are not followed, and the body of the response is not read.

        Raises:
            Transient: The response is not a 2xx, or is missing.
        """
        status, reason = self.call("POST", url, body, headers, timeout_s)
        if not 200 <= status < 300:
            reason = f"the server answered {status}" if status else reason
            raise Transient(f"Could not post to {url}: {reason}")

    def call(self, method: str, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
        """Send a request; return the status code and the start of the answer's text, or 0 and the error.

        Redirects are not followed.

        Args:
            method: GET, POST or PUT.
            url: An http or https URL.
            body: The body; ignored with GET.
            headers: Further headers.
            timeout_s: Timeout of the whole call, in seconds.
        """
        deadline = self._monotonic() + timeout_s
        try:
            more = [(name.encode(), value.encode()) for name, value in headers.items()]
            with self._request(method, _parsed(url), deadline, more, body) as answer:
                return answer.status, _beginning(answer)
        except FAILURES as error:
            return 0, reason_of(error, timeout_s)

    def status(self, url: str, timeout_s: float) -> str:
        """Return the status code of the answer to GET, or the reason of the failure; redirects are not followed."""
        deadline = self._monotonic() + timeout_s
        try:
            with self._request("GET", _parsed(url), deadline) as answer:
                return str(answer.status)
        except FAILURES as error:
            return reason_of(error, timeout_s)

    def answer(self, url: str, timeout_s: float, *, verify_tls: bool = True) -> Answered:
        """Return the answer to GET, after redirects, or the reason of the failure.

        The connection is kept for the next call.

        Args:
            url: An http or https URL.
            timeout_s: Timeout of the whole call, in seconds.
            verify_tls: Whether certificates have to be valid.
        """
        began = self._monotonic()
        deadline, self._time.waited_s = began + timeout_s, 0.0
        at = url
        try:
            for _ in range(REDIRECTS_MAX + 1):
                try:
                    outcome = self._answered(at, deadline, verify_tls=verify_tls, keep=True)
                except GONE:
                    # The server may have closed the kept connection: try again with a new one.
                    outcome = self._answered(at, deadline, verify_tls=verify_tls)
                if not isinstance(outcome, str):
                    return Answered(*outcome)
                at = str(httpx.URL(at).join(outcome))
            return Answered(0, f"it redirects more than {REDIRECTS_MAX} times", Kind.UNHEALTHY)
        except (*FAILURES, Rejected) as error:
            took_s, waited_s = self._monotonic() - began, self._time.waited_s
            kind = kind_of(error, timeout_s, took_s, waited_s)
            reason = reason_of(error, timeout_s)
            return Answered(0, why_unsaid(kind, reason, took_s=took_s, waited_s=waited_s), kind)

    def _answered(self, url: str, deadline: float, *, verify_tls: bool, keep: bool = False) -> tuple[int, str] | str:
        """Return the status code and the text of the answer to GET, or the target of a redirect."""
        with self._request("GET", _parsed(url), deadline, verify_tls=verify_tls, keep=keep) as answer:
            target = _target(answer)
            return (answer.status, self._body(answer, url).decode(errors="replace")) if target is None else target

    def _failed(self, url: str, at: str, why: str) -> Rejected:
        through = "" if at == url else f" (redirected to {at})"
        return Rejected("HTTPBadRequest", f"Could not fetch {url}{through}: {why}")

    def _get(self, url: httpx.URL, deadline: float) -> bytes | str:
        """Return the body (bytes), or the target of a redirect (text).

        Raises:
            Refused: The response is not usable; and any of `FAILURES`.
        """
        with self._request("GET", url, deadline) as answer:
            target = _target(answer)
            if target is not None:
                return target
            if answer.status != 200:
                raise Refused(f"the server answered {answer.status}")
            headers = _headers(answer)
            if headers.get(b"content-encoding", "identity") != "identity":
                raise Refused(f"it is encoded ({headers[b'content-encoding']}), which was not asked for")
            return self._body(answer, str(url))

    @contextmanager
    def _request(
        self,
        method: str,
        url: httpx.URL,
        deadline: float,
        more: Sequence[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        *,
        verify_tls: bool = True,
        keep: bool = False,
    ) -> Iterator[httpcore.Response]:
        """Send a request and yield the response with its body not read yet; `more` are further headers."""
        # The Host header must name the host, not the address. Encodings are refused: a small compressed body can
        # expand beyond any size limit.
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", USER_AGENT),
            (b"Accept", b"*/*"),
            (b"Accept-Encoding", b"identity"),
            *([(b"Content-Length", str(len(body)).encode())] if method in WITH_BODY else []),
            *more,
        ]
        where = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        self._time.ends_at = deadline
        server = (where.origin.scheme, where.origin.host, where.origin.port, verify_tls)
        pool = (self._kept.take(server) if keep else None) or self._pool(verify_tls=verify_tls, kept=int(keep))
        try:
            with pool.stream(method, where, headers=headers, content=body or None) as answer:
                yield answer
        except BaseException:
            pool.close()
            raise
        if keep:
            self._kept.give(server, pool)
        else:
            pool.close()

    def _pool(self, *, verify_tls: bool, kept: int) -> httpcore.ConnectionPool:
        """Return a pool whose streams heed the deadline of the thread that uses them."""
        backend = _Guarded(self.rules, self._resolve, self._time)
        return httpcore.ConnectionPool(
            ssl_context=_tls(verify=verify_tls),
            max_connections=None,
            max_keepalive_connections=kept,
            keepalive_expiry=KEPT_S,
            network_backend=backend,
        )

    def _body(self, answer: httpcore.Response, url: str) -> bytes:
        parts, size = [], 0
        for part in answer.iter_stream():
            size += len(part)
            if size > self.rules.size_max:
                message = f"Could not fetch {url}: it is larger than {self.rules.size_max} bytes"
                raise Rejected("DownloadLimitExceeded", message)
            parts.append(part)
        return b"".join(parts)


@cache
def _tls(*, verify: bool) -> ssl.SSLContext:
    """Return the settings of TLS connections, cached: reading the machine's certificates takes milliseconds."""
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _beginning(answer: httpcore.Response) -> str:
    """Return the start of an answer's text, as far as it arrives in time."""
    read = b""
    with suppress(*FAILURES):
        for part in answer.iter_stream():
            read += part
            if len(read) >= SAID_MAX:
                break
    return read[:SAID_MAX].decode(errors="replace").strip()


def _headers(answer: httpcore.Response) -> dict[bytes, str]:
    return {name.lower(): value.decode("latin-1") for name, value in answer.headers}


def _target(answer: httpcore.Response) -> str | None:
    """Return the target of a redirect; None for any other response.

    Raises:
        Refused: The redirect has no target.
    """
    if answer.status not in (301, 302, 303, 307, 308):
        return None
    target = _headers(answer).get(b"location")
    if not target:
        raise Refused("it redirects to nowhere", Kind.UNHEALTHY)
    return target


def _parsed(url: str) -> httpx.URL:
    """Parse and check a URL.

    Raises:
        Refused: The URL is not allowed.
        httpx.InvalidURL: It is not a URL.
    """
    parsed = httpx.URL(url)
    if parsed.scheme not in SCHEMES:
        raise Refused(f"only {' and '.join(SCHEMES)} can be used")
    if not parsed.host:
        raise Refused("it names no host")
    if parsed.userinfo:
        raise Refused("it holds a user or password, which would be stored with the stack: leave them out")
    return parsed
