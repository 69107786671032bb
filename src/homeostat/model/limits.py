"""Limits of stored lists and maps that requests add to: number of entries, and total bytes.

A size limit of a single request does not bound the sum of many requests. So each list or map that a request can add to
is checked against a limit here before the addition is stored. `docs/howto/protect-the-api.md` lists them; a test
compares.
"""

from dataclasses import dataclass

from homeostat.model.errors import Rejected

KI, MI = 1024, 1024 * 1024
QUOTA = "OverQuota"
"""The fault of the Clustering API."""
RECORDS_MAX, SPECS_MAX, RECEIVERS_MAX, MESSAGE_RECEIVERS_MAX, KEYS_MAX = 4096, 1000, 100, 100, 1000


@dataclass(frozen=True, slots=True)
class SumLimit:
    """A limit of a list that grows.

    Attributes:
        what: Name of the list, in documentation and errors.
        count: Maximum number of entries; None if only their bytes count.
        size: Maximum total bytes; None if entries are small.
        remedy: Advice in the error.
        fault: Type of the error.
    """

    what: str
    count: int | None
    size: int | None
    remedy: str
    fault: str = "RequestLimitExceeded"

    def check(self, count: int, size: int, more: int, parts: int = 1) -> None:
        """Check that there is room.

        Args:
            count: Present number of entries.
            size: Present total bytes.
            more: Bytes to add.
            parts: Entries to add.

        Raises:
            Rejected: The limit is exceeded.
        """
        if self.count is not None and parts > 0 and count + parts > self.count:
            raise Rejected(self.fault, f"{self._begin()} are at most {self.count:,}: {self.remedy}")
        if self.size is not None and more > 0 and size + more > self.size:
            message = f"{self._begin()} may have {self.size:,} bytes in all, not {size + more:,}: {self.remedy}"
            raise Rejected(self.fault, message)

    def _begin(self) -> str:
        begin = "Quota exceeded" if self.fault == QUOTA else "Request limit exceeded"
        return f"{begin}: {self.what[0].lower()}{self.what[1:]}"


SIGNALS = SumLimit("Signals of a handle", 10_000, 4 * MI, "send less data, or use several handles")
HANDLER_SIGNALS = SumLimit(
    "Signals that wait for the handler of a resource", 1_000, 4 * MI, "send them again when it has taken those before"
)
FILES = SumLimit("Files of a stack", 5_000, 16 * MI, "have fewer or smaller ones, or name them by URL in user data")
ENVIRONMENT = SumLimit(
    "Environment and parameters of a stack", None, 4 * MI, "update without keeping those before (PUT in place of PATCH)"
)
CONFIGS = SumLimit("Software configs of a project", RECORDS_MAX, 32 * MI, "delete unused ones")
DEPLOYMENTS = SumLimit("Software deployments of a project", RECORDS_MAX, 32 * MI, "delete unused ones")
OUTPUTS = SumLimit(
    "Software deployments of a project, with signal data",
    None,
    64 * MI,
    "signal less, or delete unused ones",
)
PROFILES = SumLimit("Profiles of a project", SPECS_MAX, 16 * MI, "delete some first", QUOTA)
POLICIES = SumLimit("Policies of a project", SPECS_MAX, 16 * MI, "delete some first", QUOTA)
ATTACHED = SumLimit("Policies of a cluster", 32, None, "detach some first", QUOTA)
RECEIVERS = SumLimit("Receivers of a cluster", RECEIVERS_MAX, MI, "delete some first, or give them less", QUOTA)
MESSAGE_RECEIVERS = SumLimit(
    "Receivers of messages of a project", MESSAGE_RECEIVERS_MAX, MI, "delete some first, or give them less", QUOTA
)
METADATA = SumLimit("Metadata of a cluster or node", KEYS_MAX, MI, "remove keys first", "BadRequest")
METADATA_OF_PROJECT = SumLimit(
    "Metadata of the clusters and nodes of a project", None, 64 * MI, "remove keys first, or delete unused nodes", QUOTA
)
EVENT_REASON_MAX = 4_000
"""Stored characters of an event's reason; the rest is cut off."""
ALL = (
    *(SIGNALS, HANDLER_SIGNALS, FILES, ENVIRONMENT, CONFIGS, DEPLOYMENTS, OUTPUTS),
    *(PROFILES, POLICIES, ATTACHED, RECEIVERS, MESSAGE_RECEIVERS, METADATA, METADATA_OF_PROJECT),
)
DEPTH_MAX = 5
"""Default of the levels of nested stacks below a root stack."""
RESOURCES_MAX = 1_000_000
"""Default of the resources of a root stack and all its nested stacks."""


def too_deep(depth_max: int) -> Rejected:
    """Return the error for a stack that is nested too deeply."""
    message = (
        f"Request limit exceeded: Recursion depth exceeds {depth_max}: nest fewer stacks in one another, or raise "
        "--depth-max of the service"
    )
    return Rejected("RequestLimitExceeded", message)
