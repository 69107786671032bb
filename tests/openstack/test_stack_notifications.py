"""What happens to stacks, on a real message bus, for listeners to Heat's notifications."""

import contextlib
import queue
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.message_bus import Sender, library, transport
from homeostat.model.errors import Transient
from homeostat.store.database import Database, sqlite_url
from homeostat.store.schema import message_bus
from tests.cli.conftest import Home
from tests.openstack.running import OpenStack, eventually

oslo_messaging = library()
TEMPLATE = """\
heat_template_version: 2021-04-16
description: a shop
resources:
  value: {type: OS::Heat::Value, properties: {value: 1}}
"""
HEARD_S = 120.0
Heard = tuple[str, str, dict[str, Any]]


class Endpoint:
    """What oslo.messaging calls for a notification, by its priority."""

    def __init__(self) -> None:
        self.heard: queue.Queue[Heard] = queue.Queue()

    def info(self, context: Any, publisher: str, event_type: str, payload: dict[str, Any], metadata: Any) -> None:
        self.heard.put((publisher, event_type, payload))

    error = info


@pytest.fixture
def endpoint(openstack_cloud: OpenStack, pool: str) -> Iterator[Endpoint]:
    """One that listens as telemetry does."""
    made = Endpoint()
    listener = oslo_messaging.get_notification_listener(
        transport(openstack_cloud.transport_url),
        [oslo_messaging.Target(exchange="heat", topic="notifications")],
        [made],
        executor="threading",
        pool=pool,
    )
    listener.start()
    yield made
    listener.stop()
    listener.wait()


@pytest.fixture
def home(openstack_cloud: OpenStack, endpoint: Endpoint, tmp_path: Path) -> Iterator[Home]:
    """A service with two workers that reports its stacks."""
    made = Home(tmp_path / "state")
    bus = openstack_cloud.transport_url
    flags = ("--port", "0", "--workers", "2", "--stack-notifications", bus)
    started = made.run("serve", "--detach", *flags)
    assert started.code == 0, started.err
    yield made
    made.stop()


def test_a_listener_hears_of_a_stack(home: Home, endpoint: Endpoint, tmp_path: Path) -> None:
    template = tmp_path / "shop.yaml"
    template.write_text(TEMPLATE)
    with contextlib.closing(Database(sqlite_url(home.state.database), time.time)) as db:
        eventually(lambda: _cursors(db) or None, "the first round of the notifier, which begins with the newest event")
    assert home.run("up", str(template), "shop").code == 0
    assert home.run("down", "shop", "-y").code == 0
    heard = [endpoint.heard.get(timeout=HEARD_S) for _ in range(4)]
    types = [event_type.removeprefix("orchestration.stack.") for _, event_type, _ in heard]
    assert types == ["create.start", "create.end", "delete.start", "delete.end"]
    publisher, _, payload = heard[1]
    assert publisher == f"orchestration.{socket.gethostname()}"
    assert (payload["stack_name"], payload["state"], payload["description"]) == ("shop", "CREATE_COMPLETE", "a shop")


def _cursors(db: Database) -> list[Any]:
    with db.read() as tx:
        return list(tx.execute(select(message_bus)))


def test_a_bus_that_is_away_is_named_without_its_password() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"rabbit://user:s3cret@127.0.0.1:{free.getsockname()[1]}/"
        sender = Sender(url, "heat/notifications", "orchestration.test")
        with pytest.raises(Transient) as raised:
            sender.send("orchestration.stack.create.start", "info", {})
        sender.close()
    assert "s3cret" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)
