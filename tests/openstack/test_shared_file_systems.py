"""Shared file systems with a real Manila."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from homeostat.clouds.openstack import clouds
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.registry import VERSIONS
from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, Spec, accepted, check_life, check_lost, check_never, make, ready, remove
from tests.openstack.projects import Project, auth_of_admin
from tests.waiting import until

pytestmark = [pytest.mark.services("manila"), pytest.mark.slow]
SERVICE = "shared-file-system"
RULES = [
    {"access_to": "10.0.0.0/24", "access_type": "ip", "access_level": "ro"},
    {"access_to": "10.0.1.1", "access_type": "ip"},
]


@dataclass(frozen=True, slots=True)
class World:
    """A project seen by its user, and what its things name."""

    cloud: OpenStackCloud
    network: str
    subnet: str


@pytest.fixture(scope="module")
def world(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as cloud:
        network = make(cloud, "OS::Neutron::Net", {"name": "shares"})
        subnet = make(cloud, "OS::Neutron::Subnet", {"network": network, "cidr": "10.77.0.0/24"})
        yield World(cloud, network, subnet)


@pytest.fixture(scope="module")
def operator(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    """The project as the administrator sees it."""
    with lives.adapter(project, tmp_path_factory.mktemp("admin"), auth_of_admin(project)["username"]) as cloud:
        yield cloud


SECURITY: Spec = {"type": "ldap", "name": "s", "dns_ip": "10.0.0.2", "server": "10.0.0.3", "user": "u", "password": "p"}


def _share(**more: object) -> Life:
    properties = {"share_protocol": "NFS", "size": 1, "metadata": {"a": "b", "n": "1"}, "description": "d", **more}
    changes = (
        {"name": "new", "description": None, "metadata": {"c": "d"}},
        {"access_rules": RULES},
        {"access_rules": RULES[1:]},
    )
    return Life("OS::Manila::Share", properties, changes)


def _network(world: World) -> Life:
    changes: Spec = {"name": "new", "description": "e"}
    properties = {"neutron_network": world.network, "neutron_subnet": world.subnet, "description": "d"}
    return Life("OS::Manila::ShareNetwork", properties, (changes,))


def _security() -> Life:
    changes = ({"name": "t", "server": "10.0.0.4", "password": "q"}, {"description": "d", "domain": "x", "user": None})
    return Life("OS::Manila::SecurityService", SECURITY, changes)


def _type() -> Life:
    properties = {
        "name": f"type-{uuid.uuid4().hex[:8]}",
        "driver_handles_share_servers": False,
        "snapshot_support": False,
        "is_public": False,
        "extra_specs": {"a": "b", "n": "1"},
    }
    return Life("OS::Manila::ShareType", properties, ({"extra_specs": {"n": "2", "x": "y"}},))


@pytest.mark.parametrize("version", [0, 1], ids=["lowest", "highest"])
def test_shares_live_and_die(
    version: int,
    world: World,
    project: Project,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = VERSIONS[SERVICE][version]
    monkeypatch.setattr(clouds, "VERSIONS", {**VERSIONS, SERVICE: (chosen, chosen)})
    with lives.adapter(project, tmp_path_factory.mktemp("version")) as cloud:
        check_never(cloud, "share", str(uuid.uuid4()))
        check_life(cloud, _share(share_type="default"))
        check_life(cloud, _network(world))
        check_life(cloud, _security())


def test_types_of_shares_live_and_die(operator: OpenStackCloud) -> None:
    check_never(operator, "share_type", str(uuid.uuid4()))
    check_life(operator, _type())


@pytest.mark.parametrize("kind", ["share_network", "share_security_service"])
def test_what_never_was_is_absent(kind: str, world: World) -> None:
    check_never(world.cloud, kind, str(uuid.uuid4()))


def test_a_lost_answer_has_made_one(world: World, operator: OpenStackCloud, project: Project) -> None:
    check_lost(world.cloud, project, _share(), "manila-api", "/shares$")
    check_lost(world.cloud, project, _network(world), "manila-api", "/share-networks$")
    check_lost(world.cloud, project, _security(), "manila-api", "/security-services$")
    check_lost(operator, project, _type(), "manila-api", "/types$")


def test_a_share_has_its_places_and_its_access_rules(world: World) -> None:
    life = _share(access_rules=RULES)
    made = accepted(lambda: world.cloud.create("share", [Creation(f"m-{uuid.uuid4()}", life.spec("m"))]))
    seen = ready(world.cloud, "share", made.handle)
    assert all("/share" in each for each in seen.properties["export_locations"])
    assert seen.properties["export_locations"]
    assert life.differing(seen, "m") == ("access_rules",), "rules are set once there is something to mount"
    change = Change(made.handle, life.spec("m"), ("access_rules",))
    seen = accepted(lambda: world.cloud.update("share", [change]))
    assert life.differing(seen, "m") == ()
    levels = {each["access_to"]: each["access_level"] for each in seen.properties["access_rules"]}
    assert levels == {"10.0.0.0/24": "ro", "10.0.1.1": "rw"}
    other = [{**RULES[0], "access_level": "rw"}]
    change = Change(made.handle, {**life.spec("m"), "access_rules": other}, ("access_rules",))
    # The old rule goes first, which takes a while.
    seen = accepted(lambda: world.cloud.update("share", [change]))
    assert [each["access_level"] for each in seen.properties["access_rules"]] == ["rw"]
    remove(world.cloud, "share", made.handle)


def test_rules_changed_by_another_process_are_seen(
    world: World, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    share = make(world.cloud, "OS::Manila::Share", {"share_protocol": "NFS", "size": 1})
    assert world.cloud.observe("share", [share])[0].properties["access_rules"] == []
    with lives.adapter(project, tmp_path_factory.mktemp("other")) as other:
        accepted(lambda: other.update("share", [Change(share, {"access_rules": RULES}, ("access_rules",))]))
    assert len(world.cloud.observe("share", [share])[0].properties["access_rules"]) == 2
    remove(world.cloud, "share", share)


def test_a_share_that_fails_says_why(world: World, operator: OpenStackCloud, project: Project) -> None:
    nowhere = make(
        operator, "OS::Manila::ShareType", {**_type().properties, "extra_specs": {"share_backend_name": "x"}}
    )
    operator.service(SERVICE).request("POST", f"/types/{nowhere}/action", {"addProjectAccess": {"project": project.id}})
    spec = Life("OS::Manila::Share", {"share_protocol": "NFS", "size": 1, "share_type": nowhere}).spec("f")
    made = accepted(lambda: world.cloud.create("share", [Creation(f"f-{uuid.uuid4()}", spec)]))

    def failed() -> Observation | None:
        seen = world.cloud.observe("share", [made.handle])[0]
        return seen if seen.properties["status"] == "error" else None

    seen = until(failed, "the share to fail", rest=lives.rest)
    assert "No storage could be allocated" in seen.properties["fault"]
    refused = operator.delete("share_type", [nowhere])[0]
    assert isinstance(refused, Transient), "its share is still there"
    remove(world.cloud, "share", made.handle)
    remove(operator, "share_type", nowhere)


def test_security_services_join_networks(world: World) -> None:
    services = [
        make(world.cloud, "OS::Manila::SecurityService", {**SECURITY, "type": type}) for type in ("ldap", "kerberos")
    ]
    life = Life(
        "OS::Manila::ShareNetwork",
        {"neutron_network": world.network, "neutron_subnet": world.subnet, "security_services": services[:1]},
        ({"security_services": services}, {"security_services": services[1:]}, {"security_services": []}),
    )
    check_life(world.cloud, life)
    network = make(world.cloud, life.type, life.properties)
    assert isinstance(world.cloud.delete("share_security_service", services[:1])[0], Transient)
    remove(world.cloud, "share_network", network)
    for each in services:
        remove(world.cloud, "share_security_service", each)


def test_passwords_are_not_shown(world: World) -> None:
    made = make(world.cloud, "OS::Manila::SecurityService", {**SECURITY, "password": "secret-word"})
    assert "secret-word" not in str(world.cloud.observe("share_security_service", [made])[0])
    remove(world.cloud, "share_security_service", made)


def test_a_share_that_the_service_refuses_does_not_spoil_the_others(world: World) -> None:
    good = _share().spec("good")
    bad = {**good, "share_type": "no-such-type"}
    refused, made = world.cloud.create("share", [Creation(f"r-{uuid.uuid4()}", spec) for spec in (bad, good)])
    assert isinstance(refused, Terminal)
    assert "no-such-type" in str(refused)
    assert isinstance(made, Observation)
    remove(world.cloud, "share", ready(world.cloud, "share", made.handle).handle)
