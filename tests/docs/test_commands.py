"""The commands that pages show exist, with the options that are shown: the parsers of both programs accept them."""

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cliff.commandmanager import CommandManager

from homeostat.main import parser
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = [*sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "adr"), ROOT / "README.md"]
GROUPS = (
    "openstack.cli",
    "openstack.common",
    "openstack.orchestration.v1",
    "openstack.convergence.v1",
    "openstack.compute.v2",
    "openstack.identity.v3",
    "openstack.image.v2",
    "openstack.network.v2",
    "openstack.volume.v3",
)
"""Entry points that have commands."""
ELSEWHERE = ("cluster", "loadbalancer", "--os-cloud")
"""What other packages bring, and options of the client itself."""
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:homeostat|openstack) [^`]+)`")
_END = re.compile(r"\s(?:\||\|\||&&|&|;|>|>>|<|2>|#)\s.*|\)[\s;\"].*")
"""What ends a command in a line of a shell."""


def typed(text: str) -> Iterator[str]:
    """Commands of both programs in the blocks of a page that are for a shell."""
    for _, kind, block in _BLOCK.findall(text):
        if kind in ("sh", "console"):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                line = line.strip().removeprefix("$ ") if kind == "sh" or line.startswith("$ ") else ""
                parts = re.split(r"&& |\$\(|; |\bdo |\bwhile ", line)
                yield from (part for part in parts if part.startswith(("homeostat ", "openstack ")))


def named(text: str) -> Iterator[str]:
    """Those in its sentences and tables, which may leave out arguments."""
    for found in _INLINE.findall(re.sub(_BLOCK, "", text)):
        yield " ".join(found.split())


def words(command: str) -> list[str] | None:
    """Its arguments; None where it is only the beginning of one (`openstack stack …`), or several (`a|b`)."""
    whole = re.sub(r"\[(?:-[^]]*|[A-Z]+)\]", "", _END.sub("", f"{command} ").strip())
    if "…" in whole or "*" in whole or "COMMAND" in whole or re.search(r"\w\|\w", whole):
        return None
    return shlex.split(whole)[1:]


@cache
def openstack() -> CommandManager:
    found = CommandManager(GROUPS[0])
    for group in GROUPS[1:]:
        found.add_command_group(group)
    return found


@cache
def openstack_parser(command: Any, name: str) -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = command(None, None).get_parser(name)
    return found


@cache
def homeostat() -> argparse.ArgumentParser:
    return parser()


def refusal(command: str) -> str:
    """Why a parser refuses it; nothing if it does not."""
    arguments = words(command.replace("openstack help ", "openstack "))
    if arguments is None or not arguments or command.startswith(tuple(f"openstack {each}" for each in ELSEWHERE)):
        return ""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            if command.startswith("homeostat "):
                homeostat().parse_args(arguments)
            else:
                factory, name, rest = openstack().find_command(arguments)
                openstack_parser(factory, name).parse_args(rest)
        except SystemExit as end:
            return said.getvalue().strip().splitlines()[-1] if end.code else ""
        except ValueError as unknown:
            return str(unknown)
    return ""


def wrong(page: str) -> dict[str, str]:
    """Commands of a page that are refused, and why."""
    every = {command: refusal(command) for command in (*typed(page), *named(page))}
    written_out = set(typed(page))
    return {
        command: why
        for command, why in every.items()
        if why and (command in written_out or "arguments are required" not in why)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    assert wrong(page.read_text("utf-8")) == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    page = """
Say `homeostat upp x`, or `openstack stack explain`.

```console
$ openstack stack create --no-such -t a.yaml a | head
homeostat no
$ homeostat up a.yaml && homeostat show
$ openstack stack create --wait -t a.yaml a -f value -c id > id
```
"""
    assert list(wrong(page)) == [
        "openstack stack create --no-such -t a.yaml a | head",
        "homeostat show",
        "homeostat upp x",
    ]
