"""What the requests of one process share, and how much of it one of those who ask gets (ADR 0085)."""

from anyio import CapacityLimiter

from homeostat.api.http.fair_places import FairPlaces

REQUESTS, REQUESTS_EACH = 32, 8
"""Requests that are worked on at the same time: fewer than the threads that there are for them."""
LOGINS, LOGINS_EACH = 16, 4
"""Callers that are being identified at the same time: hashes of passwords are computed, other services are asked."""
BODIES, BODIES_EACH = 64, 16
"""Large bodies in memory at the same time."""
WAITING_MAX = 1000
"""Requests of one sharer that may wait for one of these: as many as one address has connections.

Servers behind one address may all signal at once, and have no second try.
"""


class Shares:
    """Places of one process, for use on one event loop.

    Attributes:
        requests: Places of requests, by project and user; those of signed addresses by the client's address.
        logins: Places of callers that are being identified, by the client's address.
        login_threads: Threads that identify callers, apart from those of requests: these may all wait for the service
            that knows the users.
        bodies: Places of large bodies, by the same as those of requests.
    """

    def __init__(self) -> None:
        self.requests = FairPlaces(REQUESTS, "", each_max=REQUESTS_EACH, waiting_max=WAITING_MAX)
        self.logins = FairPlaces(LOGINS, "that log in", each_max=LOGINS_EACH, waiting_max=WAITING_MAX)
        self.login_threads = CapacityLimiter(LOGINS)
        self.bodies = FairPlaces(BODIES, "with large bodies", each_max=BODIES_EACH, waiting_max=WAITING_MAX)
