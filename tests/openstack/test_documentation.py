"""The how-to and the tutorial about OpenStack are true: their commands are typed beside a real one."""

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
from tests.openstack.catalogue import unregister
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack


@pytest.fixture
def home(tmp_path: Path, project: Project) -> Iterator[Path]:
    """A directory with a clouds.yaml to type commands in; the service that they start is ended."""
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"work": {"auth": project.auth}}}))
    yield tmp_path
    service = State(tmp_path / "state").running()
    if service is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(service.pid, signal.SIGTERM)


TUTORIAL_S = 1800.0
"""For the whole tutorial, on a busy machine."""
HOW_TO, TUTORIAL = (DOCS / name for name in NEEDS_OPENSTACK)


def test_the_commands_of_the_how_to_print_what_it_says(home: Path, homeostat_program: Path) -> None:
    programs = os.pathsep.join(map(str, (homeostat_program.parent, Path(sys.executable).parent, os.environ["PATH"])))
    check_commands(HOW_TO, home, programs, {})


@pytest.fixture
def clone(home: Path, openstack_cloud: OpenStack) -> Iterator[Path]:
    """A directory that looks like a clone; what the page registers in Keystone is removed."""
    for name in (".venv", "examples", "scripts", "tests"):
        (home / name).symlink_to(DOCS.parent / name)
    unregister(openstack_cloud)
    yield home
    unregister(openstack_cloud)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.services("octavia")
@pytest.mark.timeout(TUTORIAL_S + 120)
def test_the_commands_of_the_tutorial_print_what_it_says(clone: Path, openstack_cloud: OpenStack) -> None:
    check_commands(
        TUTORIAL, clone, os.environ["PATH"], {"HOMEOSTAT_OPENSTACK": str(openstack_cloud.directory)}, TUTORIAL_S
    )
