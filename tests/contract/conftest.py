"""A local cloud for each test that asks for one."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.clouds.local import LocalCloud


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Where the cloud keeps its things; whatever is left of it is destroyed."""
    path = tmp_path / "cloud"
    yield path
    LocalCloud(path).destroy()


@pytest.fixture
def cloud(root: Path) -> Iterator[LocalCloud]:
    with contextlib.closing(LocalCloud(root)) as cloud:
        yield cloud
