"""A Redis server of the tests' own: on a Unix socket in a temporary directory, gone when they end."""

import contextlib
import ctypes
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

START_S = 30.0
PR_SET_PDEATHSIG = 1


def find_program() -> Path | None:
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


class RedisServer:
    """Keeps nothing on disk: who restarts it has an empty one. url — also after a restart."""

    def __init__(self, program: Path, root: Path) -> None:
        self._program = program
        self._root = root
        self._running: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{root}/redis.socket"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        """Fails: RuntimeError with its log."""
        places = ["--port", "0", "--unixsocket", f"{self._root}/redis.socket", "--dir", str(self._root)]
        with (self._root / "log").open("ab") as log:
            self._running = subprocess.Popen(
                [self._program, *places, "--save", "", "--appendonly", "no"],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests,
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Redis did not start: {(self._root / 'log').read_text()}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(self.client.ping())
        return False

    def kill(self) -> None:
        """kill -9."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def freeze(self) -> None:
        """It takes connections and says nothing."""
        if self._running is not None:
            self._running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def running(program: Path) -> Iterator[RedisServer]:
    root = Path(tempfile.mkdtemp(prefix="homeostat-redis-"))
    server = RedisServer(program, root)
    try:
        server.start()
        yield server
    finally:
        server.client.close()
        server.kill()
        shutil.rmtree(root, ignore_errors=True)


def _end_with_the_tests() -> None:
    """Not even killed tests leave a server behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
