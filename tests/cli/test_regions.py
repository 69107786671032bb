"""Services that make stacks in one another: real processes, found by the settings that an operator gives."""

import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Home, home_below
from tests.waiting import until

TEXT = """
heat_template_version: wallaby
resources:
  r:
    type: OS::Heat::Stack
    properties:
      CONTEXT
      template: {get_file: inner.yaml}
outputs:
  word: {value: {get_attr: [r, outputs, word]}}
"""
INNER = """
heat_template_version: wallaby
resources: {a: {type: OS::Heat::TestResource, properties: {value: WORD}}}
outputs: {word: {value: {get_attr: [a, output]}}}
"""


def template(directory: Path, word: str, region: str = "") -> str:
    context = f"context: {{region_name: {region}}}" if region else ""
    (directory / "outer.yaml").write_text(TEXT.replace("CONTEXT", context))
    (directory / "inner.yaml").write_text(INNER.replace("WORD", word))
    return str(directory / "outer.yaml")


def inner(home: Home) -> list[str]:
    return [each["stack_name"] for each in home.run("list", "--json").json() if each["stack_name"] != "s"]


@pytest.mark.heavy
def test_a_service_knows_its_own_address(home: Home, tmp_path: Path) -> None:
    created = home.run("up", template(tmp_path, "one"), "s")
    assert created.code == 0, created.err
    assert home.run("show", "s", "--output", "word").out.strip() == "one"
    assert len(inner(home)) == 1
    assert home.run("down", "s", "-y").code == 0
    assert inner(home) == []


@pytest.mark.heavy
def test_a_stack_in_another_service_that_is_killed_and_started_again(
    home: Home, homeostat_program: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with home_below(tmp_path_factory.mktemp("east"), homeostat_program) as east:
        assert east.run("serve", "--detach", "--port", "0").code == 0
        far = east.running()
        assert home.run("serve", "--detach", "--port", "0", "--region", f"east={far.url}").code == 0
        created = home.run("up", template(tmp_path, "one", "east"), "s")
        assert created.code == 0, created.err
        assert len(inner(east)) == 1

        os.kill(far.pid, signal.SIGKILL)
        until(lambda: east.state.running() is None)
        assert home.run("up", template(tmp_path, "two", "east"), "s", "--no-wait").code == 0
        until(lambda: "east does not answer" in home.run("explain", "s").out)
        assert east.run("serve", "--detach", "--port", far.url.rpartition(":")[2]).code == 0
        until(lambda: home.run("show", "s", "--output", "word").out.strip() == "two")
        assert len(inner(east)) == 1
        assert home.run("down", "s", "-y").code == 0
        assert inner(east) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--region", "east"], "--region east: write NAME=URL"),
        (["--region-logins", "/no/such/file"], "--region-logins /no/such/file: there is no such file"),
    ],
)
def test_settings_that_do_not_fit(home: Home, arguments: list[str], message: str) -> None:
    refused = home.run("worker", *arguments)
    assert refused.code == 2
    assert message in refused.err
