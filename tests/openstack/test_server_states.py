"""States of servers that others bring about on a real Nova: each is left alone and explained, or undone, and nothing is
made anew that goes on by itself."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from openstack.connection import Connection

from tests.openstack import projects
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving

pytestmark = pytest.mark.shows("CV13")
LOOK_S = 1.0
LOOKS = 3
"""Looks during which nothing may happen."""


def server(**more: object) -> dict[str, Wire]:
    networks = [{"allocate_network": "none"}]
    properties = {"image": "mini", "flavor": "m1.tiny", "networks": networks, **more}
    return {"server": {"type": "OS::Nova::Server", "properties": properties}}


@dataclass(frozen=True, slots=True)
class Scene:
    """user, admin — connections of the project's user, and of the administrator in the project."""

    openstack: OpenStack
    served: Served
    user: Connection
    admin: Connection

    def made(self, name: str) -> str:
        """The id of the server of a new stack that is complete."""
        self.served.create(name, server(), LOOK_S)
        found = self.served.at_rest(name)
        assert found["stack_status"] == "CREATE_COMPLETE", (found, self.served.failures(name))
        return self.served.handles(name)["server"]

    def status(self, id: str) -> str:
        return str(self.user.compute.get_server(id).status)

    def actions(self, id: str) -> list[str]:
        """What was asked of a server, the first first."""
        return [each.action for each in reversed(list(self.user.compute.server_actions(id)))]

    def reason(self, name: str) -> str:
        """What `explain` says of the server; "" if nothing."""
        return "\n".join(str(each["reason"]) for each in self.served.explanation(name)["resources"])

    def has_looked(self, name: str) -> None:
        """Wait until the service has looked at the stack some times more."""
        for _ in range(LOOKS):
            before = self.served.looked_at(name)
            eventually(lambda: self.served.looked_at(name) != before, "another look")  # noqa: B023 - asked at once


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack) -> Iterator[Project]:
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture(scope="module")
def scene(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home: Path = tmp_path_factory.mktemp("service") / "state"
    with (
        serving(mine, home) as served,
        contextlib.closing(mine.connection()) as user,
        contextlib.closing(mine.admin()) as admin,
    ):
        yield Scene(mine.cloud, served, user, admin)


@dataclass(frozen=True, slots=True)
class Visit:
    """A state that another user brings about, and ends.

    begin, end — do so. asked — what was asked of the server then. status — that Nova shows. said — what `explain` says.
    """

    name: str
    begin: Callable[[Connection, str], object]
    end: Callable[[Connection, str], object]
    asked: tuple[str, str]
    status: tuple[str, ...]
    said: str


VISITS = (
    Visit(
        "rescued",
        lambda user, id: user.compute.rescue_server(id),
        lambda user, id: user.compute.unrescue_server(id),
        ("rescue", "unrescue"),
        ("RESCUE",),
        "it was rescued outside",
    ),
    Visit(
        "shelved",
        lambda user, id: user.compute.shelve_server(id),
        lambda user, id: user.compute.unshelve_server(id),
        ("shelve", "unshelve"),
        ("SHELVED", "SHELVED_OFFLOADED"),
        "it was shelved outside",
    ),
)


@pytest.mark.parametrize("visit", VISITS, ids=lambda each: each.name)
def test_what_others_have_done_to_a_server_is_explained_and_left_to_them(scene: Scene, visit: Visit) -> None:
    id = scene.made(visit.name)
    visit.begin(scene.user, id)
    eventually(lambda: scene.status(id) in visit.status, "the state")
    eventually(lambda: visit.said in scene.reason(visit.name), "the explanation")
    scene.has_looked(visit.name)
    assert scene.actions(id) == ["create", visit.asked[0]]
    visit.end(scene.user, id)
    eventually(lambda: scene.status(id) == "ACTIVE", "the state to be over")
    eventually(lambda: scene.served.is_well(visit.name), "the stack to be well")
    assert not scene.reason(visit.name)
    assert scene.actions(id) == ["create", *visit.asked]
    assert scene.served.handles(visit.name)["server"] == id


def test_a_paused_server_is_unpaused(scene: Scene) -> None:
    id = scene.made("paused")
    scene.user.compute.pause_server(id)
    eventually(lambda: scene.actions(id) == ["create", "pause", "unpause"], "the service to unpause it")
    eventually(lambda: scene.status(id) == "ACTIVE" and scene.served.is_well("paused"), "the stack to be well")
    assert scene.served.handles("paused")["server"] == id


# -- sizes -----------------------------------------------------------------------------------------------------------


def test_another_size_is_confirmed_by_the_service(scene: Scene) -> None:
    id = scene.made("resized")
    scene.served.update("resized", server(flavor="m1.small"))
    assert scene.served.at_rest("resized")["stack_status"] == "UPDATE_COMPLETE", scene.served.failures("resized")
    assert scene.served.handles("resized")["server"] == id
    assert scene.status(id) == "ACTIVE"
    assert scene.actions(id) == ["create", "resize", "confirmResize"]
    assert scene.user.compute.get_server(id).flavor.name == "m1.small"


def test_a_size_that_another_user_chose_is_left_to_that_user(scene: Scene) -> None:
    id = scene.made("grown")
    small = scene.user.compute.find_flavor("m1.small", ignore_missing=False).id
    scene.user.compute.resize_server(id, small)
    eventually(lambda: "waits to be confirmed" in scene.reason("grown"), "the explanation")
    scene.has_looked("grown")
    assert scene.actions(id) == ["create", "resize"]
    scene.user.compute.confirm_server_resize(id)
    eventually(lambda: scene.status(id) == "ACTIVE" and not scene.reason("grown"), "the confirmation")
    scene.has_looked("grown")
    unharmed(scene, "grown", id, ["create", "resize", "confirmResize"])
    assert scene.user.compute.get_server(id).flavor.name == "m1.small"


def test_a_server_that_breaks_at_the_end_of_its_resize_is_made_anew_in_that_size(scene: Scene) -> None:
    id = scene.made("broken")
    with scene.openstack.fault("virt", op="^finish_migration$", uuid=id, error="no room"):
        scene.served.update("broken", server(flavor="m1.small"))
        assert scene.served.at_rest("broken")["stack_status"] == "UPDATE_COMPLETE", scene.served.failures("broken")
    other = scene.served.handles("broken")["server"]
    assert other != id
    assert scene.user.compute.get_server(other).flavor.name == "m1.small"
    eventually(lambda: scene.user.compute.find_server(id) is None, "the broken one to be gone")


# -- hosts, and servers that can be restored --------------------------------------------------------------------------


@pytest.fixture
def two_hosts(openstack_cloud: OpenStack) -> None:
    if open_cloud(openstack_cloud.directory).site.settings.computes < 2:
        pytest.skip("the OpenStack has one host: bring it up with --computes 2")


@pytest.mark.usefixtures("two_hosts")
def test_a_live_migration_is_none_of_the_services_business(scene: Scene) -> None:
    id = scene.made("live")
    before = host(scene, id)
    scene.admin.compute.live_migrate_server(id, host=None, block_migration="auto")
    eventually(lambda: host(scene, id) != before and scene.status(id) == "ACTIVE", "the migration")
    scene.has_looked("live")
    unharmed(scene, "live", id, ["create", "live-migration"])


@pytest.mark.usefixtures("two_hosts")
def test_a_cold_migration_is_left_to_who_has_to_confirm_it(scene: Scene) -> None:
    id = scene.made("cold")
    before = host(scene, id)
    scene.admin.compute.migrate_server(id)
    eventually(lambda: scene.status(id) == "VERIFY_RESIZE", "the migration")
    eventually(lambda: "waits to be confirmed" in scene.reason("cold"), "the explanation")
    scene.has_looked("cold")
    assert scene.actions(id) == ["create", "migrate"]
    scene.admin.compute.confirm_server_resize(id)
    eventually(lambda: scene.status(id) == "ACTIVE", "the confirmation")
    assert host(scene, id) != before
    eventually(lambda: not scene.reason("cold"), "nothing to be left to explain")
    unharmed(scene, "cold", id, ["create", "migrate", "confirmResize"])


def host(scene: Scene, id: str) -> str:
    return str(scene.admin.compute.get_server(id).compute_host)


def unharmed(scene: Scene, name: str, id: str, actions: list[str]) -> None:
    """Assert that a stack never failed, and its server was asked for nothing else."""
    assert scene.served.is_well(name)
    assert scene.served.failures(name) == []
    assert scene.served.handles(name)["server"] == id
    assert scene.actions(id) == actions


@pytest.fixture
def restorable(openstack_cloud: OpenStack) -> None:
    if not open_cloud(openstack_cloud.directory).site.settings.soft_delete:
        pytest.skip("the OpenStack deletes servers at once: bring it up with --soft-delete 60")


@pytest.mark.usefixtures("restorable")
def test_a_server_that_is_deleted_for_a_while_is_made_anew(scene: Scene) -> None:
    id = scene.made("deleted")
    scene.user.compute.delete_server(id)
    eventually(lambda: scene.served.handles("deleted")["server"] != id, "another one")
    eventually(lambda: scene.served.is_well("deleted"), "the stack to be well")
    eventually(lambda: scene.user.compute.find_server(id) is None, "the deleted one to be gone for good")


@pytest.mark.usefixtures("restorable")
def test_a_server_that_is_restored_goes_on(scene: Scene) -> None:
    id = scene.made("restored")
    scene.served.switch("restored", healing="ask")
    scene.user.compute.delete_server(id)
    eventually(lambda: scene.status(id) == "SOFT_DELETED", "the deletion")
    eventually(lambda: "so that it can be restored" in scene.reason("restored"), "the explanation")
    scene.has_looked("restored")
    scene.user.compute.restore_server(id)
    eventually(lambda: scene.status(id) == "ACTIVE", "the restoration")
    eventually(lambda: not scene.reason("restored"), "nothing to be left to explain")
    scene.served.switch("restored", healing=None)
    scene.has_looked("restored")
    assert scene.served.handles("restored")["server"] == id
    assert scene.actions(id) == ["create", "delete", "restore"]
