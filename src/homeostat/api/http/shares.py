"""The shared places of an API process, and the shares of each project, user and address (ADR 0085)."""

from anyio import CapacityLimiter

from homeostat.api.http.fair_places import FairPlaces

REQUESTS, REQUESTS_EACH = 32, 8
"""Concurrent requests: fewer than the threads for requests."""
LOGINS, LOGINS_EACH = 16, 4
"""Concurrent authentications, which compute hashes of passwords or call identity services."""
BODIES, BODIES_EACH = 64, 16
"""Large bodies in memory."""
WAITING_MAX = 1000
"""Waiting requests of a sharer: as many as an address may have connections.

Servers behind a common address may all signal at once, and do not retry.
"""


class Shares:
    """Places of a process, for use on one event loop.

    Attributes:
        requests: Places of requests, by project and user; for signed addresses by the client's address.
        logins: Places of authentications, by the client's address.
        login_threads: Threads of authentications, separate from the threads of requests: all of them may be waiting for
            the identity service.
        bodies: Places of large bodies, with the same sharers as requests.
    """

    def __init__(self) -> None:
        self.requests = FairPlaces(REQUESTS, "", each_max=REQUESTS_EACH, waiting_max=WAITING_MAX)
        self.logins = FairPlaces(LOGINS, "that log in", each_max=LOGINS_EACH, waiting_max=WAITING_MAX)
        self.login_threads = CapacityLimiter(LOGINS)
        self.bodies = FairPlaces(BODIES, "with large bodies", each_max=BODIES_EACH, waiting_max=WAITING_MAX)
