"""A Keystone of the tests' own: on SQLite in a temporary directory, behind a small WSGI server, gone when they end.

Its database and keys are copies of what `prepared` has made once for the installation.
"""

import base64
import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

START_S = 120.0
PR_SET_PDEATHSIG = 1
PASSWORD = "secret"
REGION = "RegionOne"
KEYS = ("fernet", "receipts", "credential")
DATABASE = "keystone.sqlite"
WSGI = Path(__file__).parent / "identity" / "wsgi.py"


def find_environment() -> Path | None:
    """The virtual environment that `scripts/keystone` makes, beside that of the tests."""
    place = Path(os.environ.get("HOMEOSTAT_KEYSTONE") or Path(sys.prefix).parent / ".keystone")
    return place if (place / "bin" / "keystone-manage").exists() else None


class KeystoneServer:
    """url — with version; also after a restart. The administrator is `admin` of project `admin`, password PASSWORD."""

    def __init__(self, environment: Path, root: Path) -> None:
        self._environment = environment
        self._root = root
        self._running: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v3"

    def prepare(self, expiration_s: int) -> None:
        """Database, keys, administrator. expiration_s — how long tokens live."""
        shutil.copytree(prepared(self._environment), self._root, dirs_exist_ok=True)
        _write_config(self._root, expiration_s)
        with contextlib.closing(sqlite3.connect(self._root / DATABASE)) as database:
            database.execute("UPDATE endpoint SET url = ?", (self.url,))
            database.commit()

    def start(self) -> None:
        """Fails: RuntimeError with its log."""
        command = [str(self._environment / "bin" / "python"), str(WSGI), str(self._port)]
        with (self._root / "log").open("ab") as log:
            self._running = subprocess.Popen(
                command,
                env={**os.environ, "OS_KEYSTONE_CONFIG_DIR": str(self._root), "PYTHONPATH": ""},
                cwd=self._root,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests,
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Keystone did not start: {(self._root / 'log').read_text()[-4000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(self.url, timeout=10.0).is_success
        return False

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.wait()


def prepared(environment: Path) -> Path:
    """Directory with the database and keys of a new Keystone: made once, since it takes ten times as long as a copy."""
    place = environment / f"prepared-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}"
    with (environment / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=environment) as made:
                _prepare(environment, Path(made))
                shutil.copytree(made, place.with_suffix(".new"), dirs_exist_ok=True)
            place.with_suffix(".new").rename(place)
    return place


def _prepare(environment: Path, root: Path) -> None:
    for name in KEYS:
        directory = root / name
        directory.mkdir(mode=0o700)
        for number in "01":
            (directory / number).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    _write_config(root, 3600)
    _manage(environment, root, "db_sync")
    _manage(
        environment,
        root,
        "bootstrap",
        *("--bootstrap-password", PASSWORD),
        *("--bootstrap-public-url", "http://127.0.0.1:1/v3"),
        *("--bootstrap-region-id", REGION),
    )


def _manage(environment: Path, root: Path, *arguments: str) -> None:
    command = [str(environment / "bin" / "keystone-manage"), "--config-dir", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    if done.returncode != 0:
        raise RuntimeError(f"keystone-manage {arguments[0]} failed: {done.stderr}")


def _write_config(root: Path, expiration_s: int) -> None:
    """With a cache, as operators have one: without, each request sends the database more than forty statements."""
    (root / "keystone.conf").write_text(
        f"""
[database]
connection = sqlite:///{root}/{DATABASE}
sqlite_synchronous = false
[cache]
enabled = true
backend = dogpile.cache.memory
[token]
expiration = {expiration_s}
[fernet_tokens]
key_repository = {root}/fernet
[fernet_receipts]
key_repository = {root}/receipts
[credential]
key_repository = {root}/credential
[identity]
password_hash_rounds = 4
[oslo_messaging_notifications]
driver = noop
"""
    )


class Admin:
    """Asks Keystone as its administrator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=30.0)
        self._http.headers["x-auth-token"] = token(url, "admin", PASSWORD, "admin")

    def send(self, method: str, path: str, json: Any = None, **params: str) -> Any:
        """The body of the answer, None where there is none. Fails: AssertionError for an error."""
        answer = self._http.request(method, f"{self.url}/{path}", json=json, params=params)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    def named(self, kind: str, name: str, **params: str) -> dict[str, Any]:
        """The one thing of this name. kind — `users`, for one. Fails: LookupError."""
        found: list[dict[str, Any]] = self.send("GET", kind, name=name, **params)[kind]
        if not found:
            raise LookupError(f"{kind} has no {name}")
        return found[0]

    def project(self, name: str) -> str:
        """A new project; gives its id."""
        made = self.send("POST", "projects", {"project": {"name": name, "domain_id": "default"}})
        return str(made["project"]["id"])

    def user(self, name: str, project_id: str, *roles: str) -> str:
        """A new user whose password is its name, with these roles in the project; gives its id."""
        body = {"user": {"name": name, "password": name, "domain_id": "default"}}
        user_id = str(self.send("POST", "users", body)["user"]["id"])
        for role in roles:
            self.grant(user_id, project_id, role)
        return user_id

    def grant(self, user_id: str, project_id: str, role: str) -> None:
        self.send("PUT", self._grant(user_id, project_id, role))

    def withdraw(self, user_id: str, project_id: str, role: str) -> None:
        self.send("DELETE", self._grant(user_id, project_id, role))

    def _grant(self, user_id: str, project_id: str, role: str) -> str:
        return f"projects/{project_id}/users/{user_id}/roles/{self.named('roles', role)['id']}"

    def revoke(self, token: str) -> None:
        answer = self._http.delete(f"{self.url}/auth/tokens", headers={"x-subject-token": token})
        assert answer.status_code == 204, answer.text

    def close(self) -> None:
        self._http.close()


def token(url: str, user: str, password: str, project: str) -> str:
    """A new token of a user of the default domain."""
    who = {"user": {"name": user, "password": password, "domain": {"id": "default"}}}
    scope = {"project": {"name": project, "domain": {"id": "default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": who}, "scope": scope}}
    answer = httpx.post(f"{url}/auth/tokens", json=body, timeout=30.0)
    assert answer.status_code == 201, answer.text
    return answer.headers["x-subject-token"]


@contextlib.contextmanager
def running(environment: Path, expiration_s: int = 3600) -> Iterator[KeystoneServer]:
    """A server with nothing but its administrator."""
    root = Path(tempfile.mkdtemp(prefix="homeostat-keystone-"))
    server = KeystoneServer(environment, root)
    try:
        server.prepare(expiration_s)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


def _end_with_the_tests() -> None:
    """Not even killed tests leave a server behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
