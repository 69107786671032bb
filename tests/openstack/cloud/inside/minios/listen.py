"""Prints Nova's notifications, one JSON object a line: python -m minios.listen URL POOL.

Listens in a pool of its own, so that it takes nothing away from other listeners, until SIGTERM. The first line is {}:
from then on none is missed.
"""

import json
import signal
import sys
import threading
from typing import Any

import kombu
import oslo_messaging
from oslo_config import cfg

TOPICS = ("notifications", "versioned_notifications")


class Printer:
    def _print(self, context: object, publisher_id: str, event_type: str, payload: Any, metadata: object) -> str:
        # A versioned payload wraps its fields.
        data = payload.get("nova_object.data", payload)
        found = {"event_type": event_type, "publisher_id": publisher_id, "payload": data}
        print(json.dumps(found, default=str), flush=True)
        return str(oslo_messaging.NotificationResult.HANDLED)

    info = warn = error = _print


def main() -> None:
    url, pool = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    conf = cfg.ConfigOpts()
    conf([])
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    targets = [oslo_messaging.Target(exchange="nova", topic=topic) for topic in TOPICS]
    listener = oslo_messaging.get_notification_listener(
        transport, targets, [Printer()], executor="threading", pool=pool
    )
    listener.start()
    try:
        print("{}", flush=True)
        threading.Event().wait()
    finally:
        listener.stop()
        with kombu.Connection(url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete(pool)  # or it would be filled for ever


if __name__ == "__main__":
    main()
