"""URLs of members on a real web server over TLS, that lies, hangs, redirects, is not trusted, or is away."""

import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from homeostat.clouds import outbound
from homeostat.clouds.outbound import Outbound, read_rules
from homeostat.convergence.engine import Urls
from homeostat.convergence.health_checks.probes import Answer, judged
from homeostat.model.health_policy import Detection, DetectionType
from homeostat.model.node_health import Finding
from tests.component.checked import Checked, policy, url

HEALTHY, UNHEALTHY, UNKNOWN = Finding.HEALTHY, Finding.UNHEALTHY, Finding.UNKNOWN
HANGS_S = 60.0
"""Longer than any probe waits."""


class Web(ThreadingHTTPServer):
    """over — set when what hangs may end; ill — paths that answer 500; connections — how many were made; drops — each
    connection is closed once it was used, without a word."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.over = threading.Event()
        self.connections = 0
        self.drops = False
        self.ill: set[str] = set()

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.server_port}"


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        cast(Web, self.server).connections += 1

    def do_GET(self) -> None:
        web = cast(Web, self.server)
        self.close_connection = web.drops
        if self.path == "/hangs":
            web.over.wait(HANGS_S)
        elif self.path in web.ill:
            self._say(500, "ok")
        elif self.path in ("/moved", "/round"):
            self._say(302, "", Location="/well" if self.path == "/moved" else "/round")
        else:
            self._say(200, "all is fine" if self.path == "/lies" else "ok")

    def _say(self, status: int, text: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    _certify(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    served = Web(context)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.over.set()
    served.shutdown()
    served.server_close()
    thread.join()


def _certify(file: Path) -> None:
    """Write a key and a certificate that nothing trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nodes")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))


def get(address: str, verify_tls: bool, patience_s: float) -> Answer:
    ours = Outbound(read_rules(["127.0.0.1"]))
    return Answer(*ours.answer(address, patience_s, verify_tls=verify_tls))


@pytest.mark.shows("HP3")
@pytest.mark.parametrize(
    ("path", "verify", "expected", "evidence"),
    [
        ("/well", False, HEALTHY, "it answered 200"),
        ("/lies", False, UNHEALTHY, "it answered 200 without what a healthy one says"),
        ("/hangs", False, UNHEALTHY, "no answer: it took more than 1 s"),
        ("/moved", False, HEALTHY, "it answered 200"),
        ("/round", False, UNHEALTHY, "no answer: it redirects more than 5 times"),
        ("/well", True, UNKNOWN, "it could not be asked: "),
    ],
)
def test_what_a_web_server_says(web: Web, path: str, verify: bool, expected: Finding, evidence: str) -> None:
    began = time.monotonic()
    wanted = Detection(DetectionType.URL, f"{web.address}{path}", verify, response="ok")
    look = judged(wanted, get(wanted.url, wanted.verify_tls, 1.0))
    assert (look.finding, look.evidence.startswith(evidence)) == (expected, True), look
    assert "certificate" in look.evidence or not verify
    assert time.monotonic() - began < HANGS_S / 2


def test_connections_are_kept_and_made_anew_where_the_server_has_closed_them(web: Web) -> None:
    ours = Outbound(read_rules(["127.0.0.1"]))

    def connections(looks: int) -> int:
        before = web.connections
        for _ in range(looks):
            assert ours.answer(f"{web.address}/well", 5.0, verify_tls=False)[:2] == (200, "ok")
        return web.connections - before

    assert connections(5) == 1
    web.drops = True
    try:
        assert connections(3) == 2, "the first one is asked by the connection that was kept, and closed by that"
    finally:
        web.drops = False


def test_of_all_connections_only_those_to_the_servers_that_were_asked_last_are_kept(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "KEPT_MAX", 2)
    ours = Outbound(read_rules(["127.0.0.0/8"]), resolve=lambda _host, _port: ["127.0.0.1"])

    def is_kept(name: str) -> bool:
        before = web.connections
        assert ours.answer(f"https://{name}:{web.server_port}/well", 5.0, verify_tls=False)[:2] == (200, "ok")
        return web.connections == before

    assert [is_kept(each) for each in ("a", "b", "c")] == [False] * 3
    assert [is_kept(each) for each in ("b", "c", "a")] == [True, True, False]


def test_a_web_server_that_is_away_does_not_answer() -> None:
    wanted = Detection(DetectionType.URL, "https://127.0.0.1:9/", no_answer_is_unhealthy=True)
    look = judged(wanted, get(wanted.url, True, 1.0))
    assert (look.finding, look.evidence.startswith("no answer: ")) == (UNHEALTHY, True)


def test_a_node_whose_page_fails_is_made_again(web: Web) -> None:
    modes = url(poll_url=f"{web.address}/{{nodename}}", poll_url_ssl_verify=False, poll_url_retry_limit=1)
    service = Checked(3, policy(modes), urls=Urls(get=get))
    before = [service.handle(number) for number in range(3)]
    service.live(25.0)
    assert [service.handle(number) for number in range(3)] == before
    web.ill.add("/n-002")
    service.live(15.0)
    web.ill.clear()
    service.live(25.0)
    after = [service.handle(number) for number in range(3)]
    assert [new == old for new, old in zip(after, before, strict=True)] == [True, False, True]
    assert service.health_of(1).finding is HEALTHY
