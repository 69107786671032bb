"""Another user of this machine, who has no business here."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

STRANGER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
# The interpreter may be where the other user cannot look: what is needed is loaded before it changes hands.
_BECOME = f"""
import encodings.idna, http.client, os, socket, sys
os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})
"""
_ASK = """
host, port, method, path, body = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port), timeout=120)
connection.request(method, path, body or None, {"Content-Type": "application/json"} if body else {})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""
_CONNECT = """
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.read()
"""


def code_of(script: str) -> list[str]:
    """Command that runs this as the stranger."""
    return [sys.executable, "-I", "-c", _BECOME + textwrap.dedent(script)]


def ask_as_stranger(url: str, method: str, path: str, body: str = "") -> tuple[int, str]:
    """Status and text of the answer. url — http://HOST:PORT."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    done = subprocess.run([*code_of(_ASK), host, port, method, path, body], capture_output=True, text=True, check=True)
    status, _, text = done.stdout.partition(" ")
    return int(status), text


def read_as_stranger(path: str) -> str:
    """What comes of trying to read the file: its text, or the name of the error."""
    script = """
    try:
        print(open(sys.argv[1], "rb").read())
    except OSError as error:
        print(type(error).__name__, end="")
    """
    return subprocess.run([*code_of(script), path], capture_output=True, text=True, check=True).stdout


@contextmanager
def connected_stranger(host: str, port: int) -> Iterator[None]:
    """Has a connection there meanwhile."""
    with subprocess.Popen(
        [*code_of(_CONNECT), host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
        yield
        process.communicate("")
