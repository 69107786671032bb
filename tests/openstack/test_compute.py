"""Compute besides servers, on the real service."""

import contextlib
import uuid
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from tests.openstack.one_thing import Life, Liver, adapter, live, present
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack

RUN = uuid.uuid4().hex[:6]


@pytest.fixture(scope="module")
def user(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def admin(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds"), admin=True) as cloud:
        yield cloud


def public_key() -> str:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    made = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return f"{made.decode()} user@host"


class TestKeyPairs:
    def test_one_that_is_given_lives(self, openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
        values = {"name": f"given {RUN}", "public_key": public_key()}
        wrong = {"public_key": "no key", "name": "wrong"}
        live(user, openstack_cloud, Life("OS::Nova::KeyPair", values, (), wrong, ("nova-api", "POST", "/os-keypairs$")))

    def test_what_is_given_is_shown_as_it_was(self, user: OpenStackCloud) -> None:
        given = public_key()
        one = Liver(user, Life("OS::Nova::KeyPair", {"name": f"shown-{RUN}", "public_key": given}))
        assert one.create().properties["public_key"] == given
        assert one.handle == f"shown-{RUN}"
        assert user.resolve("keypair", [one.handle, "never"]) == [one.handle, None]
        one.gone()

    def test_the_private_key_is_in_the_answer_to_the_creation_alone(self, user: OpenStackCloud) -> None:
        one = Liver(user, Life("OS::Nova::KeyPair", {"name": f"made-{RUN}", "save_private_key": True}))
        made = present(user.create("keypair", [Creation(one.token, one.spec())])[0])
        one.handle = made.handle
        private = serialization.load_pem_private_key(made.properties["private_key"].encode(), None)
        public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        assert made.properties["public_key"] == public.decode()
        assert "private_key" not in one.look().properties
        assert "private_key" not in user.find("keypair", [one.token])[0].properties
        again = present(user.create("keypair", [Creation(one.token, one.spec())])[0])
        assert again.handle == made.handle
        one.gone()

    def test_a_name_that_another_has_is_refused(self, user: OpenStackCloud) -> None:
        one = Liver(user, Life("OS::Nova::KeyPair", {"name": f"one-{RUN}", "public_key": public_key()}))
        one.create()
        (answer,) = user.create("keypair", [Creation("other-1", one.spec())])
        assert isinstance(answer, Terminal)
        assert "already exists" in str(answer)
        one.gone()

    def test_a_certificate_is_made_by_the_service(self, user: OpenStackCloud) -> None:
        one = Liver(user, Life("OS::Nova::KeyPair", {"name": f"x509-{RUN}", "type": "x509"}))
        made = present(user.create("keypair", [Creation(one.token, one.spec())])[0])
        one.handle = made.handle
        assert made.properties["private_key"]
        assert "BEGIN CERTIFICATE" in one.look().properties["public_key"]
        one.gone()

    def test_one_may_be_for_another_user(self, admin: OpenStackCloud, user: OpenStackCloud, project: Project) -> None:
        values = {"name": f"for-{RUN}", "public_key": public_key(), "user": project.user_id}
        one = Liver(admin, Life("OS::Nova::KeyPair", values))
        assert one.create().properties["user"] == project.user_id
        assert one.handle == f"{project.user_id}/for-{RUN}"
        assert user.observe("keypair", [f"for-{RUN}"])[0].present
        assert not admin.observe("keypair", [f"for-{RUN}"])[0].present
        assert present(admin.create("keypair", [Creation(one.token, one.spec())])[0]).handle == one.handle
        one.gone()
        assert not user.observe("keypair", [f"for-{RUN}"])[0].present


def test_a_server_group_lives(openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
    values = {"name": "apart", "policies": ["anti-affinity"], "rules": {"max_server_per_host": 3}}
    lost = ("nova-api", "POST", "/os-server-groups$")
    live(user, openstack_cloud, Life("OS::Nova::ServerGroup", values, (), {"policies": ["affinity"]}, lost))
    one = Liver(user, Life("OS::Nova::ServerGroup", {"name": "near", "policies": ["soft-affinity"]}))
    seen = one.create().properties
    assert (seen["name"], seen["policies"], seen["rules"]) == ("near", ["soft-affinity"], {})
    one.gone()


def test_a_flavor_lives(openstack_cloud: OpenStack, admin: OpenStackCloud, project: Project) -> None:
    sizes = {"ram": 64, "vcpus": 1, "disk": 1, "swap": 2, "ephemeral": 3, "rxtx_factor": 1.0}
    with contextlib.closing(openstack_cloud.admin()) as admin_of_all:
        other = str(admin_of_all.current_project_id)
    values = {"name": f"f-{RUN}", **sizes, "extra_specs": {"hw:cpu_policy": "shared", "own:x": "1"}}
    changes = ({"extra_specs": {"own:x": "2"}},)
    lost = ("nova-api", "POST", "/flavors$")
    live(admin, openstack_cloud, Life("OS::Nova::Flavor", values, changes, {"vcpus": 0}, lost))
    private = {"name": f"p-{RUN}", **sizes, "is_public": False, "tenants": [project.id], "flavorid": f"id-{RUN}"}
    life = Life("OS::Nova::Flavor", private, ({"tenants": [project.id, other]}, {"tenants": [other]}))
    live(admin, openstack_cloud, life)
    one = Liver(admin, life)
    seen = one.create().properties
    assert one.handle == seen["flavorid"] == f"id-{RUN}"
    assert {name: seen[name] for name in (*sizes, "is_public", "name")} == {
        **sizes,
        "is_public": False,
        "name": f"p-{RUN}",
    }
    assert admin.resolve("flavor", [f"p-{RUN}", one.handle, "never"]) == [one.handle, one.handle, None]
    one.gone()


def test_a_user_may_make_no_flavor(user: OpenStackCloud) -> None:
    (answer,) = user.create("flavor", [Creation("f-1", {"name": "x", "ram": 64, "vcpus": 1, "disk": 1})])
    assert isinstance(answer, Terminal)
    assert "Policy doesn't allow" in str(answer)


@pytest.fixture
def hosts_are_free(admin: OpenStackCloud) -> Iterator[None]:
    """Leave no host in an aggregate, whatever happens."""
    yield
    compute = admin.service("compute")
    for each in compute.get("/os-aggregates")["aggregates"]:
        if RUN in each["name"]:
            with contextlib.suppress(Terminal):
                present(admin.delete("host_aggregate", [str(each["id"])])[0])


@pytest.mark.usefixtures("hosts_are_free")
def test_a_host_aggregate_lives(openstack_cloud: OpenStack, admin: OpenStackCloud) -> None:
    values = {"name": f"rack-{RUN}", "metadata": {"a": "b"}, "hosts": ["compute1"]}
    changes = (
        {"name": f"shelf-{RUN}"},
        {"metadata": {"c": "d", "e": "f"}, "hosts": []},
        {"availability_zone": f"zone-{RUN}", "metadata": {"c": "e"}},
    )
    lost = ("nova-api", "POST", "/os-aggregates$")
    wrong = {"name": f"x-{RUN}", "availability_zone": "a:b"}
    live(admin, openstack_cloud, Life("OS::Nova::HostAggregate", values, changes, wrong, lost))
