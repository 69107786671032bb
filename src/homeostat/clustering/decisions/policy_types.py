"""The types of policies about sizes, places and load balancing: their schemas and further checks. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from homeostat.clustering.decisions.definitions import invalid_spec
from homeostat.clustering.decisions.specs import SpecType
from homeostat.resources.schema import Property, between, boolean, integer, listing, mapping, number, one_of, text

Check = Callable[[Mapping[str, Any]], None]

PORT = between(1, 65535)
SECONDS_MAX = 2**31 - 1
NOT_NEGATIVE = between(0, SECONDS_MAX)
WEIGHT_MAX = 1_000_000


def supported(*since: str) -> list[dict[str, str]]:
    """Return the history of a version: experimental since the first of two dates, supported since the last date."""
    states = ["EXPERIMENTAL", "SUPPORTED"][-len(since) :]
    return [{"status": state, "since": date} for state, date in zip(states, since, strict=True)]


SCALING = SpecType(
    "senlin.policy.scaling",
    schema={
        "event": text(
            "Action that it is for.", required=True, constraints=(one_of("CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"),)
        ),
        "adjustment": mapping(
            "What the action does where it names no count.",
            default={},
            fields={
                "type": text(
                    "What the number means.",
                    default="CHANGE_IN_CAPACITY",
                    constraints=(one_of("EXACT_CAPACITY", "CHANGE_IN_CAPACITY", "CHANGE_IN_PERCENTAGE"),),
                ),
                "number": number("Nodes, or a percentage.", default=1),
                "min_step": integer("Least change in nodes, for a percentage.", default=1),
                "best_effort": boolean("Go as far as the limits of the cluster allow.", default=False),
                "cooldown": integer("Seconds after it in which the size stays.", default=0),
            },
        ),
    },
    support={"1.0": supported("2016.04")},
)


def check_scaling(properties: Mapping[str, Any]) -> None:
    """Check a scaling policy beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    adjustment = properties["adjustment"]
    if adjustment["number"] <= 0:
        raise invalid_spec("the 'number' for 'adjustment' must be > 0")
    if adjustment["number"] > SECONDS_MAX:
        raise invalid_spec(f"the 'number' for 'adjustment' must be <= {SECONDS_MAX}")
    for name in ("min_step", "cooldown"):
        if adjustment[name] < 0:
            raise invalid_spec(f"the '{name}' for 'adjustment' must be >= 0")
        if adjustment[name] > SECONDS_MAX:
            raise invalid_spec(f"the '{name}' for 'adjustment' must be <= {SECONDS_MAX}")


CRITERIA = ("OLDEST_FIRST", "OLDEST_PROFILE_FIRST", "YOUNGEST_FIRST", "RANDOM")

DELETION = SpecType(
    "senlin.policy.deletion",
    schema={
        "criteria": text("Which nodes go first.", default="RANDOM", constraints=(one_of(*CRITERIA),)),
        "destroy_after_deletion": boolean("Destroy the nodes that leave the cluster.", default=True),
        "grace_period": integer("Seconds before a deletion begins.", default=0, constraints=(NOT_NEGATIVE,)),
        "reduce_desired_capacity": boolean("Nodes that are removed are not made again.", default=True),
        "hooks": mapping(
            "Who is notified before a node goes.",
            default={},
            fields={
                "type": text("The way.", default="zaqar", constraints=(one_of("zaqar", "webhook"),)),
                "params": mapping(
                    "Where.",
                    default={},
                    fields={
                        "queue": text("Queue, for zaqar.", default=""),
                        "url": text("URL, for a webhook.", default=""),
                    },
                ),
                "timeout": integer("Seconds to wait for an answer.", default=0, constraints=(NOT_NEGATIVE,)),
            },
        ),
    },
    support={"1.0": supported("2016.04"), "1.1": supported("2018.01")},
    versions=("1.0", "1.1"),
)


def has_hooks(properties: Mapping[str, Any]) -> bool:
    """Return whether a deletion policy has a lifecycle hook."""
    params = properties["hooks"]["params"]
    return bool(params["queue"] or params["url"])


def check_deletion(properties: Mapping[str, Any]) -> None:
    """Check a deletion policy beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    hooks = properties["hooks"]
    params, path = hooks["params"], ("properties", "hooks", "params")
    if not has_hooks(properties):
        if hooks["timeout"] or hooks["type"] == "webhook":
            raise invalid_spec("A hook needs a queue (type zaqar) or a url (type webhook)", *path)
    elif hooks["type"] == "zaqar" and not params["queue"]:
        raise invalid_spec("A hook of type zaqar needs a queue", *path)
    elif hooks["type"] == "webhook":
        check_url(params["url"], (*path, "url"))


def check_url(url: str, path: Sequence[str | int]) -> None:
    """Check that a text is an absolute URL of HTTP or HTTPS.

    Raises:
        Rejected: InvalidSpec.
    """
    problem = ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            problem = "its scheme must be http or https"
        elif not parts.hostname:
            problem = "it names no host"
        elif parts.port == 0:
            problem = "its port is 0"
        elif any(character.isspace() or not character.isprintable() for character in url):
            problem = "it has a blank or a control character; write it as %xx"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise invalid_spec(f"'{url[:200]}' is not a URL that can be asked: {problem}", *path)


def _weight() -> Property:
    return integer("Share of the nodes, beside the weights of the others.", default=100, constraints=(WEIGHTS,))


WEIGHTS = between(0, WEIGHT_MAX)

REGION_PLACEMENT = SpecType(
    "senlin.policy.region_placement",
    schema={
        "regions": listing(
            "Regions to choose from.",
            required=True,
            items=mapping(
                "A region.",
                fields={
                    "name": text("Name of the region.", required=True),
                    "weight": _weight(),
                    "cap": integer("Most nodes in it; -1 for any number.", default=-1, constraints=(between(-1),)),
                },
            ),
        ),
    },
    support={"1.0": supported("2016.04", "2016.10")},
)
ZONE_PLACEMENT = SpecType(
    "senlin.policy.zone_placement",
    schema={
        "zones": listing(
            "Availability zones to choose from.",
            required=True,
            items=mapping("A zone.", fields={"name": text("Name of the zone.", required=True), "weight": _weight()}),
        ),
    },
    support={"1.0": supported("2016.04", "2016.10")},
)


def check_places(properties: Mapping[str, Any]) -> None:
    """Check the regions or zones of a placement policy beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    ((section, places),) = properties.items()
    names = [entry["name"] for entry in places]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise invalid_spec(f"{twice[0]} is there twice; give it one weight", "properties", section)
    if not any(entry["weight"] for entry in places):
        raise invalid_spec("At least one entry with a weight above 0 is needed", "properties", section)


AFFINITY = SpecType(
    "senlin.policy.affinity",
    schema={
        "servergroup": mapping(
            "The server group of the nodes.",
            default={},
            fields={
                "name": text("Name of a group; one that exists is used."),
                "policies": text(
                    "Whether its servers share a host.",
                    default="anti-affinity",
                    constraints=(one_of("affinity", "soft-affinity", "anti-affinity", "soft-anti-affinity"),),
                ),
            },
        ),
        "availability_zone": text("Availability zone of the nodes."),
        "enable_drs_extension": boolean("Refused: an extension for hypervisors of one maker.", default=False),
    },
    support={"1.0": supported("2016.10")},
)


def check_affinity(properties: Mapping[str, Any]) -> None:
    """Check an affinity policy beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    if properties["enable_drs_extension"]:
        message = "not supported: it needs vSphere's scheduler of hosts; leave it out"
        raise invalid_spec(message, "properties", "enable_drs_extension")


BATCH = SpecType(
    "senlin.policy.batch",
    schema={
        "min_in_service": integer("Least nodes that stay in service.", default=1, constraints=(NOT_NEGATIVE,)),
        "max_batch_size": integer("Most nodes at once; -1 for any number.", default=-1, constraints=(between(-1),)),
        "pause_time": integer("Seconds between batches.", default=60, constraints=(NOT_NEGATIVE,)),
    },
    support={"1.0": [{"status": "EXPERIMENTAL", "since": "2017.02"}]},
)

_PROTOCOLS = one_of("HTTP", "HTTPS", "TCP")
_SESSION = {
    "type": text("How.", constraints=(one_of("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE", "NONE"),)),
    "cookie_name": text("Name of the cookie, for APP_COOKIE."),
}
_POOL = {
    "protocol": text("Protocol of the nodes.", default="HTTP", constraints=(_PROTOCOLS,)),
    "protocol_port": integer("Port of the nodes.", default=80, constraints=(PORT,)),
    "subnet": text("Subnet by which the nodes are reached.", required=True),
    "lb_method": text(
        "How requests are spread.",
        default="ROUND_ROBIN",
        constraints=(one_of("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"),),
    ),
    "admin_state_up": boolean("It is switched on.", default=True),
    "session_persistence": mapping("Whether a client stays with a node.", default={}, fields=_SESSION),
    "id": text("A pool that exists."),
}
_VIP = {
    "subnet": text("Subnet of the address."),
    "network": text("Network of the address."),
    "address": text("The address."),
    "connection_limit": integer("Most connections; -1 for any number.", default=-1, constraints=(between(-1),)),
    "protocol": text("Protocol.", default="HTTP", constraints=(_PROTOCOLS,)),
    "protocol_port": integer("Port.", default=80, constraints=(PORT,)),
    "admin_state_up": boolean("It is switched on.", default=True),
}
_MONITOR = {
    "type": text("How nodes are probed.", default="PING", constraints=(one_of("PING", "TCP", "HTTP", "HTTPS"),)),
    "delay": integer("Seconds between probes.", default=10, constraints=(between(1),)),
    "timeout": integer("Seconds that a probe may take.", default=5, constraints=(between(1),)),
    "max_retries": integer("Failures until a node is out of service.", default=3, constraints=(between(1, 10),)),
    "admin_state_up": boolean("It is switched on.", default=True),
    "http_method": text("Method of the request.", constraints=(one_of("GET", "POST", "PUT", "DELETE"),)),
    "url_path": text("Path of the request."),
    "expected_codes": text("Codes of answers that are good."),
    "id": text("A monitor that exists."),
}
LOAD_BALANCING = SpecType(
    "senlin.policy.loadbalance",
    schema={
        "pool": mapping("The nodes.", required=True, fields=_POOL),
        "vip": mapping("The address that clients use.", fields=_VIP),
        "health_monitor": mapping("How nodes are probed.", fields=_MONITOR),
        "lb_status_timeout": integer("Seconds that a change may take.", default=300, constraints=(between(1),)),
        "loadbalancer": text("A load balancer that exists."),
        "availability_zone": text("Availability zone of the load balancer."),
        "flavor_id": text("Flavor of the load balancer."),
    },
    support={
        "1.0": supported("2016.04"),
        "1.1": supported("2018.01"),
        "1.2": supported("2020.02"),
        "1.3": supported("2020.03"),
    },
    versions=("1.0", "1.1", "1.2", "1.3"),
)


def check_load_balancing(properties: Mapping[str, Any]) -> None:
    """Check a load balancing policy beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    vip, session = properties["vip"], properties["pool"]["session_persistence"]
    if not properties["loadbalancer"] and not (vip and (vip["subnet"] or vip["network"])):
        raise invalid_spec("At least one of VIP Subnet or Network must be defined.", "properties", "vip")
    if properties["pool"]["id"] and not properties["loadbalancer"]:
        raise invalid_spec(
            "A pool that exists belongs to a load balancer: name that one, too", "properties", "loadbalancer"
        )
    if (properties["health_monitor"] or {}).get("id") and not properties["pool"]["id"]:
        message = "A health monitor that exists belongs to a pool: name that one, too"
        raise invalid_spec(message, "properties", "pool", "id")
    if (session["type"] == "APP_COOKIE") != bool(session["cookie_name"]):
        message = "cookie_name goes with the type APP_COOKIE, and is needed for it"
        raise invalid_spec(message, "properties", "pool", "session_persistence")
    monitor = properties["health_monitor"] or {}
    for name in ("http_method", "url_path", "expected_codes"):
        if monitor.get(name) and monitor["type"] not in ("HTTP", "HTTPS"):
            raise invalid_spec(f"{name} is for the types HTTP and HTTPS only", "properties", "health_monitor", name)
