"""Object storage with a real Swift."""

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project
from tests.waiting import until

pytestmark = pytest.mark.services("swift")


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


def container() -> Life:
    properties = {
        "name": f"c {uuid.uuid4()} é?",
        "X-Container-Read": ".r:*",
        "X-Container-Meta": {"Colour": "grün"},
        "X-Account-Meta": {"Team": "a"},
    }
    return Life("OS::Swift::Container", properties)


def put(project: Project, name: str, *objects: str) -> None:
    with contextlib.closing(project.connection()) as user:
        for each in objects:
            user.object_store.upload_object(container=name, name=each, data=b"12345")


def test_it_lives_and_dies(cloud: OpenStackCloud) -> None:
    check_never(cloud, "container", "never was")
    check_life(cloud, container())


def test_a_lost_answer_has_made_one(cloud: OpenStackCloud, project: Project) -> None:
    check_lost(cloud, project, container(), "swift-proxy", "/c .*", "PUT")


def test_another_process_finds_what_a_lost_answer_has_made(
    cloud: OpenStackCloud, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    token, name = f"t-{uuid.uuid4()}", f"n-{uuid.uuid4()}"
    accepted(lambda: cloud.create("container", [Creation(token, {"name": name})]))
    with lives.adapter(project, tmp_path_factory.mktemp("other")) as other:
        assert [each.handle for each in other.find("container", [token, "never-was"])] == [name, ""]
    remove(cloud, "container", name)


def test_its_headers_are_shown(cloud: OpenStackCloud) -> None:
    life = container()
    name = make(cloud, life.type, life.properties)
    seen = cloud.observe("container", [name])[0].properties
    assert seen["headers"]["x-container-meta-colour"] == "grün"
    assert not [each for each in seen["headers"] if "homeostat" in each]
    assert seen["read_acl"] == ".r:*"
    assert seen["url"].endswith("%20%C3%A9%3F")
    remove(cloud, "container", name)


def test_a_container_of_another_is_not_taken_over(cloud: OpenStackCloud) -> None:
    name, other = (f"n-{uuid.uuid4()}" for _ in range(2))
    tokens = [f"t-{uuid.uuid4()}" for _ in range(2)]
    accepted(lambda: cloud.create("container", [Creation(tokens[0], {"name": name})]))
    again, taken, good = cloud.create(
        "container",
        [Creation(tokens[0], {"name": name}), Creation(tokens[1], {"name": name}), Creation("t", {"name": other})],
    )
    assert isinstance(again, Observation)
    assert isinstance(taken, Terminal)
    assert isinstance(good, Observation)
    remove(cloud, "container", name)
    remove(cloud, "container", other)


def test_only_with_purge_its_objects_go_with_it(cloud: OpenStackCloud, project: Project) -> None:
    kept, purged = (f"{word}-{uuid.uuid4()}" for word in ("kept", "purged"))
    for name, purge in ((kept, False), (purged, True)):
        make(cloud, "OS::Swift::Container", {"name": name, "PurgeOnDelete": purge})
        put(project, name, "a", "b/ü?")
    answer = cloud.delete("container", [kept])[0]
    assert isinstance(answer, Terminal)
    assert "PurgeOnDelete" in str(answer)
    assert cloud.observe("container", [kept])[0].present
    remove(cloud, "container", purged)
    with contextlib.closing(project.connection()) as user:
        for each in ("a", "b/ü?"):
            user.object_store.delete_object(each, container=kept)
    remove(cloud, "container", kept)


def test_many_are_looked_at_with_one_request_while_nothing_changes(
    cloud: OpenStackCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [make(cloud, "OS::Swift::Container", {"name": f"many-{uuid.uuid4()}"}) for _ in range(5)]
    until(lambda: {each["name"] for each in cloud.collections["container"].list()} >= set(names), "the list")
    assert all(each.present for each in cloud.observe("container", names))
    asked: list[str] = []
    answer = Service.answer

    def counted(self: Service, method: str, path: str, *rest: object, **more: object) -> object:
        asked.append(method)
        return answer(self, method, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Service, "answer", counted)
    looks = cloud.observe("container", [*names, "never was"])
    assert [each.present for each in looks] == [True] * 5 + [False]
    assert asked == ["GET", "GET", "HEAD"], "pages of the list, the last one empty; the one that is absent"
    for name in names:
        remove(cloud, "container", name)
