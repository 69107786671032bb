"""Images, on the real service."""

import contextlib
import http.server
import socket
import threading
import time
import uuid
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack import images
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Creation
from homeostat.model.errors import Terminal
from tests.openstack.one_thing import Life, Liver, adapter, live, present
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.waiting import until

RUN = uuid.uuid4().hex[:6]
DATA = b"no disk at all" * 100


@pytest.fixture(scope="module")
def user(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds")) as cloud:
        yield cloud


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/disk" else 404)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA)

    def log_message(self, format: str, *args: object) -> None:
        pass


def own_address() -> str:
    """An address of this machine that is not its loopback, from which Images downloads nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each, contextlib.suppress(OSError):
        each.connect(("198.51.100.1", 9))  # nothing is sent
        return str(each.getsockname()[0])
    return ""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """URL of an image, on the port from which Images downloads."""
    address = own_address()
    if not address or address.startswith("127."):
        pytest.skip("this machine has no address but its loopback")
    try:
        server = http.server.ThreadingHTTPServer((address, 80), Files)
    except OSError as error:
        pytest.skip(f"port 80 cannot be had: {error}")
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{address}/disk"
        server.shutdown()


def values(url: str, **more: object) -> dict[str, object]:
    return {"name": f"disk-{RUN}", "disk_format": "raw", "container_format": "bare", "location": url, **more}


def test_an_image_lives(openstack_cloud: OpenStack, user: OpenStackCloud, url: str, project: Project) -> None:
    with contextlib.closing(openstack_cloud.admin()) as admin_of_all:
        other = str(admin_of_all.current_project_id)
    properties = {"hw_disk_bus": "virtio", "own": 3}
    given = values(url, min_disk=1, min_ram=64, tags=["a"], os_distro="none", extra_properties=properties)
    changes = (
        {"tags": ["b", "c"], "os_version": "1", "os_distro": "some", "protected": True},
        {"extra_properties": {"own": "4"}, "protected": False, "architecture": "x86_64"},
        {"visibility": "shared"},
        {"members": [other]},
        {"members": [], "active": False},
        {"active": True, "visibility": "community"},
    )
    wrong = {"location": "file:///etc/passwd"}
    live(user, openstack_cloud, Life("OS::Glance::WebImage", given, changes, wrong, ("glance-api", "POST", "/import$")))


def test_an_image_has_the_data(user: OpenStackCloud, url: str) -> None:
    id = str(uuid.uuid4())
    one = Liver(user, Life("OS::Glance::WebImage", values(url, id=id, name=f"named-{RUN}", active=False)))
    seen = one.create()
    assert (seen.handle, seen.properties["size"], seen.properties["status"]) == (id, len(DATA), "deactivated")
    assert user.find("image", [one.token])[0].handle == id
    assert user.resolve("image", [f"named-{RUN}", id, "never"]) == [id, id, None]
    other = Liver(user, Life("OS::Glance::WebImage", values(url, id=id)))
    (answer,) = user.create("image", [Creation(other.token, other.spec())])
    assert isinstance(answer, Terminal), answer
    one.gone()


def test_a_protected_image_is_not_deleted(user: OpenStackCloud, url: str) -> None:
    one = Liver(user, Life("OS::Glance::WebImage", values(url, protected=True)))
    one.create()
    (answer,) = user.delete("image", [one.handle])
    assert isinstance(answer, Terminal)
    assert "protected" in str(answer)
    one.values["protected"] = False
    one.update(["protected"])
    one.gone()


def test_a_failed_download_is_reported(user: OpenStackCloud, url: str) -> None:
    one = Liver(user, Life("OS::Glance::WebImage", values(f"{url}-not-there")))
    one.handle = present(user.create("image", [Creation(one.token, one.spec())])[0]).handle
    until(lambda: one.look().properties["status"] == "error", "the download to fail", lambda _: time.sleep(0.5))
    assert "failed" in one.look().properties["fault"]
    one.gone()


def test_a_download_that_was_never_begun_is_reported(
    openstack_cloud: OpenStack, user: OpenStackCloud, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Liver(user, Life("OS::Glance::WebImage", values(url)))
    fault = {"service": "glance-api", "method": "POST", "path": "/import$", "status": 503, "times": 1}
    with openstack_cloud.fault("http", **fault):
        user.create("image", [Creation(one.token, one.spec())])
    found = present(user.find("image", [one.token])[0])
    one.handle = found.handle
    assert found.properties["status"] == "queued"
    monkeypatch.setattr(images, "BEGINS_S", -1)
    seen = one.look().properties
    assert (seen["status"], seen["fault"]) == ("error", "its import was never begun")
    # The same creation once more begins it.
    present(user.create("image", [Creation(one.token, one.spec())])[0])
    monkeypatch.undo()
    one.settled()
    one.gone()
