"""A browser of the tests' own: Chromium without a screen, controlled through its driver (W3C WebDriver), and gone when
they end. And a server of pages for it to visit."""

import base64
import contextlib
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.real.processes import end_with_the_tests
from tests.waiting import PATIENCE_S

DRIVERS_MAX = 10
"""How often a driver is started, until one has a port."""
EVIL = "evil.example"
"""A name that is this machine's to the browser, as a name server may say of any name."""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-features=BackForwardCache",  # a page that was left would keep its connections, of which there are few
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",  # which ends the browser when its driver is gone
    f"--host-resolver-rules=MAP {EVIL} 127.0.0.1",
)


class Browser:
    """A session of the driver. Takes: driver — its address; profile — directory that it makes for itself."""

    def __init__(self, driver: str, profile: Path) -> None:
        self._http = httpx.Client(timeout=PATIENCE_S)
        self._session = f"{driver}/session"
        milliseconds = int(PATIENCE_S * 1000)
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": shutil.which("chromium"),
                "args": [*FLAGS, f"--user-data-dir={profile}"],
            },
            "timeouts": {"script": milliseconds, "pageLoad": milliseconds},
        }
        session = self._send("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._session += f"/{session['sessionId']}"

    def visit(self, address: str) -> None:
        """Open the address as if a user had typed it in, and wait for the page."""
        self._send("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What the page does: the body of an asynchronous function, whose end is waited for; gives its value.

        Fails: AssertionError when it throws something.
        """
        body = f"return (async (...arguments) => {{{script}}})(...arguments)"
        return self._send("POST", "/execute/sync", {"script": body, "args": arguments})

    def click(self, selector: str) -> None:
        """With the mouse, as a person does. selector — of CSS, or an XPath that begins with `//`."""
        self._send("POST", f"/element/{self._element(selector)}/click", {})

    def write(self, selector: str, text: str) -> None:
        """Into a field, or choose the file of this path in a field for files."""
        self._send("POST", f"/element/{self._element(selector)}/value", {"text": text})

    def has(self, selector: str) -> bool:
        """Whether the page has such an element."""
        return bool(self._send("POST", "/elements", _located(selector)))

    def press(self, *keys: str) -> None:
        """On the keyboard, one key after the other; W3C WebDriver has code points for those that write nothing."""
        actions = [{"type": verb, "value": key} for key in keys for verb in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def forget(self) -> None:
        """All cookies of the site that is open."""
        self._send("DELETE", "/cookie")

    def resize(self, width: int, height: int) -> None:
        self._send("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self._send("GET", "/screenshot"))

    def troubles(self) -> list[str]:
        """What the browser has complained about since it was asked last: scripts, rules, what was not found."""
        return [each["message"] for each in self._send("POST", "/se/log", {"type": "browser"})]

    @property
    def address(self) -> str:
        return str(self._send("GET", "/url"))

    def close(self) -> None:
        self._send("DELETE", "")
        self._http.close()

    def _element(self, selector: str) -> str:
        (element,) = self._send("POST", "/element", _located(selector)).values()
        return str(element)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, f"{self._session}{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()["value"]


def _located(selector: str) -> dict[str, str]:
    return {"using": "xpath" if selector.startswith("//") else "css selector", "value": selector}


def is_installed() -> bool:
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


@contextlib.contextmanager
def browsing(directory: Path) -> Iterator[Browser]:
    """A browser with its profile and log in this directory."""
    with _driver(directory) as driver, contextlib.closing(Browser(driver, directory / "profile")) as browser:
        yield browser


@contextlib.contextmanager
def _driver(directory: Path) -> Iterator[str]:
    """The address of a chromedriver. It ends at once where the port that it got for IPv6 is not free for IPv4."""
    for number in range(DRIVERS_MAX):
        with subprocess.Popen(
            ["chromedriver", "--port=0", f"--log-path={directory / f'log-{number}'}"],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_the_tests,
        ) as process:
            assert process.stdout is not None
            line = next((line for line in process.stdout if "started successfully on port" in line), None)
            if line is None:
                continue
            try:
                yield f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
            finally:
                process.send_signal(signal.SIGTERM)
            return
    raise AssertionError(f"chromedriver did not start {DRIVERS_MAX} times, see {directory}")


class _Page(BaseHTTPRequestHandler):
    """Always empty."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a page of others</title>")

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


@contextlib.contextmanager
def pages() -> Iterator[int]:
    """A server of an empty page, which a test makes do something. Gives its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
