"""No update takes something away that its user has not seen: `up` and `back` say what is lost, and ask."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, Home

TEMPLATE = """
heat_template_version: rocky
parameters:
  n: {type: number, default: 1}
  msg: {type: string, default: a}
  secret: {type: string, default: none, hidden: true}
resources:
  servers:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: n}
      resource_def:
        type: OS::Nova::Server
        properties: {image: local, flavor: m1.tiny, name: server-%index%, metadata: {msg: {get_param: msg}}}
"""


@pytest.fixture
def template(service: Home, tmp_path: Path) -> Iterator[Path]:
    """A template whose stack has four servers."""
    path = tmp_path / "web.yaml"
    path.write_text(TEMPLATE)
    made = service.run("up", str(path), "-P", "n=4", "-P", "secret=x")
    assert made.code == 0, made.err
    yield path
    assert service.run("down", "web", "-y").code == 0


def members(home: Home) -> int:
    shown = home.run("show", "web", "--json").json()
    return sum(each["resource_type"] == "OS::Nova::Server" for each in shown["resources"])


@pytest.mark.heavy
def test_parameters_that_are_not_named_take_nothing_away_unseen(service: Home, template: Path) -> None:
    refused = service.run("up", str(template), "-P", "msg=b")
    assert refused.code == 2
    for words in ("delete 3 of the resources of web", "n: 4 → 1, the default", "-y", "--existing", "- 3  Nova::Server"):
        assert words in refused.err
    assert "secret: ****** → ******" in refused.err
    assert members(service) == 4

    kept = service.run("up", str(template), "-P", "msg=b", "--existing")
    assert kept.code == 0, kept.err
    assert members(service) == 4

    allowed = service.run("up", str(template), "-P", "msg=c", "-y")
    assert allowed.code == 0, allowed.err
    assert "n: 4 → 1, the default" in allowed.err
    assert members(service) == 1


def test_what_loses_nothing_is_not_asked_about(service: Home, template: Path) -> None:
    grown = service.run("up", str(template), "-P", "n=5", "-P", "secret=x", "-P", "msg=b")
    assert (grown.code, grown.err) == (0, "")
    assert members(service) == 5


def test_a_plan_with_existing_values(service: Home, template: Path) -> None:
    assert "3 to delete" in service.run("plan", str(template), "-P", "msg=b").out
    assert "to delete" not in service.run("plan", str(template), "-P", "msg=b", "--existing").out


def test_going_back_asks_too(service: Home, template: Path) -> None:
    assert service.run("up", str(template), "-P", "n=5", "-P", "secret=x").code == 0
    refused = service.run("back", "web", "1")
    assert refused.code == 2
    assert "delete 1 of the resources of web" in refused.err
    assert service.run("back", "web", "1", "-y").code == 0
    assert members(service) == 4


def test_two_files_of_one_name_are_not_one_stack(service: Home, template: Path, tmp_path: Path) -> None:
    """`up prod/web.yaml`, then `up staging/web.yaml`: the second took away what the first had made."""
    other = tmp_path / "staging" / template.name
    other.parent.mkdir()
    other.write_text(TEMPLATE.replace("default: a", "default: b"))
    given = ("-P", "n=4", "-P", "secret=x")
    refused = service.run("up", str(other), *given)
    assert refused.code == 2
    for words in (
        f"was made from {template.resolve()}, not from {other.resolve()}",
        f"homeostat up {other} NAME",
        "-y",
    ):
        assert words in refused.err
    asked = at_a_terminal(service, ("up", str(other), *given), "n\n")
    assert (asked.code, "Update it?" in asked.err) == (1, True)
    assert service.run("show", "web", "--json").json()["stack"]["template_source"] == str(template.resolve())

    assert service.run("up", str(other), "web", *given).code == 0, "a user who names the stack means it"
    assert service.run("up", str(other), *given).code == 0, "its file is the other one from then on"
    assert service.run("up", str(template), *given, "-y").code == 0


@pytest.mark.heavy
@pytest.mark.parametrize(("answer", "left", "code"), [("n", 4, 1), ("", 4, 1), ("y", 1, 0)])
def test_a_person_is_asked(service: Home, template: Path, answer: str, left: int, code: int) -> None:
    ended = at_a_terminal(service, ("up", str(template), "-P", "msg=b"), f"{answer}\n")
    assert "This would delete 3 of the resources of web" in ended.err
    assert ended.code == code
    assert members(service) == left


def at_a_terminal(home: Home, arguments: tuple[str, ...], typed: str) -> Ended:
    """Run a command whose standard input is a terminal where a user types."""
    user, terminal = pty.openpty()
    try:
        command = subprocess.Popen(
            [sys.executable, "-m", "homeostat", *arguments],
            env=home.environment(),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(user, typed.encode())  # waits in the terminal until it is read
        out, err = command.communicate()
        return Ended(command.returncode, out, err)
    finally:
        os.close(terminal)
        os.close(user)
