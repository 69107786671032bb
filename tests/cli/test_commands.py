"""The client commands, run as processes against a real service on the simulated cloud."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, Home
from tests.cli.templates import FAILING, QUICK, STUCK
from tests.waiting import until

Template = Callable[[str], str]


@pytest.fixture
def template(tmp_path: Path) -> Template:
    """Writes a template and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return str(path)

    return write


def ok(ended: Ended) -> Ended:
    assert ended.code == 0, f"{ended.out}\n{ended.err}"
    return ended


@pytest.mark.heavy
def test_the_life_of_a_stack_in_words(service: Home, template: Template) -> None:
    path = template(QUICK)
    created = ok(service.run("up", path, "plain"))
    assert "CREATE_COMPLETE       plain" in created.out
    assert "first" in created.out.rpartition("CREATE_COMPLETE")[2], "the outputs come last"

    updated = ok(service.run("up", path, "plain", "-P", "word=second"))
    assert "UPDATE_COMPLETE       plain" in updated.out
    assert "CREATE_COMPLETE" not in updated.out, "only what this update did is told"
    assert "second" in updated.out

    assert "plain" in ok(service.run("list")).out
    shown = ok(service.run("show", "plain")).out
    for word in ("UPDATE_COMPLETE", "OS::Nova::Server", "second", "What was asked for"):
        assert word in shown
    assert ok(service.run("show", "plain", "--output", "word")).out == "second\n"
    assert "it has: word" in service.run("show", "plain", "--output", "nothing").err
    output = ok(service.run("events", "plain")).out
    assert output.index("CREATE_COMPLETE       plain") < output.index("UPDATE_COMPLETE       plain")
    assert "0 of 2 resources are not at rest" in ok(service.run("explain", "plain")).out

    gone = ok(service.run("down", "plain", "-y"))
    assert "plain is deleted" in gone.out
    assert "plain" not in ok(service.run("list")).out


def test_the_life_of_a_stack_in_json(service: Home, template: Template) -> None:
    path = template(QUICK)
    created = ok(service.run("up", path, "machine", "--json")).json()
    assert created["stack"]["stack_status"] == "CREATE_COMPLETE"
    assert {each["resource_name"] for each in created["resources"]} == {"text", "server"}
    assert [each["output_value"] for each in created["stack"]["outputs"]] == ["first"]

    accepted = ok(service.run("up", path, "machine", "-P", "word=second", "--no-wait", "--json")).json()
    assert accepted["stack"]["stack_name"] == "machine"
    followed = ok(service.run("watch", "machine", "--until-complete", "--json")).out.splitlines()
    assert json.loads(followed[-1])["stack"]["stack_status"] == "UPDATE_COMPLETE"

    assert "machine" in [each["stack_name"] for each in ok(service.run("list", "--json")).json()]
    assert ok(service.run("show", "machine", "--json")).json()["stack"]["parameters"]["word"] == "second"
    events = ok(service.run("events", "machine", "--json")).json()
    assert [each["event_time"] for each in events] == sorted(each["event_time"] for each in events)
    assert ok(service.run("explain", "machine", "--json")).json()["explanation"]["resources"] == []
    one = ok(service.run("explain", "machine", "server", "--json")).json()["explanation"]
    assert one["at_rest"]

    gone = ok(service.run("down", "machine", "-y", "--json")).json()
    assert gone["stack"]["stack_status"] == "DELETE_COMPLETE"


def test_a_failure_names_resource_reason_and_remedy(service: Home, template: Template) -> None:
    failed = service.run("up", template(FAILING), "failing")
    assert failed.code == 1
    assert "failing is CREATE_FAILED" in failed.err
    assert "bad (OS::Heat::TestResource) CREATE failed: " in failed.err
    assert "homeostat explain failing" in failed.err

    explained = ok(service.run("explain", "failing")).out
    assert "it failed: " in explained
    assert "an update of the stack that changes or replaces it" in explained
    assert service.run("watch", "failing", "--until-complete").code == 1
    ok(service.run("down", "failing", "-y"))


def test_explain_shows_what_is_waited_for(service: Home, template: Template) -> None:
    ok(service.run("up", template(STUCK), "stuck", "--no-wait"))
    until(lambda: "slow: it is under way" in service.run("explain", "stuck", "after").out)
    output = ok(service.run("explain", "stuck")).out
    assert "stuck is CREATE_IN_PROGRESS: 2 of 2 resources are not at rest" in output
    assert output.splitlines()[-1].startswith("└ after")
    slow, after = ok(service.run("explain", "stuck", "--json")).json()["explanation"]["resources"]
    assert (slow["resource_name"], slow["resource_status"], slow["why"]) == ("slow", "CREATE_IN_PROGRESS", "building")
    assert slow["since"] is not None
    assert (after["resource_name"], after["waits_for"]) == ("after", ["slow"])

    missing = service.run("explain", "stuck", "nobody")
    assert missing.code == 1
    assert "it has: after, slow" in missing.err
    ok(service.run("down", "stuck", "-y"))


def test_events_go_on_as_they_happen(service: Home, template: Template) -> None:
    path = template(QUICK)
    ok(service.run("up", path, "followed"))
    with service.start("events", "followed", "-f", "--json") as following:
        assert following.stdout is not None
        try:
            while json.loads(following.stdout.readline())["resource_status"] != "CREATE_COMPLETE":
                pass
            ok(service.run("up", path, "followed", "-P", "word=second"))
            while json.loads(following.stdout.readline())["resource_status"] != "UPDATE_COMPLETE":
                pass
        finally:
            following.terminate()
    ok(service.run("down", "followed", "-y"))


def test_a_terminal_gets_a_picture(service: Home, template: Template) -> None:
    reader, writer = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-m", "homeostat", "up", template(QUICK), "drawn"],
        env={**service.environment(), "TERM": "xterm-256color"},
        stdin=writer,
        stdout=writer,
        stderr=writer,
    )
    os.close(writer)
    drawn = b""
    while True:
        try:
            drawn += os.read(reader, 65536)
        except OSError:  # what a terminal says when nobody writes to it any more
            break
    os.close(reader)
    assert command.wait() == 0
    text = drawn.decode()
    for word in ("CREATE_COMPLETE", "✓", "2/2", "server"):
        assert word in text
    ok(service.run("down", "drawn", "-y"))


MISTAKES = [
    ("broken YAML", "heat_template_version: [", 1, "template.yaml: "),
    ("an unknown type", "heat_template_version: rocky\nresources: {a: {type: OS::No::Such}}", 1, "OS::No::Such"),
    (
        "a ring of dependencies",
        "heat_template_version: rocky\nresources:\n"
        "  a: {type: OS::Heat::None, depends_on: b}\n  b: {type: OS::Heat::None, depends_on: a}",
        1,
        "Circular",
    ),
    ("a file that is not there", "heat_template_version: rocky\nx: {get_file: gone.txt}", 2, "gone.txt"),
]


@pytest.mark.parametrize(("reason", "text", "code", "words"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_mistakes_in_templates(
    service: Home, template: Template, reason: str, text: str, code: int, words: str
) -> None:
    refused = service.run("up", template(text), "mistake")
    assert (refused.code, refused.out) == (code, "")
    assert words in refused.err
    as_json = service.run("up", template(text), "mistake", "--json")
    assert as_json.code == code
    assert words in as_json.json()["error"]["message"]


USAGE = [
    ("an unknown stack", ["show", "nobody"], 1, "nobody"),
    ("a template that is not there", ["up", "gone.yaml"], 2, "gone.yaml"),
    ("no command", [], 2, "COMMAND"),
    ("an unknown flag", ["list", "--nonsense"], 2, "--nonsense"),
]


@pytest.mark.parametrize(("reason", "arguments", "code", "words"), USAGE, ids=[case[0] for case in USAGE])
def test_mistakes_in_commands(service: Home, reason: str, arguments: list[str], code: int, words: str) -> None:
    refused = service.run(*arguments)
    assert refused.code == code
    assert words in refused.err


def test_deleting_without_a_terminal_needs_a_yes(service: Home, template: Template) -> None:
    ok(service.run("up", template(QUICK), "kept"))
    refused = service.run("down", "kept")
    assert refused.code == 2
    assert "-y" in refused.err
    assert "kept" in ok(service.run("list")).out
    ok(service.run("down", "kept", "-y"))


@pytest.mark.parametrize(
    "command", [["up"], ["watch"], ["list"], ["show"], ["events"], ["explain"], ["down"], ["serve"]]
)
def test_every_command_has_help_with_an_example(service: Home, command: list[str]) -> None:
    helped = ok(service.run(*command, "--help")).out
    assert "example:" in helped
    assert f"homeostat {command[0]}" in helped


def test_projects_do_not_see_one_another(service: Home, template: Template) -> None:
    ok(service.run("up", template(QUICK), "mine", "--project", "one"))
    assert service.run("show", "mine", "--project", "two").code == 1
    ok(service.run("down", "mine", "-y", "--project", "one"))
