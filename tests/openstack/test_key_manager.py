"""Key management with a real Barbican."""

import base64
import uuid
from collections.abc import Callable, Iterator

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.service import Service
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
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


def test_a_bad_secret_does_not_spoil_the_others(cloud: OpenStackCloud) -> None:
    specs = [{"name": "a", "payload": "x"}, {"name": "b", "payload": "y", "payload_content_type": "strange"}]
    good, bad = cloud.create("secret", [Creation(f"s-{uuid.uuid4()}", each) for each in specs])
    assert isinstance(good, Observation)
    assert isinstance(bad, Terminal)
    looks = cloud.observe("secret", [good.handle, NEVER, good.handle.rpartition("/")[2], "x", "y"])
    assert [each.present for each in looks] == [True, False, True, False, False]
    remove(cloud, "secret", good.handle)
