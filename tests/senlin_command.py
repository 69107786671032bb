"""The genuine `openstack cluster …`, in the virtual environment that `scripts/senlinclient` makes."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

LINES = Path(__file__).parent / "wire" / "clustering" / "openstack_lines.py"
GROUP = "openstack.clustering.v1"
ACTION = re.compile(r"action:? ([0-9a-f]{8}-[0-9a-f-]{27})")


def find_environment() -> Path:
    """The virtual environment. Without it tests are skipped; in CI they fail."""
    place = Path(os.environ.get("HOMEOSTAT_SENLINCLIENT") or Path(sys.prefix).parent / ".senlinclient")
    if (place / "bin" / "openstack").exists():
        return place
    message = "python-senlinclient is not installed: run scripts/senlinclient"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def commands(environment: Path) -> set[str]:
    """All commands that python-senlinclient has, such as `cluster node list`."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    (client,) = distributions(name="python-senlinclient", path=[str(packages)])
    return {each.name.replace("_", " ") for each in client.entry_points.select(group=GROUP)}


@dataclass(frozen=True, slots=True)
class SenlinCommand:
    """Runs commands. directory — for their files; environ — how they log in."""

    process: "subprocess.Popen[str]"
    directory: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, code: int = 0) -> str:
        """What the command prints. It must end with this code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"words": words, "environ": dict(self.environ), "directory": str(self.directory)}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert answer["code"] == code, answer["err"] + answer["out"]
        return str(answer["out"] + (answer["err"] if code else ""))

    def shown(self, *words: str) -> Any:
        """What it prints as JSON, after lines such as which action has begun."""
        out = self(*words, "-f", "json")
        return json.loads(out[min(place for place in (out.find("{"), out.find("[")) if place >= 0) :])

    def begun(self, *words: str) -> str:
        """The id of the action that the command says it has begun."""
        out = self(*words)
        found = ACTION.search(out)
        assert found is not None, out
        return found[1]

    def text(self, name: str, content: str) -> str:
        """Path of a file with this content."""
        path = self.directory / name
        path.write_text(content)
        return str(path)


@contextlib.contextmanager
def running(environment: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """The command, ready for `SenlinCommand`."""
    # Through its own name: what it knows of its packages follows from where its interpreter is.
    command = [str(environment / "bin" / "python"), str(LINES), *options]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=inherited) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
