"""TLS of HTTP clients against real servers of this machine: each peer is verified, and nothing is loaded before."""

import contextlib
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from homeostat.clouds import tls

NAME = "localhost"


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test loads its own authorities, and goes through no proxy."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    tls._loaded.cache_clear()
    yield
    tls._loaded.cache_clear()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of `NAME`, signed with that key itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    path.write_bytes(key.private_bytes(*plain) + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextlib.contextmanager
def serving(certificate: Path | None = None, location: str = "") -> Iterator[int]:
    """A server; location — where it sends clients. Gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def get(url: str) -> int:
    with httpx.Client(verify=tls.verifying(), follow_redirects=True) as client:
        return client.get(url).status_code


def loaded() -> bool:
    return tls._loaded.cache_info().currsize > 0


def test_without_tls_nothing_is_loaded() -> None:
    with serving() as port:
        assert get(f"http://127.0.0.1:{port}/") == 200
    assert not loaded()


def test_a_peer_of_an_unknown_authority_is_refused(certificate: Path) -> None:
    with serving(certificate) as port, pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        get(f"https://{NAME}:{port}/")


def test_a_redirect_leads_to_no_such_peer_either(certificate: Path) -> None:
    with (
        serving(certificate) as port,
        serving(location=f"https://{NAME}:{port}/") as first,
        pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        get(f"http://127.0.0.1:{first}/")


def test_a_known_peer_is_accepted_under_its_name_alone(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate) as port:
        assert get(f"https://{NAME}:{port}/") == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            get(f"https://127.0.0.1:{port}/")
    assert loaded()


def test_the_context_itself_trusts_no_authority() -> None:
    bare = tls.verifying()
    assert (bare.verify_mode, bare.check_hostname, bare.get_ca_certs()) == (ssl.CERT_REQUIRED, True, [])
