"""Notifications of a real Nova over a real RabbitMQ, and a message bus that is away."""

import contextlib
import logging
import queue
import socket

import pytest

from homeostat.clouds.port import ChangeNotice
from tests.openstack.message_bus import PROMPT_S, listening, send
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.waiting import until


def all_of(heard: "queue.Queue[ChangeNotice]") -> list[ChangeNotice]:
    found = []
    with contextlib.suppress(queue.Empty):
        while True:
            found.append(heard.get_nowait())
    return found


@pytest.mark.shows("CV7")
def test_a_server_deleted_by_hand_is_noticed_at_once(openstack_cloud: OpenStack, project: Project, pool: str) -> None:
    url = openstack_cloud.transport_url
    with (
        contextlib.closing(project.connection()) as user,
        listening(url, pool=pool) as (one, first),
        listening(url, pool=pool) as (other, second),
    ):
        until(lambda: one.connected.is_set() and other.connected.is_set(), "the listeners")
        image = next(iter(user.image.images()))
        flavor = next(iter(user.compute.flavors()))
        server = user.compute.create_server(name="gone", image_id=image.id, flavor_id=flavor.id, networks="none")
        notice = ChangeNotice("server", server.id)
        seen: list[ChangeNotice] = []

        def noticed() -> bool:
            seen[:] = [each for each in (*all_of(first), *all_of(second)) if each == notice]
            return bool(seen)

        until(noticed, "a notice of the creation")
        user.compute.wait_for_server(server, wait=60)
        user.compute.delete_server(server)
        user.compute.wait_for_delete(server, wait=60)
        until(noticed, "a notice of the deletion", within_s=PROMPT_S)


def test_each_notification_reaches_one_process_of_a_service(openstack_cloud: OpenStack, pool: str) -> None:
    url = openstack_cloud.transport_url
    with listening(url, pool=pool) as (one, first), listening(url, pool=pool) as (other, second):
        until(lambda: one.connected.is_set() and other.connected.is_set(), "the listeners")
        ids = {f"test-{n}" for n in range(10)}
        for each in sorted(ids):
            send(url, "neutron", "port.delete.end", {"port": {}, "port_id": each})
        seen: list[ChangeNotice] = []

        def heard() -> bool:
            seen.extend(each for each in (*all_of(first), *all_of(second)) if each.handle in ids)
            return len(seen) >= len(ids)

        until(heard, "all notices")
        assert sorted(each.handle for each in seen) == sorted(ids)


def test_a_message_bus_that_is_away_is_named_once_and_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"rabbit://user:s3cret@127.0.0.1:{free.getsockname()[1]}/"
    attempts = Attempts()
    library = logging.getLogger("oslo.messaging")
    library.addHandler(attempts)
    try:
        with caplog.at_level(logging.INFO), listening(url, pool="none"):
            until(lambda: attempts.count >= 2, "the second attempt")
    finally:
        library.removeHandler(attempts)
    # The records of loggers that pass nothing on are captured, too.
    assert [each.levelname for each in caplog.records if each.name.startswith("homeostat")] == ["WARNING"]
    assert not library.propagate
    assert "s3cret" not in caplog.text


class Attempts(logging.Handler):
    """Counts what the library says about its attempts."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.levelno >= logging.ERROR
