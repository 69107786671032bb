"""Unreachable hosts of servers, as far as Nova's policy shows them to the login.

Nova shows a server as ACTIVE even if its host is down. Administrators see the host of each server and, in the list of
services, when each host last reported. Other users see neither, unless their operator shows them the field
`host_status`.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from homeostat.clouds.openstack.answers import Forbidden
from homeostat.clouds.openstack.service import Wire
from homeostat.model.errors import Transient

HOST = "OS-EXT-SRV-ATTR:host"
LOOK_S = 5.0
"""Seconds for which a list of services is cached."""
REFUSED_S = 600.0
"""Seconds until a list refused by policy is requested again."""
NOT_ANSWERING = ("UNKNOWN", "DOWN")
"""Nova's `host_status` of a host that does not report, or was declared down."""


class ServerHosts:
    """The compute hosts, as this process last saw them. Safe to share between threads."""

    def __init__(self, listed: Callable[[], Iterator[Wire]], monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the function that lists the services of compute hosts, and the clock of this process."""
        self._list = listed
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._silent: Mapping[str, str] | None = None

    def silence_of(self, server: Wire) -> str:
        """Return why the host of a server does not answer; "" if the host answers or cannot be seen."""
        host = str(server.get(HOST) or "")
        silent = self._hosts() if host else None
        if silent is None:
            lost = server.get("host_status") in NOT_ANSWERING
            return "its host does not answer" if lost else ""
        return f"its host {host} does not answer since {silent[host]}" if host in silent else ""

    def _hosts(self) -> Mapping[str, str] | None:
        """Return unreachable host -> time of its last report; None if policy hides the hosts."""
        with self._lock:
            now = self._monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                try:
                    self._silent = {
                        str(service["host"]): str(service["updated_at"])
                        for service in self._list()
                        if service["state"] == "down"
                    }
                except Forbidden:
                    self._silent, self._look_at = None, now + REFUSED_S
                except Transient:
                    # The last known hosts still count: a missing answer says nothing about them.
                    pass
            return self._silent
