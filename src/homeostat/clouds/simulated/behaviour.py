"""How a simulated cloud behaves: its delays, its limits and its faults."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Faults:
    """Probabilities of faults, for a call or for one item of it.

    Attributes:
        unreachable: The whole call fails and is not sent.
        refused: The item is not done now.
        lost: The item is done, but its answer is lost.
        late_s: Seconds for which an item whose answer is lost may still be done, as far as the cloud knows.
        error: A created thing ends in the status error.
        snapshot: A snapshot ends in the status error.
        fence: What is to be cut off of a server is not seen to be so.
        retry_after_s: Seconds after which a refusal says to retry; None if it says nothing.
    """

    unreachable: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    late_s: float = 0.0
    error: float = 0.0
    snapshot: float = 0.0
    fence: float = 0.0
    retry_after_s: float | None = 1.0


@dataclass(slots=True)
class CloudBehaviour:
    """Behaviour of the cloud.

    Attributes:
        build_s: Seconds until a thing is ready, for kinds that build.
        delete_s: Seconds until a deleted thing is absent.
        snapshot_s: Seconds until a snapshot is complete.
        listing_lag_s: Seconds until a new thing is listed.
        look_max_s: Longest time between looks at many things in progress; 0 where looks cost little.
        quota: Most things; None for no limit.
        idempotent: Whether a second creation with the same token returns the same thing.
        faults: Probabilities of faults.
    """

    build_s: float = 0.0
    delete_s: float = 0.0
    snapshot_s: float = 0.0
    listing_lag_s: float = 0.0
    look_max_s: float = 0.0
    quota: int | None = None
    idempotent: bool = True
    faults: Faults = field(default_factory=Faults)
