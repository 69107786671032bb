"""Fetching what users name by URL: what is refused, what is bounded, and that the judged address is the one connected.

Servers are real ones of this machine; names resolve as each test says.
"""

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest

from homeostat.clouds.outbound import Outbound, Rules, is_public, read_rules
from homeostat.model.errors import Rejected, Transient

HOME = ipaddress.ip_network("127.0.0.0/8")


def page(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Server:
    """Answers each path with the bytes of its page, and then closes; `asked` — first lines and Host headers;
    `bodies` — of the requests."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self._pages = pages
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(4096)
        head, _, body = request.partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        length = next((int(each.partition(": ")[2]) for each in headers if each.startswith("Content-Length:")), 0)
        while len(body) < length:
            body += connection.recv(4096)
        self.bodies.append(body)
        host = next(each.partition(": ")[2] for each in headers if each.lower().startswith("host:"))
        self.asked.append((first, host))
        connection.sendall(self._pages[first.split()[1]])

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@contextlib.contextmanager
def serving(pages: Mapping[str, bytes]) -> Iterator[Server]:
    with contextlib.closing(Server(pages)) as server:
        yield server


def test_a_text_is_fetched_under_its_name_from_the_address_that_was_judged() -> None:
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with serving({"/t.yaml?x=1": page("größer".encode())}) as server:
        outbound = Outbound(Rules(networks=(HOME,)), resolve)
        assert outbound.fetch(f"http://templates.test:{server.port}/t.yaml?x=1#top") == "größer"
        assert server.asked == [("GET /t.yaml?x=1 HTTP/1.1", f"templates.test:{server.port}")]
    assert asked == ["templates.test"]


def test_redirects_are_followed_and_each_of_them_is_judged() -> None:
    names = {"public.test": ["127.0.0.1"], "inside.test": ["127.0.0.2"]}
    rules = Rules(hosts=frozenset({"public.test"}))
    outbound = Outbound(rules, lambda host, port: names[host])
    pages = {
        "/moved": page(status="302 Found", Location="/here"),
        "/here": page(b"found"),
        "/inside": page(status="301 Moved", Location="http://inside.test/secret"),
        "/file": page(status="302 Found", Location="file:///etc/passwd"),
        "/round": page(status="307 Again", Location="/round"),
        "/nowhere": page(status="302 Found"),
    }
    with serving(pages) as server:
        base = f"http://public.test:{server.port}"
        assert outbound.fetch(f"{base}/moved") == "found"
        for path, problem in (
            ("/inside", r"redirected to http://inside\.test/secret.*not on the public internet \(127\.0\.0\.2\)"),
            ("/file", "redirected to file.*only http and https can be used"),
            ("/round", "redirects more than 5 times"),
            ("/nowhere", "redirects to nowhere"),
        ):
            with pytest.raises(Rejected, match=problem):
                outbound.fetch(f"{base}{path}")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://example.org/t.yaml", "only http and https"),
        ("/etc/passwd", "only http and https"),
        ("http:///t.yaml", "names no host"),
        ("http://me:secret@example.org/t.yaml", "holds a user or password"),
        ("http://127.0.0.1/t.yaml", "not on the public internet"),
        ("http://2130706433/t.yaml", "not on the public internet"),
        ("http://[::1]/t.yaml", "not on the public internet"),
        ("http://[::ffff:127.0.0.1]/t.yaml", "not on the public internet"),
        ("http://169.254.169.254/latest/meta-data", "not on the public internet"),
        ("http://exa mple/\x00", "Could not fetch"),
        ("http://example.org:99999/", "Could not fetch"),
    ],
)
def test_what_must_not_be_fetched(url: str, problem: str) -> None:
    with pytest.raises(Rejected, match=problem) as caught:
        Outbound().fetch(url)
    assert caught.value.fault == "HTTPBadRequest"


def test_a_name_that_does_not_resolve_is_reported() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(Rejected, match=r"the name gone\.test cannot be resolved: .*not known"):
        Outbound(resolve=resolve).fetch("http://gone.test/")


def test_an_allowed_address_is_taken_where_a_name_has_others_too() -> None:
    with serving({"/": page(b"yes")}) as server:
        outbound = Outbound(
            Rules(networks=(ipaddress.ip_network("127.0.0.1/32"),)), lambda host, port: ["127.0.0.2", "127.0.0.1"]
        )
        assert outbound.fetch(f"http://both.test:{server.port}/") == "yes"


@pytest.mark.parametrize(
    ("answer", "fault", "problem"),
    [
        (page(b"x" * 101), "DownloadLimitExceeded", "larger than 100 bytes"),
        (page(b"x", status="404 Not Found"), "HTTPBadRequest", "the server answered 404"),
        (page(b"\x1f\x8b", Content_Encoding="gzip"), "HTTPBadRequest", "it is encoded"),
        (page(b"\xff\xfe"), "HTTPBadRequest", "can't decode"),
        (b"nonsense\r\n\r\n", "HTTPBadRequest", "Could not fetch"),
        (b"", "HTTPBadRequest", "Could not fetch"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTPBadRequest", "Could not fetch"),
    ],
    ids=["large", "missing", "encoded", "no-text", "no-http", "silent", "cut-off"],
)
def test_what_a_server_may_do_wrong(answer: bytes, fault: str, problem: str) -> None:
    with serving({"/": answer}) as server:
        outbound = Outbound(Rules(networks=(HOME,), size_max=100))
        with pytest.raises(Rejected, match=problem) as caught:
            outbound.fetch(f"http://127.0.0.1:{server.port}/")
    assert caught.value.fault == fault


def test_the_time_is_limited_as_a_whole() -> None:
    """Every look at the clock takes a second of it: a server that sends on and on is cut off."""
    seconds = iter(range(1_000_000))
    with serving({"/": page(b"x" * 1_000_000)}) as server:
        outbound = Outbound(Rules(networks=(HOME,), size_max=10**9, timeout_s=5), monotonic=lambda: next(seconds))
        with pytest.raises(Rejected, match="it took more than 5 s"):
            outbound.fetch(f"http://127.0.0.1:{server.port}/")


def test_a_body_is_posted_to_the_address_that_was_judged() -> None:
    with serving({"/hook": page(status="204 No Content")}) as server:
        outbound = Outbound(Rules(networks=(HOME,)), lambda host, port: ["127.0.0.1"])
        outbound.post(f"http://hooks.example.com:{server.port}/hook", b"news" * 10_000, {"X-Key": "k"}, 60.0)
    assert server.asked == [("POST /hook HTTP/1.1", f"hooks.example.com:{server.port}")]
    assert server.bodies == [b"news" * 10_000]


def test_the_status_of_a_url_is_its_answer_or_why_there_is_none() -> None:
    pages = {"/well": page(), "/moved": page(status="302 Found", Location="/well"), "/ill": page(status="503 No")}
    with serving(pages) as server:
        here, ours = f"http://127.0.0.1:{server.port}", Outbound(Rules(networks=(HOME,)))
        assert [ours.status(f"{here}/{name}", 60.0) for name in ("well", "moved", "ill")] == ["200", "302", "503"]
        assert "127.0.0.1 is not on the public internet" in Outbound().status(f"{here}/well", 60.0)
    assert "refused" in ours.status(f"{here}/well", 60.0)


def test_a_call_returns_the_status_and_how_the_text_begins() -> None:
    pages = {"/well": page(b"done" * 200), "/moved": page(status="302 Found", Location="/well")}
    with serving(pages) as server:
        here, ours = f"http://127.0.0.1:{server.port}", Outbound(Rules(networks=(HOME,)))
        assert ours.call("PUT", f"{here}/well", b"{}", {"X-Key": "k"}, 60.0) == (200, "done" * 75)
        assert ours.call("GET", f"{here}/moved", b"", {}, 60.0)[0] == 302
        assert Outbound().call("POST", f"{here}/well", b"", {}, 60.0)[0] == 0
    assert server.asked[0] == ("PUT /well HTTP/1.1", f"127.0.0.1:{server.port}")
    assert server.bodies[0] == b"{}"
    assert ours.call("POST", f"{here}/well", b"", {}, 60.0)[0] == 0


def test_whatever_hinders_a_post_may_pass() -> None:
    pages = {"/moved": page(status="302 Found", Location="/hook"), "/hook": page(), "/ill": page(status="500 No")}
    with serving(pages) as server:
        here = f"http://127.0.0.1:{server.port}"
        ours = Outbound(Rules(networks=(HOME,)))
        seconds = iter(range(1_000_000))
        slow = Outbound(Rules(networks=(HOME,)), monotonic=lambda: 10.0 * next(seconds))
        for outbound, url, problem in (
            (ours, f"{here}/moved", "the server answered 302"),
            (ours, f"{here}/ill", "the server answered 500"),
            (Outbound(), f"{here}/hook", "127.0.0.1 is not on the public internet"),
            (slow, f"{here}/hook", "it took more than 5 s"),
        ):
            with pytest.raises(Transient, match=f"^Could not post to {url}: {problem}"):
                outbound.post(url, b"news", {}, 5.0)
    assert [first for first, _ in server.asked] == ["POST /moved HTTP/1.1", "POST /ill HTTP/1.1"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("255.255.255.255", False),
        ("224.0.0.1", False),
        ("169.254.169.254", False),
        ("::ffff:169.254.169.254", False),
        ("192.0.0.192", False),  # metadata of Oracle's cloud
        ("168.63.129.16", False),  # the host of machines in Azure
        ("::ffff:168.63.129.16", False),
        ("fec0::1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("::", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::5db8:d70e", True),
        ("2002:7f00:1::", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


def test_the_operator_allows_hosts_addresses_and_networks() -> None:
    rules = read_rules(["Templates.local", "10.0.0.0/8", "::1"])
    inside = ipaddress.ip_address("192.168.0.1")
    assert rules.allow("templates.LOCAL", inside)
    assert not rules.allow("other.local", inside)
    assert rules.allow("other.local", ipaddress.ip_address("10.9.9.9"))
    assert rules.allow("other.local", ipaddress.ip_address("::1"))
    for wrong in ("10.0.0.0/99", "http://x", ""):
        with pytest.raises(ValueError, match="write a host name"):
            read_rules([wrong])
