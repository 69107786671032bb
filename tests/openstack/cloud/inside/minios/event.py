"""Sends one event to aodh-listener, as Ceilometer would: python -m minios.event AODH.CONF EVENT-TYPE [TRAIT=VALUE…].

An alarm hears the events of its own project only: give project_id=ID.
"""

import sys
import uuid

import oslo_messaging
from aodh import messaging, service
from oslo_utils import timeutils

STRING = 1
"""The type of a trait."""


def main() -> None:
    path, event_type, *traits = sys.argv[1:]
    conf = service.prepare_service(["--config-file", path], with_gmr=False)
    notifier = oslo_messaging.Notifier(
        messaging.get_transport(conf), "minios", driver="messagingv2", topics=[conf.listener.event_alarm_topic]
    )
    event = {
        "event_type": event_type,
        "message_id": str(uuid.uuid4()),
        "generated": timeutils.utcnow().isoformat(),
        "traits": [[name, STRING, value] for name, _, value in (each.partition("=") for each in traits)],
    }
    notifier.sample({}, "event", [event])


if __name__ == "__main__":
    main()
