"""The adapter as tests use it: with the login of a project's user."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from homeostat.clouds.openstack import OpenStack, OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.port import Answer, Cloud, Creation, Operation
from homeostat.model.observed import Observation
from tests.openstack.projects import Project
from tests.waiting import until

REST_S = 0.3
"""Between two looks: the services are real, and busy."""


def rest(seconds: float) -> None:
    time.sleep(max(seconds, REST_S))


def clouds_yaml(project: Project, folder: Path, auth: Mapping[str, str] | None = None) -> Path:
    """Write a clouds.yaml with the entry `own`, the login of the project's user or another, and return its path."""
    path = folder / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"own": {"auth": dict(auth or project.auth), "region_name": "RegionOne"}}}))
    return path


@contextlib.contextmanager
def adapter(
    project: Project, folder: Path, auth: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[OpenStack]:
    """auth — another login than that of the user. settings — of `OpenStackConfig`, where they are unusual."""
    config = OpenStackConfig(cloud="own", **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds_yaml(project, folder, auth)))
        with contextlib.closing(OpenStack(config, Connections(config))) as opened:
            yield opened


class Recording:
    """A cloud that knows what was made with it, to remove it all."""

    def __init__(self, cloud: Cloud, kinds: frozenset[str]) -> None:
        self._cloud = cloud
        self.kinds = kinds
        self._made: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        answers = self._cloud.create(kind, intents)
        self._made += [(kind, each.handle) for each in answers if isinstance(each, Observation) and each.present]
        return answers

    def clear(self) -> None:
        """Remove everything, the youngest first; what is still in use is asked for again."""
        until(self._is_clear, "what a test made to be gone", rest)

    def _is_clear(self) -> bool:
        left = []
        for kind, handle in reversed(self._made):
            (seen,) = self._cloud.observe(kind, [handle])
            if seen.present:
                if seen.properties.get("locked"):
                    self._cloud.operate(kind, [Operation(handle, "unlock")])
                self._cloud.delete(kind, [handle])
                left.append((kind, handle))
        self._made = left[::-1]
        return not left
