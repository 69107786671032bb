"""Programs that are forked from a process which has loaded them: to load them takes seconds of CPU time.

`running` starts that process for a module with `load` and `main`, and gives a program that passes everything on to it:
arguments, environment, directory, standard streams; and ends with the code of `main`. Signals are not passed on.
"""

import contextlib
import ctypes
import importlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, Protocol, cast

PR_SET_PDEATHSIG = 1
STREAMS = (0, 1, 2)
LENGTH_BYTES = 8
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(there, [len(request).to_bytes({length}, "big")], {streams})
    there.sendall(request)
    code = there.recv(1)
os._exit(code[0] if code else 255)
"""


class Loaded(Protocol):
    """What a module offers that is run this way."""

    def load(self) -> None:
        """Load what the program needs. Start no thread: a fork would be without it."""

    def main(self, program: str, arguments: list[str]) -> str | int | None:
        """Run the program, as a process of its own; return what `sys.exit` takes."""


@contextlib.contextmanager
def running(module: str, name: str) -> Iterator[Path]:
    """Gives the path of the program, which has this name, and is alone in its directory."""
    root = Path(tempfile.mkdtemp(prefix=f"homeostat-{name}-"))
    address, program = root / "socket", root / "bin" / name
    program.parent.mkdir()
    program.write_text(
        PROGRAM.format(python=sys.executable, address=str(address), length=LENGTH_BYTES, streams=list(STREAMS))
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("HOMEOSTAT_", "OS_"))}
    try:
        with subprocess.Popen(
            [sys.executable, "-W", "default::DeprecationWarning", "-m", "tests.forked", module, str(address)],
            env={**inherited, "HOME": str(root)},
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=_end_with_the_tests,
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline(), f"{module} could not be loaded"
                yield program
            finally:
                process.kill()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _end_with_the_tests() -> None:
    """Not even killed tests leave a process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(module: str, address: str) -> NoReturn:
    loaded = cast(Loaded, importlib.import_module(module))
    loaded.load()
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would be without the other threads"
    signal.signal(signal.SIGCHLD, _collect_ended)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                try:
                    _run(loaded, connection)
                finally:
                    os._exit(1)
            connection.close()


def _collect_ended(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run(loaded: Loaded, connection: socket.socket) -> NoReturn:
    length, streams, *_ = socket.recv_fds(connection, LENGTH_BYTES, len(STREAMS))
    with connection.makefile("rb") as file:
        (program, *arguments), directory, environment = json.loads(file.read(int.from_bytes(length, "big")))
    for stream, number in zip(streams, STREAMS, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    connection.sendall(bytes([_code_of(loaded, program, arguments)]))
    os._exit(0)


def _code_of(loaded: Loaded, program: str, arguments: list[str]) -> int:
    sys.argv = [Path(program).name, *arguments]
    code: str | int | None
    try:
        code = loaded.main(program, arguments)
    except SystemExit as end:
        code = end.code
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code & 255 if isinstance(code, int) else int(bool(code))


if __name__ == "__main__":
    _serve(*sys.argv[1:])
