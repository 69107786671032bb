"""Notifications of the service on OpenStack's message bus."""

import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from homeostat.cli.settings import ServiceSettings

if TYPE_CHECKING:
    from homeostat.store.database import Database


def stack_notifier(settings: ServiceSettings, db: "Database") -> Iterator[Callable[[], int]]:
    """Yield the sender of notifications about stacks, to be called once a second; nothing without a bus."""
    if not settings.stack_notifications:
        return
    from homeostat.clock import SystemClock
    from homeostat.message_bus import Sender
    from homeostat.notifications.stack_notifications import StackNotifier

    publisher = f"orchestration.{socket.gethostname()}"
    sender = Sender(settings.stack_notifications, settings.stack_notification_topic, publisher)
    yield StackNotifier(db, sender.send, SystemClock()).round
