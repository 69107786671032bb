"""Key management with a real Barbican."""

import base64
import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal, Uncertain
from homeostat.model.observed import Observation
from tests.openstack import lives
from tests.openstack.lives import Life, accepted, check_life, check_lost, check_never, make, ready, remove
from tests.openstack.projects import Project

pytestmark = pytest.mark.services("barbican")
NEVER = "http://keys.example/v1/things/11111111-2222-3333-4444-555555555555"
BINARY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def cloud(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with lives.adapter(project, tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def secret(cloud: OpenStackCloud) -> Iterator[str]:
    made = make(cloud, "OS::Barbican::Secret", {"name": "known", "payload": "p"})
    yield made
    remove(cloud, "secret", made)


LIVES: dict[str, Callable[[], Life]] = {
    "text": lambda: Life(
        "OS::Barbican::Secret", {"name": "n", "payload": "pä", "secret_type": "passphrase"}, handle=NEVER
    ),
    "binary": lambda: Life(
        "OS::Barbican::Secret",
        {
            "payload": BINARY,
            "payload_content_type": "application/octet-stream",
            "payload_content_encoding": "base64",
            "secret_type": "symmetric",
            "algorithm": "aes",
            "bit_length": 256,
            "mode": "cbc",
            "expiration": "2090-01-01T00:00:00",
        },
        handle=NEVER,
    ),
    "key": lambda: Life(
        "OS::Barbican::Order",
        {"name": "k", "type": "key", "algorithm": "aes", "bit_length": 256, "mode": "cbc"},
        handle=NEVER,
    ),
    "generic": lambda: Life(
        "OS::Barbican::GenericContainer", {"name": "c", "secrets": [{"name": "a", "ref": "known"}]}, handle=NEVER
    ),
    "certificate": lambda: Life("OS::Barbican::CertificateContainer", {"certificate_ref": "known"}, handle=NEVER),
}
PATHS = {"text": "/secrets$", "key": "/orders$", "generic": "/containers$"}


@pytest.mark.parametrize("name", LIVES)
def test_it_lives_and_dies(name: str, cloud: OpenStackCloud, secret: str) -> None:
    life = LIVES[name]()
    check_never(cloud, life.of.kind, life.handle)
    check_life(cloud, life)


@pytest.mark.parametrize("name", PATHS)
def test_a_lost_answer_has_made_one(name: str, cloud: OpenStackCloud, project: Project, secret: str) -> None:
    check_lost(cloud, project, LIVES[name](), "barbican-api", PATHS[name])


@pytest.mark.parametrize(("name", "payload"), [("text", "pä"), ("binary", BINARY)])
def test_a_secret_is_read_once(name: str, payload: str, cloud: OpenStackCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    life, token = LIVES[name](), f"test-{uuid.uuid4()}"
    made = accepted(lambda: cloud.create("secret", [Creation(token, life.spec("s"))]))
    assert made.properties["payload"] == payload
    asked: list[str] = []
    answer = Service.answer

    def counted(self: Service, method: str, path: str, *rest: object, **more: object) -> object:
        asked.append(path)
        return answer(self, method, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Service, "answer", counted)
    assert cloud.observe("secret", [made.handle])[0].properties["payload"] == payload
    assert len(asked) == 1
    remove(cloud, "secret", made.handle)


def test_an_order_of_a_pair_of_keys_shows_them(cloud: OpenStackCloud) -> None:
    handle = make(
        cloud, "OS::Barbican::Order", {"name": "pair", "type": "asymmetric", "algorithm": "rsa", "bit_length": 2048}
    )
    seen = ready(cloud, "secret_order", handle).properties
    assert seen["public_key"].startswith("-----BEGIN PUBLIC KEY-----")
    assert seen["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert seen["container_ref"]
    remove(cloud, "secret_order", handle)


ORDER = {"name": "k", "type": "key", "algorithm": "aes", "bit_length": 256, "mode": "cbc"}
PAIR = {"name": "pair", "type": "asymmetric", "algorithm": "rsa", "bit_length": 2048}


def ordered(cloud: OpenStackCloud, properties: dict[str, Any]) -> tuple[str, list[str]]:
    """The handle of an order that is carried out, and what it has made: first its container, if there is one."""
    handle = make(cloud, "OS::Barbican::Order", properties)
    seen = ready(cloud, "secret_order", handle).properties
    if not seen.get("container_ref"):
        return handle, [seen["secret_ref"]]
    (container,) = cloud.observe("secret_container", [seen["container_ref"]])
    return handle, [container.handle, *container.properties["secret_refs"].values()]


def are_there(cloud: OpenStackCloud, refs: list[str]) -> list[bool]:
    return [
        cloud.observe("secret_container" if "/containers/" in each else "secret", [each])[0].present for each in refs
    ]


@pytest.mark.parametrize("properties", [ORDER, PAIR], ids=lambda each: str(each["type"]))
def test_what_an_order_has_made_goes_with_it(cloud: OpenStackCloud, properties: dict[str, Any]) -> None:
    handle, made = ordered(cloud, properties)
    assert all(are_there(cloud, made))
    remove(cloud, "secret_order", handle)
    assert not any(are_there(cloud, made))


@pytest.mark.parametrize("properties", [ORDER, PAIR], ids=lambda each: str(each["type"]))
def test_an_order_whose_deletion_was_begun_by_another_worker_goes(
    cloud: OpenStackCloud, project: Project, properties: dict[str, Any]
) -> None:
    handle, made = ordered(cloud, properties)
    with project.cloud.fault("http", service="barbican-api", method="DELETE", path="/orders/", status=503):
        assert isinstance(cloud.delete("secret_order", [handle])[0], Uncertain)
        assert not any(are_there(cloud, made))
    assert cloud.observe("secret_order", [handle])[0].present
    remove(cloud, "secret_order", handle)


def test_a_secret_of_an_order_that_is_used_elsewhere_stays(cloud: OpenStackCloud, project: Project) -> None:
    (kept, (secret,)), (other, (used,)) = ordered(cloud, ORDER), ordered(cloud, ORDER)
    container = make(cloud, "OS::Barbican::GenericContainer", {"name": "u", "secrets": [{"name": "a", "ref": secret}]})
    consumer = {"service": "image", "resource_type": "images", "resource_id": str(uuid.uuid4())}
    with contextlib.closing(project.connection()) as user:
        path = f"/secrets/{used.rpartition('/')[2]}/consumers"
        assert user.key_manager.post(path, json=consumer, microversion="1.1").status_code == 200
        for order in (kept, other):
            remove(cloud, "secret_order", order)
        assert are_there(cloud, [secret, used]) == [True, True]
        user.key_manager.delete(path, json=consumer, microversion="1.1")
    remove(cloud, "secret_container", container)
    for each in (secret, used):
        remove(cloud, "secret", each)


def test_a_bad_secret_does_not_spoil_the_others(cloud: OpenStackCloud) -> None:
    specs = [{"name": "a", "payload": "x"}, {"name": "b", "payload": "y", "payload_content_type": "strange"}]
    good, bad = cloud.create("secret", [Creation(f"s-{uuid.uuid4()}", each) for each in specs])
    assert isinstance(good, Observation)
    assert isinstance(bad, Terminal)
    looks = cloud.observe("secret", [good.handle, NEVER, good.handle.rpartition("/")[2], "x", "y"])
    assert [each.present for each in looks] == [True, False, True, False, False]
    remove(cloud, "secret", good.handle)
