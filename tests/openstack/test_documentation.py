"""The how-to about OpenStack is true: its commands are typed beside a real one."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from homeostat.cli.state_directory import State
from tests.docs.pages import DOCS, NEEDS_OPENSTACK
from tests.docs.typing_commands import check_commands
from tests.openstack.projects import Project


@pytest.fixture
def home(tmp_path: Path, project: Project) -> Iterator[Path]:
    """A directory with a clouds.yaml to type commands in; the service that they start is ended."""
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"work": {"auth": project.auth}}}))
    yield tmp_path
    service = State(tmp_path / "state").running()
    if service is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(service.pid, signal.SIGTERM)


def test_the_commands_of_the_how_to_print_what_it_says(home: Path, homeostat_program: Path) -> None:
    programs = os.pathsep.join(map(str, (homeostat_program.parent, Path(sys.executable).parent, os.environ["PATH"])))
    check_commands(DOCS / "howto" / NEEDS_OPENSTACK, home, programs, {})
