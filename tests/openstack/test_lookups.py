"""What templates name is looked up as an ordinary member of a project, with the services' default rights."""

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.model.errors import Transient
from tests.openstack.one_thing import adapter
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

ITSELF = {"floating_ip_port_forward", "metering_rule", "rbac_policy", "security_group_rule"}
"""Kinds without names: whatever names one is taken for its id."""


@pytest.fixture(scope="module")
def member(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("member")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def volume_type(openstack_cloud: OpenStack) -> Iterator[str]:
    name = f"type {uuid.uuid4().hex[:6]}"
    with contextlib.closing(openstack_cloud.admin()) as admin:
        made = admin.block_storage.create_type(name=name)
        yield name
        admin.block_storage.delete_type(made.id)


def test_no_lookup_of_a_member_is_refused_for_good(member: OpenStackCloud) -> None:
    """Of what members may not see, it is not known whether it exists; all else is not there."""
    for kind in sorted(member.collections.keys() - ITSELF):
        for name in ("no such name", "a/b?c=d"):
            with contextlib.suppress(Transient):
                assert member.resolve(kind, [name]) == [None], kind


def test_a_volume_type_by_name(member: OpenStackCloud, volume_type: str) -> None:
    (by_name,) = member.resolve("volume_type", [volume_type])
    assert by_name is not None
    assert member.resolve("volume_type", [by_name, "no such type"]) == [by_name, None]
