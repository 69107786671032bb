"""Hosts of servers that do not answer, as far as Nova's policy lets the login see that.

Nova goes on calling a server ACTIVE whose host is down. To administrators it tells the host of each server and, in the
list of services, when each host was last heard of; others see nothing of it, unless their operator lets them see the
field `host_status`.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from homeostat.clouds.openstack.answers import Forbidden
from homeostat.clouds.openstack.service import Wire
from homeostat.model.errors import Transient

HOST = "OS-EXT-SRV-ATTR:host"
LOOK_S = 5.0
"""Seconds for which a list of services is used."""
REFUSED_S = 600.0
"""Seconds after which a list that policy refused is asked for again."""
NOT_ANSWERING = ("UNKNOWN", "DOWN")
"""Nova's `host_status` where a host is not heard of, or was declared down."""


class ServerHosts:
    """The compute hosts, as one process knows them. Safe to share between threads."""

    def __init__(self, listed: Callable[[], Iterator[Wire]], monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the function that lists the services of compute hosts, and the clock of this process."""
        self._list = listed
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._silent: Mapping[str, str] | None = None

    def silence_of(self, server: Wire) -> str:
        """Return why the host of a server does not answer; "" if it does, or that cannot be seen."""
        host = str(server.get(HOST) or "")
        silent = self._hosts() if host else None
        if silent is None:
            lost = server.get("host_status") in NOT_ANSWERING
            return "its host does not answer" if lost else ""
        return f"its host {host} does not answer since {silent[host]}" if host in silent else ""

    def _hosts(self) -> Mapping[str, str] | None:
        """Return the hosts that do not answer -> when they last did; None where that cannot be seen."""
        with self._lock:
            now = self._monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                try:
                    self._silent = {
                        str(each["host"]): str(each["updated_at"]) for each in self._list() if each["state"] == "down"
                    }
                except Forbidden:
                    self._silent, self._look_at = None, now + REFUSED_S
                except Transient:
                    # What was known last still counts: no answer is no news.
                    pass
            return self._silent
