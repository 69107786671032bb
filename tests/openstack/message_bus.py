"""The message bus of the services, as the service's own processes and another service use it."""

import contextlib
import queue
import threading
from collections.abc import Iterator

from kombu import Connection as Bus
from oslo_config import cfg

from homeostat.clouds.openstack.notifications import NotificationConfig, Notifications
from homeostat.clouds.port import ChangeNotice
from homeostat.message_bus import library
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.running import OpenStack
from tests.waiting import QUIET, until

oslo_messaging = library()
PROMPT_S = 1.0 if QUIET else 30.0


@contextlib.contextmanager
def without_messages(cloud: OpenStack) -> Iterator[None]:
    """The message bus of this cloud takes no connections: other clouds of the machine share the server."""
    site = open_cloud(cloud.directory).site
    vhost = site.settings.name
    site.call("rabbitmqctl", "set_vhost_limits", "-p", vhost, '{"max-connections": 0}')
    try:
        site.call("rabbitmqctl", "close_all_connections", "--vhost", vhost, "a test")
        yield
    finally:
        site.call("rabbitmqctl", "clear_vhost_limits", "-p", vhost)


@contextlib.contextmanager
def listening(*urls: str, pool: str) -> Iterator[tuple[Notifications, queue.Queue[ChangeNotice]]]:
    """The notices of one process of a service."""
    heard: queue.Queue[ChangeNotice] = queue.Queue()
    stop = threading.Event()
    notifications = Notifications(NotificationConfig(urls, pool=pool))

    def follow() -> None:
        for each in notifications.watch(stop.is_set):
            heard.put(each)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield notifications, heard
    finally:
        stop.set()
        notifications.close()
        thread.join(timeout=PROMPT_S)
        assert not thread.is_alive(), "the listener does not stop"


def send(url: str, exchange: str, event_type: str, payload: dict[str, object]) -> None:
    """Send what a service would."""
    options = cfg.ConfigOpts()
    options([], project="test", default_config_files=[], default_config_dirs=[])
    transport = oslo_messaging.get_notification_transport(options, url=url)
    transport.conf.set_override("control_exchange", exchange)
    notifier = oslo_messaging.Notifier(
        transport, publisher_id="network.test", driver="messagingv2", topics=["notifications"]
    )
    notifier.info({}, event_type, payload)
    transport.cleanup()


def remove_queue(url: str, name: str) -> None:
    """Once nobody listens to it: a listener would make it again."""
    with Bus(url.replace("rabbit://", "amqp://")) as bus:

        def is_removed() -> bool:
            with contextlib.suppress(bus.channel_errors), bus.channel() as channel:
                channel.queue_delete(name, if_unused=True)
                return True
            return False

        until(is_removed, "a queue without listeners")
