"""Messages with a real Zaqar."""

import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Creation, Operation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, remove
from tests.openstack.projects import Project

pytestmark = pytest.mark.services("zaqar")


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def queue(cloud: OpenStackCloud) -> Iterator[str]:
    made = make(cloud, "OS::Zaqar::Queue", {"metadata": {"a": 1}})
    yield made
    remove(cloud, "queue", made)


def life_of(kind: str, queue: str) -> Life:
    if kind == "queue":
        return Life(
            "OS::Zaqar::Queue",
            {"metadata": {"a": [1], "b": "x"}},
            ({"metadata": {"b": {"c": 2}, "_default_message_ttl": 600}}, {"metadata": {}}),
        )
    return Life(
        "OS::Zaqar::Subscription",
        {"queue_name": queue, "subscriber": f"http://{kind}.example/{uuid.uuid4()}"},
        (
            {"subscriber": f"mailto:{uuid.uuid4()}@example.org", "ttl": 600},
            {"options": {"post_data": "x"}},
            {"options": {}},
        ),
        f"{queue}/{uuid.uuid4()}",
    )


@pytest.mark.parametrize("kind", ["queue", "subscription"])
def test_it_lives_and_dies(kind: str, cloud: OpenStackCloud, queue: str) -> None:
    life = life_of(kind, queue)
    check_never(cloud, kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize(("kind", "method", "path"), [("queue", "PUT", "/lost-"), ("subscription", "POST", "/{}/sub")])
def test_a_lost_answer_has_made_one(
    kind: str, method: str, path: str, cloud: OpenStackCloud, project: Project, queue: str
) -> None:
    check_lost(cloud, project, life_of(kind, queue), "zaqar-api", path.format(queue), method)


def test_more_queues_than_one_page_are_seen(cloud: OpenStackCloud) -> None:
    names = [f"many-{uuid.uuid4().hex}" for _ in range(25)]
    tokens = [f"token-{each}" for each in names]
    made = cloud.create("queue", [Creation(token, {"name": n}) for token, n in zip(tokens, names, strict=True)])
    assert [each.handle for each in made if isinstance(each, Observation)] == names
    assert [each.handle for each in cloud.find("queue", tokens)] == names
    assert [each.present for each in cloud.observe("queue", [*names, "never"])] == [True] * 25 + [False]
    for name in names:
        remove(cloud, "queue", name)


def test_a_name_or_a_subscriber_that_is_taken_is_said(cloud: OpenStackCloud, queue: str) -> None:
    spec = life_of("subscription", queue).spec("s")
    first, second = (cloud.create("subscription", [Creation(f"s-{uuid.uuid4()}", spec)])[0] for _ in range(2))
    assert isinstance(first, Observation)
    assert isinstance(second, Terminal)
    assert "already has a subscription" in str(second)
    remove(cloud, "subscription", first.handle)
    good = f"good-{uuid.uuid4()}"
    batch = [Creation(f"q-{uuid.uuid4()}", {"name": each}) for each in (queue, good)]
    taken, made = cloud.create("queue", batch)
    assert isinstance(taken, Terminal)
    assert "already exists" in str(taken)
    assert isinstance(made, Observation)
    remove(cloud, "queue", good)


def test_messages_are_posted(cloud: OpenStackCloud, project: Project, queue: str) -> None:
    arguments = {"messages": [{"body": {"event": 1}, "ttl": 300}]}
    accepted(lambda: cloud.operate("queue", [Operation(queue, "post", arguments)]))
    found = cloud.service("message").get(f"/queues/{queue}/messages", echo="true")["messages"]
    assert [each["body"] for each in found] == [{"event": 1}]
    absent = accepted(lambda: cloud.operate("queue", [Operation(f"not-{queue}", "post", arguments)]))
    assert not absent.present
    assert not cloud.observe("queue", [f"not-{queue}"])[0].present, "a message makes no queue"
    (made,) = cloud.operate("queue", [Operation(f"not-{queue}", "post", {**arguments, "make": True})])
    assert isinstance(made, Observation), made
    assert (made.present, made.handle) == (True, f"not-{queue}")
    remove(cloud, "queue", made.handle)


def test_a_queue_that_a_message_has_made_is_taken(cloud: OpenStackCloud) -> None:
    name = f"made-{uuid.uuid4()}"
    cloud.service("message").request("POST", f"/queues/{name}/messages", {"messages": [{"body": 1, "ttl": 300}]})
    handle = make(cloud, "OS::Zaqar::Queue", {"name": name, "metadata": {"a": 1}})
    assert cloud.observe("queue", [handle])[0].properties["metadata"]["a"] == 1
    remove(cloud, "queue", handle)
