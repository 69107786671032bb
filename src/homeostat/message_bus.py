"""Message bus by oslo.messaging, which is loaded only here."""

import logging
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from homeostat.model.errors import Transient

if TYPE_CHECKING:
    import oslo_messaging

LOG = logging.getLogger(__name__)
ENVELOPE = 2.0
"""Version of the notification format `messagingv2`."""


def transport(url: str) -> "oslo_messaging.transport.Transport":
    """Return the transport to a message bus, not connected yet."""
    from oslo_config import cfg

    options = cfg.ConfigOpts()
    options([], project="homeostat", default_config_files=[], default_config_dirs=[])
    return library().get_notification_transport(options, url=url)


def shown(url: str) -> str:
    """Return a transport URL, which may name several hosts, without users and passwords."""
    scheme, _, rest = url.partition("://")
    hosts, slash, path = rest.partition("?")[0].rpartition("@")[2].partition("/")
    return f"{scheme}://{hosts}{slash}{path}"


class _Losses(logging.Handler):
    """Logs the loss and the return of a message bus once each, while the library logs every attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._away = False

    def emit(self, record: logging.LogRecord) -> None:
        back = "Reconnected" in str(record.msg)
        if back and self._away:
            LOG.info("a message bus is back")
        elif record.levelno >= logging.ERROR and not self._away:
            LOG.warning("a message bus is away: %s", record.getMessage())
        self._away = not back and (self._away or record.levelno >= logging.ERROR)


class Sender:
    """Sender of notifications to a topic of a message bus. Not to be shared between threads."""

    def __init__(self, url: str, topic: str, publisher: str) -> None:
        """Store the settings; the connection is made with the first notification.

        Args:
            url: Transport URL of oslo.messaging, with the password.
            topic: `EXCHANGE/TOPIC`.
            publisher: Name of the sender in the notifications.
        """
        self._url = url
        self._exchange, _, self._topic = topic.rpartition("/")
        self._publisher = publisher
        self._transport: Any = None

    def send(self, event_type: str, priority: str, payload: Mapping[str, Any]) -> None:
        """Send a notification, and return when the bus has accepted it.

        Args:
            event_type: As in `orchestration.stack.create.end`.
            priority: `info` or `error`.
            payload: Content of the notification.

        Raises:
            Transient: The bus does not accept the notification.
        """
        oslo_messaging = library()
        message = {
            "message_id": str(uuid.uuid4()),
            "publisher_id": self._publisher,
            "event_type": event_type,
            "priority": priority.upper(),
            "payload": payload,
            "timestamp": str(datetime.now(UTC).replace(tzinfo=None)),
        }
        target = oslo_messaging.Target(exchange=self._exchange or None, topic=f"{self._topic}.{priority}")
        try:
            self._transport = self._transport or transport(self._url)
            # Not through a notifier, whose drivers only log failures and drop the notification.
            self._transport._send_notification(target, {}, message, version=ENVELOPE, retry=0)
        except Exception as error:
            words = str(error).replace(self._url, shown(self._url))
            raise Transient(f"{shown(self._url)} does not answer: {type(error).__name__}: {words}") from error

    def close(self) -> None:
        """Close the connections."""
        if self._transport is not None:
            self._transport.cleanup()
            self._transport = None


_LIBRARY = logging.getLogger("oslo.messaging")


def library() -> Any:
    """Return the module oslo_messaging."""
    from oslo_service import backend

    logging.getLogger("oslo_service").setLevel(logging.WARNING)
    backend.init_backend(backend.BackendType.THREADING)  # before the import: the default is eventlet
    if not any(isinstance(handler, _Losses) for handler in _LIBRARY.handlers):
        _LIBRARY.addHandler(_Losses())
        _LIBRARY.propagate = False
        _LIBRARY.setLevel(logging.INFO)
    import oslo_messaging

    return oslo_messaging
