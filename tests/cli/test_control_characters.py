"""What users and clouds have named cannot control the terminal of who looks at it."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Home

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
"""Asks a terminal to write its clipboard."""
HOSTILE = f"{CLIPBOARD}\x9b2J\r\u202eevil[/bold]"
ESCAPED = r"\x1b]52;c;cm0gLXJmIH4="
NAME = "hostile"
TEMPLATE = {
    "heat_template_version": "rocky",
    "description": HOSTILE,
    "parameters": {"word": {"type": "string", "default": HOSTILE, "description": HOSTILE}},
    "resources": {
        "text": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}},
        "bad": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"get_attr": ["text", "value"]}, "fail": True},
            "metadata": {"word": HOSTILE},
        },
        "server": {
            "type": "OS::Nova::Server",
            "properties": {"image": "local", "flavor": "m1.tiny", "metadata": {"word": HOSTILE}},
        },
    },
    "outputs": {"word": {"description": HOSTILE, "value": {"get_param": "word"}}},
}
COMMANDS = {
    "list": ("list",),
    "show": ("show", NAME),
    "output": ("show", NAME, "--output", "word"),
    "events": ("events", NAME),
    "explain": ("explain", NAME),
    "resource": ("explain", NAME, "bad"),
    "health": ("health", "status", NAME),
    "graph": ("graph", NAME),
    "observe": ("observe", NAME),
    "convergence": ("convergence", NAME),
    "rollout": ("rollout", "status", NAME),
    "history": ("history", NAME),
    "revision": ("history", NAME, "1"),
    "difference": ("history", NAME, "1", "2"),
    "error": ("show", HOSTILE),
}


@pytest.fixture(scope="module")
def hostile(service: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A service with a stack whose every text is hostile, and of which one resource has failed."""
    template = tmp_path_factory.mktemp("hostile") / "hostile.json"
    template.write_text(json.dumps(TEMPLATE))
    service.run("up", str(template), NAME)
    template.write_text(json.dumps(TEMPLATE | {"description": f"{HOSTILE} again"}))
    service.run("up", str(template), NAME)
    service.run("lock", NAME, "--reason", HOSTILE)
    return service


def on_a_terminal(home: Home, arguments: tuple[str, ...]) -> str:
    reader, writer = pty.openpty()
    read: list[bytes] = []

    def drain() -> None:
        while True:
            try:
                read.append(os.read(reader, 65536))
            except OSError:  # no writer is left
                return

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        command = [sys.executable, "-m", "homeostat", *arguments]
        environment = {**home.environment(), "TERM": "xterm-256color"}
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, env=environment, check=False)
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)
    return b"".join(read).decode()


def in_a_pipe(home: Home, arguments: tuple[str, ...]) -> str:
    ended = home.run(*arguments)
    return ended.out + ended.err


@pytest.mark.heavy
@pytest.mark.parametrize("look", [on_a_terminal, in_a_pipe], ids=["terminal", "pipe"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_control_characters_of_users(
    hostile: Home, command: str, look: Callable[[Home, tuple[str, ...]], str]
) -> None:
    output = look(hostile, COMMANDS[command])
    assert "Traceback" not in output
    assert output.strip()
    for character in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert character not in output


def test_what_is_hostile_is_shown_escaped(hostile: Home) -> None:
    """So the test above looks at commands that do show it."""
    for command in ("show", "output"):
        assert ESCAPED in in_a_pipe(hostile, COMMANDS[command]), command


def test_no_log_line_is_of_a_users_making(hostile: Home) -> None:
    log = Path(hostile.state.log).read_text()
    assert "\x1b" not in log
