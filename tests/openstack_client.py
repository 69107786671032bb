"""The genuine `openstack` command, forked from a process that has loaded it: to load it takes two seconds of CPU time.

`running` starts that process, and gives a program that passes everything on to it: arguments, environment, directory,
standard streams; and ends with the command's code.
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
from typing import NoReturn

PR_SET_PDEATHSIG = 1
NAME = "openstack"
STREAMS = (0, 1, 2)
LENGTH_BYTES = 8
LOADED = ("openstackclient.shell", "heatclient.osc.plugin", "heatclient.v1.client", "homeostat.osc.plugin")
"""Modules besides those of the commands."""
GROUP = "openstack.orchestration.v1"
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(there, [len(request).to_bytes({length}, "big")], {streams})
    there.sendall(request)
    code = there.recv(1)
os._exit(code[0] if code else 255)
"""


@contextlib.contextmanager
def running() -> Iterator[Path]:
    """Gives the path of the program, which is called `openstack`, and alone in its directory."""
    root = Path(tempfile.mkdtemp(prefix="homeostat-openstack-"))
    address, program = root / "socket", root / "bin" / NAME
    program.parent.mkdir()
    program.write_text(
        PROGRAM.format(python=sys.executable, address=str(address), length=LENGTH_BYTES, streams=list(STREAMS))
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "tests.openstack_client", str(address)],
            env={**inherited, "HOME": str(root)},
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=_end_with_the_tests,
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline(), "the client could not be loaded"
                yield program
            finally:
                process.kill()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _end_with_the_tests() -> None:
    """Not even killed tests leave a process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(address: str) -> NoReturn:
    _load()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            _collect_ended()
            if os.fork() == 0:
                listening.close()
                try:
                    _run(connection)
                finally:
                    os._exit(1)
            connection.close()


def _collect_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load() -> None:
    """The commands of stacks too, and the list of all commands, which is read from the metadata of all packages."""
    sys.argv[0] = NAME  # from which the client takes its name once
    for name in LOADED:
        importlib.import_module(name)
    from stevedore import ExtensionManager

    ExtensionManager(GROUP)


def _run(connection: socket.socket) -> NoReturn:
    """One command, as a process of its own."""
    length, streams, *_ = socket.recv_fds(connection, LENGTH_BYTES, len(STREAMS))
    with connection.makefile("rb") as file:
        arguments, directory, environment = json.loads(file.read(int.from_bytes(length, "big")))
    for stream, number in zip(streams, STREAMS, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    connection.sendall(bytes([_code_of(arguments)]))
    os._exit(0)


def _code_of(arguments: list[str]) -> int:
    from openstackclient.shell import main

    sys.argv = [NAME, *arguments]
    code: str | int | None
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code & 255 if isinstance(code, int) else int(bool(code))


if __name__ == "__main__":
    _serve(sys.argv[1])
