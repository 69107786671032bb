"""Change notices from the notifications on the message bus of OpenStack's services.

A notice is only a hint where to look (invariant 1, CONTRIBUTING.md): the next look makes up for lost notices.
"""

import contextlib
import logging
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeostat.clouds.port import ChangeNotice
from homeostat.message_bus import library, shown, transport

if TYPE_CHECKING:
    import oslo_messaging

LOG = logging.getLogger(__name__)
POOL = "homeostat"
PRIORITIES = ("info", "warn", "error")
TOPICS = (
    "nova/versioned_notifications",
    "nova/notifications",
    "neutron/notifications",
    "openstack/notifications",
    "cinder/notifications",
    "octavia/notifications",
)
"""`EXCHANGE/TOPIC` of each service; Cinder's exchange is `openstack` unless its operator names another."""
WAITING_MAX = 10_000
"""Maximum number of unread notices; beyond it, the oldest is dropped."""
ASKED_S = 0.5
"""Seconds between checks whether to stop."""
AGAIN_S = 30.0
"""Seconds until a listener that failed to start is restarted."""
NEWS = re.compile(r"(?!.*\.(start|exists)$)")
"""Event types of changes; `exists` is only for billing, and each `start` is followed by an `end` or an `error`."""
IN_BRACES = re.compile(r"\{([^}]+)\}")


@dataclass(frozen=True, slots=True)
class Event:
    """The notifications about objects of a kind.

    Attributes:
        prefix: Prefix of their event types.
        kind: Kind of the objects.
        paths: Places of the handle in the payload: fields separated by `/`, or a handle with such paths in braces. The
            first existing place counts.
    """

    prefix: str
    kind: str
    paths: tuple[str, ...]

    def handle_in(self, payload: Mapping[str, Any]) -> str:
        """Return the handle in a payload; "" if absent."""
        return next(filter(None, (_handle(payload, path) for path in self.paths)), "")


def _networking(word: str, kind: str = "") -> Event:
    return Event(f"{word}.", kind or word, (f"{word}/id", f"{word}_id", "id"))


EVENTS = (
    Event("instance.", "server", ("nova_object.data/uuid",)),
    Event("compute.instance.", "server", ("instance_id",)),
    Event("server_group.", "server_group", ("nova_object.data/uuid",)),
    Event("servergroup.", "server_group", ("server_group_id",)),
    Event("keypair.", "keypair", ("{nova_object.data/user_id}/{nova_object.data/name}", "{user_id}/{key_name}")),
    Event("router.interface.", "router_interface", ("router_interface/port_id",)),
    _networking("network"),
    _networking("subnet"),
    _networking("port"),
    _networking("router"),
    _networking("floatingip", "floating_ip"),
    _networking("security_group"),
    _networking("security_group_rule"),
    _networking("subnetpool"),
    _networking("address_scope"),
    _networking("trunk"),
    _networking("policy", "qos_policy"),
    _networking("rbac_policy"),
    _networking("segment"),
    _networking("metering_label"),
    _networking("metering_label_rule", "metering_rule"),
    Event("volume.", "volume", ("volume_id",)),
    Event("snapshot.", "volume_snapshot", ("snapshot_id",)),
    Event("volume_type.", "volume_type", ("volume_types/id", "id")),
    Event("octavia.loadbalancer.", "load_balancer", ("loadbalancer_id", "id")),
)
"""The first row with a matching prefix counts."""


def notice_of(event_type: str, payload: Any) -> ChangeNotice | None:
    """Return the notice for a notification; None if the notification is not about a change of an object."""
    if not isinstance(payload, Mapping) or NEWS.match(event_type) is None:
        return None
    event = next((row for row in EVENTS if event_type.startswith(row.prefix)), None)
    handle = event.handle_in(payload) if event is not None else ""
    return ChangeNotice(event.kind, handle) if event is not None and handle else None


def _handle(payload: Mapping[str, Any], path: str) -> str:
    parts = {field: _at(payload, field) for field in IN_BRACES.findall(path)}
    if not parts:
        return _at(payload, path)
    return IN_BRACES.sub(lambda match: parts[match[1]], path) if all(parts.values()) else ""


def _at(payload: Any, path: str) -> str:
    for name in path.split("/"):
        payload = payload.get(name) if isinstance(payload, Mapping) else None
    return payload if isinstance(payload, str) else ""


@dataclass(frozen=True, slots=True)
class NotificationConfig:
    """Sources of notifications.

    Attributes:
        urls: Transport URLs of oslo.messaging, with passwords, and with options after `?`.
        topics: `EXCHANGE/TOPIC` of the services.
        pool: Name of the queue shared by all processes of the service, since only one process has to see each
            notification; further services have their own queues.
    """

    urls: tuple[str, ...] = ()
    topics: tuple[str, ...] = TOPICS
    pool: str = POOL


class Notifications:
    """The notifications of all message buses, as change notices. Safe to share between threads."""

    def __init__(self, config: NotificationConfig) -> None:
        """Keep the settings; nothing is connected before `watch`."""
        self._config = config
        self._notices: queue.Queue[ChangeNotice] = queue.Queue(WAITING_MAX)
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=(url,), name="notifications", daemon=True) for url in config.urls
        ]
        self._lock = threading.Lock()
        self._started = False
        self.connected = threading.Event()
        """Set once a message bus has answered."""

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield change notices of all projects until `stop()` is true; end at once without a message bus."""
        if not self._threads:
            return
        self._start()
        while not stop():
            try:
                yield self._notices.get(timeout=ASKED_S)
            except queue.Empty:
                continue

    def close(self) -> None:
        """End the listeners, without waiting for those still connecting."""
        self._stopped.set()

    def heard(self, event_type: str, payload: Any) -> None:
        """Queue a notification; if the queue is full, the oldest is dropped."""
        notice = notice_of(event_type, payload)
        while notice is not None:
            try:
                self._notices.put_nowait(notice)
                return
            except queue.Full:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        try:
            self._notices.get_nowait()
        except queue.Empty:
            return  # read meanwhile by `watch`

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                for thread in self._threads:
                    thread.start()

    def _follow(self, url: str) -> None:
        """Listen to a message bus until the end; oslo.messaging reconnects by itself."""
        while not self._stopped.is_set():
            try:
                listener = self._listener(url)
                listener.start()  # returns when the bus answers
            except Exception as error:  # noqa: BLE001 - any error may quote the URL with its password
                words = str(error).replace(url, shown(url))
                LOG.error("cannot listen to %s: %s: %s", shown(url), type(error).__name__, words)
                self._stopped.wait(AGAIN_S)
                continue
            LOG.info("notifications come from %s", shown(url))
            self.connected.set()
            self._stopped.wait()
            listener.stop()
            listener.wait()  # closes the connection

    def _listener(self, url: str) -> "oslo_messaging.NotificationListener":
        oslo_messaging = library()
        places = [topic.rpartition("/") for topic in self._config.topics]
        return oslo_messaging.get_notification_listener(
            transport(url),
            [oslo_messaging.Target(exchange=exchange or None, topic=topic) for exchange, _, topic in places],
            [_Endpoint(self.heard)],
            executor="threading",
            pool=self._config.pool,
        )


class _Endpoint:
    """Endpoint of oslo.messaging, with a method for each priority."""

    def __init__(self, heard: Callable[[str, Any], None]) -> None:
        self._heard = heard

    def info(self, context: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> None:
        self._heard(event_type, payload)

    error = warn = info


@dataclass(frozen=True, slots=True)
class Listened:
    """State of a message bus.

    Attributes:
        listeners: Processes that listen to the queue of the service.
        waiting: Notifications in this queue.
        heard: Notifications that arrived during the check.
    """

    listeners: int
    waiting: int
    heard: int


def listened(url: str, config: NotificationConfig, listen_s: float, timeout_s: float) -> Listened:
    """Inspect a message bus, and listen for a while with a separate queue, so that workers lose no notifications.

    Raises:
        Exception: The bus does not answer, or is no RabbitMQ.
    """
    import kombu
    from oslo_config import cfg

    oslo_messaging = library()
    parsed = oslo_messaging.TransportURL.parse(cfg.ConfigOpts(), url)
    if parsed.transport not in ("rabbit", "kombu"):
        raise ValueError("only RabbitMQ can be looked at")
    host = parsed.hosts[0]
    with kombu.Connection(
        hostname=host.hostname,
        port=host.port,
        userid=host.username,
        password=host.password,
        virtual_host=parsed.virtual_host or "/",
        ssl=parsed.query.get("ssl", "").lower() in ("1", "true", "yes"),
        connect_timeout=timeout_s,
    ) as bus:
        own = kombu.Queue(f"{config.pool}-doctor-{uuid.uuid4()}", exclusive=True, auto_delete=True, durable=False)
        heard: list[object] = []
        with bus.Consumer(own.bind(bus.default_channel), callbacks=[lambda body, _: heard.append(body)], no_ack=True):
            places = [topic.rpartition("/") for topic in config.topics]
            for exchange, topic in {(exchange, topic) for exchange, _, topic in places}:
                _listen_to(bus, own.name, exchange, topic)
            _hear(bus, listen_s)
        try:
            _, waiting, listeners = bus.channel().queue_declare(config.pool, passive=True)
        except bus.channel_errors:
            waiting = listeners = 0
    return Listened(listeners, waiting, len(heard))


def _listen_to(bus: Any, queue_name: str, exchange: str, topic: str) -> None:
    """Bind a queue to a topic; an exchange that no service has declared yet is skipped."""
    with bus.channel() as channel, contextlib.suppress(*bus.channel_errors):
        for priority in PRIORITIES:
            channel.queue_bind(queue_name, exchange or "openstack", f"{topic}.{priority}")


def _hear(bus: Any, listen_s: float) -> None:
    end = time.monotonic() + listen_s
    with contextlib.suppress(TimeoutError):
        while (rest := end - time.monotonic()) > 0:
            bus.drain_events(timeout=rest)
