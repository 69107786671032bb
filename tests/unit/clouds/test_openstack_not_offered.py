"""Kinds of things that an OpenStack does not have: a template with one is refused, and hears what to do."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from docs.openstack_page import NOT_OFFERED, lacking

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.registry import COLLECTIONS, NAMED_ONLY
from homeostat.clouds.openstack.service import Service
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.model.errors import Rejected
from homeostat.resources.registry import types
from homeostat.services.pipeline.prerequisites import Prerequisites

STACK_ELSEWHERE = "remote_stack"
TYPES = sorted(
    name
    for name, each in types().items()
    if each.kind in {kind for kinds in NOT_OFFERED for kind in kinds} - {STACK_ELSEWHERE} and not each.support.hidden
)


def service(_: str) -> Service:
    raise AssertionError("nothing is asked for")


@pytest.fixture(scope="module")
def cloud() -> OpenStackCloud:
    with ThreadPoolExecutor(1) as pool:
        return OpenStackCloud(COLLECTIONS, service, pool, named_only=NAMED_ONLY)


@pytest.mark.parametrize("name", TYPES)
def test_the_refusal_names_type_and_cloud_and_what_to_do(name: str, cloud: OpenStackCloud) -> None:
    prerequisites = Prerequisites(lambda project: cloud)
    assert not prerequisites.has("p", name)
    with pytest.raises(Rejected) as refused:
        prerequisites.check_types("p", {name: ("resources", "it")})
    said = str(refused.value)
    assert said.startswith("resources.it: ")
    assert f"resource type {name}, reason: the cloud openstack has no " in said
    assert "Map the type to another one in the resource_registry of an environment, or leave it out" in said


def test_the_page_gives_a_reason_for_each_kind_that_is_not_there(cloud: OpenStackCloud) -> None:
    assert set(lacking()) == CLOUD_KINDS.keys() - cloud.kinds


def test_what_is_only_named_is_no_kind_of_this_cloud(cloud: OpenStackCloud) -> None:
    assert {each.kind for each in NAMED_ONLY} <= cloud.collections.keys() - cloud.kinds
