"""What a process asks of the services: an HTTP proxy that passes every request on and notes it."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

READS = ("GET", "HEAD", "OPTIONS")
LOGIN = "/v3/auth/tokens"
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length"}


@dataclass(slots=True)
class WireLog:
    """url — of the proxy. requests — method and URL of each, in the order in which they came."""

    url: str
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def mutating(self) -> list[tuple[str, str]]:
        """Those that may change something: all but reads and logins."""
        return [each for each in self.requests if each[0] not in READS and not each[1].endswith(LOGIN)]

    @contextlib.contextmanager
    def quiet(self, what: str) -> Iterator[None]:
        """Fail if anything that may change something is asked for meanwhile."""
        before = len(self.mutating)
        yield
        sent = self.mutating[before:]
        assert sent == [], f"{what} changed something: {sent}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: WireLog
    pool: urllib3.PoolManager

    def pass_on(self) -> None:
        self.log.requests.append((self.command, self.path.partition("?")[0]))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        answer = self.pool.request(
            self.command, self.path, body=body, headers=sent, redirect=False, retries=False, decode_content=False
        )
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        if self.command == "HEAD" and "Content-Length" in answer.headers:
            self.send_header("Content-Length", answer.headers["Content-Length"])
        elif answer.status != 204:
            self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        self.wfile.write(answer.data)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = pass_on

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""


@contextlib.contextmanager
def wire_log() -> Iterator[WireLog]:
    """A proxy for processes that get its `url` as `http_proxy`."""
    pool = urllib3.PoolManager(maxsize=50)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        log = WireLog(f"http://127.0.0.1:{server.server_port}")
        server.RequestHandlerClass = type("Own", (Handler,), {"log": log, "pool": pool})
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="proxy")
        thread.start()
        try:
            yield log
        finally:
            server.shutdown()
            thread.join()
            pool.clear()
