"""An answer of a service for each row of the table of what answers mean, in the service's own words."""

from dataclasses import dataclass

from homeostat.clouds.openstack.answers import Meaning, Rule, meaning_of

MISSING, UNAUTHENTICATED, TRANSIENT, TERMINAL, UNCERTAIN = Meaning


@dataclass(frozen=True, slots=True)
class Example:
    """name — of the example. The rest is a request, its answer, and what that means."""

    name: str
    service: str
    method: str
    code: int
    words: str
    meaning: Meaning

    @property
    def rule(self) -> Rule:
        """The row that it is an example of."""
        return meaning_of(self.service, self.method, self.code, self.words)


EXAMPLES = (
    Example("token", "network", "GET", 401, "The request you have made requires authentication.", UNAUTHENTICATED),
    Example(
        "compute quota", "compute", "POST", 403, "Quota exceeded for instances: Requested 1, but already", TERMINAL
    ),
    Example("network quota", "network", "POST", 409, "Quota exceeded for resources: ['network'].", TERMINAL),
    Example(
        "volume quota", "block-storage", "POST", 413, "VolumeLimitExceeded: Maximum number of volumes allowed", TERMINAL
    ),
    Example("attached volume", "compute", "POST", 400, "Invalid volume: volume 3b1 is already attached to", TRANSIENT),
    Example("used volume type", "block-storage", "DELETE", 400, "Target volume type is still in use.", TRANSIENT),
    Example(
        "busy volume", "block-storage", "DELETE", 400, "Invalid volume: Volume status must be available or", TRANSIENT
    ),
    Example("no router", "network", "POST", 404, "External network 7e1 is not reachable from subnet 40c.", TRANSIENT),
    Example("no address", "network", "POST", 400, "Unable to find any IP address on external network 7e1.", TRANSIENT),
    Example(
        "full subnet pool", "network", "POST", 500, "Insufficient prefix space to allocate subnet size /16", TERMINAL
    ),
    Example("held port", "network", "DELETE", 403, "rule:delete_port is disallowed by policy", TRANSIENT),
    Example("contradiction", "network", "POST", 409, "Gateway ip 10.1.0.5 conflicts with allocation pool", TERMINAL),
    Example(
        "full balancer", "load-balancer", "DELETE", 400, "Cannot delete Load Balancer 91b - it has children", TRANSIENT
    ),
    Example(
        "taken place", "load-balancer", "POST", 409, "Another Listener on this Load Balancer is already using", TERMINAL
    ),
    Example("zone with zones", "dns", "DELETE", 400, "Please delete any subzones before deleting this zone", TRANSIENT),
    Example("no id", "dns", "GET", 400, "Invalid UUID zone_id: never", MISSING),
    Example("used share type", "shared-file-system", "DELETE", 400, "Target share type is still in use.", TRANSIENT),
    Example(
        "busy share", "shared-file-system", "DELETE", 403, "Invalid share: Share status must be one of (", TRANSIENT
    ),
    Example("used workflow", "workflow", "DELETE", 400, "Can't delete workflow that has cron triggers", TRANSIENT),
    Example("taken host", "reservation", "POST", 409, "Conflict on creating resource provider blazar_c", TERMINAL),
    Example("too few hosts", "reservation", "POST", 500, "Not enough hosts available", TERMINAL),
    Example(
        "cluster that goes",
        "container-infrastructure-management",
        "GET",
        400,
        "Invalid input for field/attribute master_count",
        TRANSIENT,
    ),
    Example(
        "used cluster template",
        "container-infrastructure-management",
        "DELETE",
        400,
        "ClusterTemplate 5d0 is referenced by one or multiple clusters.",
        TRANSIENT,
    ),
    Example("full container", "object-store", "DELETE", 409, "There was a conflict when trying to complete", TERMINAL),
    Example("locked server", "compute", "POST", 409, "Instance 6c0 is locked", TERMINAL),
    Example("unready image", "compute", "POST", 400, "Image 52a is not active.", TRANSIENT),
    Example("nothing", "network", "GET", 404, "Network 6d2 could not be found.", MISSING),
    Example("too many", "network", "POST", 429, "Too many requests", TRANSIENT),
    Example("over the rate", "block-storage", "POST", 413, "This request was rate-limited.", TRANSIENT),
    Example("taken name", "compute", "POST", 409, "Key pair 'key' already exists.", TERMINAL),
    Example("used network", "network", "DELETE", 409, "Unable to complete operation on network 6d2.", TRANSIENT),
    Example("name of a user", "identity", "POST", 409, "Conflict occurred attempting to store user -", TERMINAL),
    Example(
        "no right to make", "identity", "POST", 403, "You are not authorized to perform the requested action", TERMINAL
    ),
    Example("no feature", "load-balancer", "POST", 501, "Provider 'x' does not support a requested action", TERMINAL),
    Example(
        "no right to look", "compute", "GET", 403, "Policy doesn't allow os_compute_api:os-services:list", TRANSIENT
    ),
    Example("away while looking", "network", "GET", 503, "The server is currently unavailable", TRANSIENT),
    Example("away while acting", "network", "POST", 502, "Bad Gateway", UNCERTAIN),
    Example("refused", "network", "POST", 400, "Invalid input for cidr. Reason: 'oops' is not valid", TERMINAL),
)
