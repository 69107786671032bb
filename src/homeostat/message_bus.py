"""oslo.messaging, loaded in one place: OpenStack's way to a message bus."""

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
"""Version of the form in which notifications are sent: `messagingv2`."""


def transport(url: str) -> "oslo_messaging.transport.Transport":
    """Return the way to a message bus; nothing is connected yet."""
    from oslo_config import cfg

    options = cfg.ConfigOpts()
    options([], project="homeostat", default_config_files=[], default_config_dirs=[])
    return library().get_notification_transport(options, url=url)


def shown(url: str) -> str:
    """Return a transport URL without users and passwords; such a URL may name several hosts."""
    scheme, _, rest = url.partition("://")
    hosts, slash, path = rest.partition("?")[0].rpartition("@")[2].partition("/")
    return f"{scheme}://{hosts}{slash}{path}"


class _Losses(logging.Handler):
    """Says once that a message bus is away, and once that it is back; the library says so at every attempt."""

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
    """Sender of notifications to one topic of a message bus. Not to be shared between threads."""

    def __init__(self, url: str, topic: str, publisher: str) -> None:
        """Take the settings; nothing is connected before the first notification.

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
        """Send a notification, and return when the bus has it.

        Args:
            event_type: As in `orchestration.stack.create.end`.
            priority: `info` or `error`.
            payload: What it tells.

        Raises:
            Transient: The bus does not take it.
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
            # Not by way of a notifier: its drivers log and drop what they cannot send.
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
    """Return oslo.messaging, which uses threads where that is said before it is loaded, and else eventlet."""
    from oslo_service import backend

    logging.getLogger("oslo_service").setLevel(logging.WARNING)
    backend.init_backend(backend.BackendType.THREADING)
    if not any(isinstance(each, _Losses) for each in _LIBRARY.handlers):
        _LIBRARY.addHandler(_Losses())
        _LIBRARY.propagate = False
        _LIBRARY.setLevel(logging.INFO)
    import oslo_messaging

    return oslo_messaging
