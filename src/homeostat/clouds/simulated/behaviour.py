"""Behaviour of a simulated cloud: its delays, limits and faults."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Faults:
    """Probabilities of faults, for a call or for an item of it.

    Attributes:
        unreachable: The whole call fails and is not sent.
        refused: The item is not carried out now.
        lost: The item is carried out, but its answer is lost.
        late_s: Seconds for which the cloud may still carry out an item after its lost answer, as its error says.
        error: A created object ends in the status error.
        snapshot: A snapshot ends in the status error.
        fence: A cut-off resource of a server is not yet seen as cut off.
        retry_after_s: Seconds until the retry that a refusal suggests; None for no suggestion.
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
        build_s: Seconds until an object is ready, for kinds that build.
        delete_s: Seconds until a deleted object is absent.
        snapshot_s: Seconds until a snapshot is complete.
        listing_lag_s: Seconds until a new object is listed.
        look_max_s: Maximum seconds between looks at many objects in progress; 0 if looks are cheap.
        quota: Maximum number of objects; None for no limit.
        idempotent: Whether a second creation with the same token returns the same object.
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
