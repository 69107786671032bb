"""Typing the commands of a page into a shell, as a reader does."""

import os
import re
import socket
import subprocess
from pathlib import Path

from tests.docs.pages import Command, commands, files

MARK = "=== end of command"
SESSION_S = 600


def check_commands(page: Path, home: Path, programs: str, more: dict[str, str], session_s: float = SESSION_S) -> None:
    """They succeed, and print what the page says.

    home — directory to type them in; programs — where the shell looks for programs; more — further variables;
    session_s — within which all of them end.
    """
    for command, printed, code in typed(page, home, programs, more, session_s):
        assert code == 0, f"$ {command.text}\n{printed}"
        expected = "\n".join(command.expected)
        assert command.explains(printed), f"$ {command.text}\n--- expected\n{expected}\n--- printed\n{printed}"


def environment(home: Path, port: int, programs: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
    state = {"HOMEOSTAT_STATE_DIR": str(home / "state"), "HOMEOSTAT_PORT": str(port), "COLUMNS": "160"}
    return {**environment, **state, "PATH": programs}


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def typed(
    page: Path, home: Path, programs: str, more: dict[str, str], session_s: float = SESSION_S
) -> list[tuple[Command, str, int]]:
    """Type the page's commands into one shell; gives each with what it printed and its exit code."""
    port = free_port()
    wanted = commands(page)
    for name, content in files(page).items():
        (home / name).write_text(content, encoding="utf-8")
    script = "".join(f"{each.text}\nprintf '\\n%s %d\\n' '{MARK}' $?\n" for each in wanted).replace("8004", str(port))
    done = subprocess.run(
        ["bash", "-c", script],
        stdin=subprocess.DEVNULL,  # none of the commands may read those that follow
        cwd=home,
        env={**environment(home, port, programs), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=session_s,
    )
    printed = re.findall(rf"(.*?)\n{MARK} (\d+)\n", done.stdout.replace(str(port), "8004"), re.DOTALL)
    assert len(printed) == len(wanted), done.stdout
    return [(each, text, int(code)) for each, (text, code) in zip(wanted, printed, strict=True)]
