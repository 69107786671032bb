"""The contract of all clouds, on a real OpenStack: the same tests as in tests/contract, with the same things."""

from collections.abc import Iterator
from typing import cast

import pytest

from homeostat.clouds.openstack import OpenStack
from homeostat.clouds.port import Cloud
from tests.contract import test_clouds
from tests.contract.test_clouds import CASES, Subject
from tests.openstack.adapter import Recording, adapter, rest
from tests.openstack.projects import Project

globals().update({name: each for name, each in vars(test_clouds).items() if name.startswith("test_")})

KINDS = frozenset({"network", "subnet", "port", "router", "server_group"})
"""Kinds whose things do at once what the tests ask for.

Those of the others refuse what comes right after something else, or need more than the tests give them: `lives` asks
them for the same, with patience.
"""
BY_ID = frozenset({"image", "flavor"})


@pytest.fixture(scope="module")
def openstack(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStack]:
    with adapter(project, tmp_path_factory.mktemp("login")) as opened:
        yield opened


@pytest.fixture
def subject(request: pytest.FixtureRequest, openstack: OpenStack) -> Iterator[Subject]:
    cloud = Recording(openstack, KINDS)
    opened = Subject(cast(Cloud, cloud), rest, all_kinds=False, idempotent=False, by_id=BY_ID, own_words=True)
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    opened.needs(*(parameters[each] for each in ("kind", "used", "user") if parameters.get(each) in CASES))
    yield opened
    cloud.clear()
