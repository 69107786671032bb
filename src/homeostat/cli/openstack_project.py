"""Checks of `doctor` in a project of an OpenStack: roles of the login, and free quota."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from keystoneauth1.exceptions import ClientException

from homeostat.clouds.openstack.connections import Connections
from homeostat.doctor.checks import Check, Level
from homeostat.model.errors import HomeostatError

LISTS: Mapping[str, str] = {
    "compute": "/servers",
    "network": "/ports",
    "block-storage": "/volumes",
    "image": "/images",
    "load-balancer": "/lbaas/loadbalancers",
    "key-manager": "/secrets",
    "dns": "/zones",
}
"""Service -> a list that every user of the service may read; without this permission a login can create nothing."""
FULL = 0.9
"""Used share of a quota from which it is reported."""
ABSOLUTE: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "compute": {
        "servers": ("totalInstancesUsed", "maxTotalInstances"),
        "cores": ("totalCoresUsed", "maxTotalCores"),
        "MiB of memory": ("totalRAMUsed", "maxTotalRAMSize"),
        "server groups": ("totalServerGroupsUsed", "maxServerGroups"),
    },
    "block-storage": {
        "volumes": ("totalVolumesUsed", "maxTotalVolumes"),
        "GiB of volumes": ("totalGigabytesUsed", "maxTotalVolumeGigabytes"),
        "snapshots": ("totalSnapshotsUsed", "maxTotalSnapshots"),
    },
}
"""Service -> quota -> names of the numbers used and allowed, in the answer to `/limits`."""
NETWORK = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")


Numbers = dict[str, tuple[int, int]]
"""Quota -> (used, allowed)."""


def examine_project(connections: Connections, project: str, project_id: str, roles: list[str]) -> Iterator[Check]:
    """Run the checks of a project.

    Args:
        project: As for `Connections.of`.
        project_id: Id of the project.
        roles: Names of the roles of the login.
    """
    yield _roles(connections, project, roles)
    yield _quotas(connections, project, project_id)


def _roles(connections: Connections, project: str, roles: list[str]) -> Check:
    name, listed = "openstack roles", ", ".join(sorted(roles)) or "none"
    refusing = []
    for service, path in LISTS.items():
        try:
            answer = connections.proxy(project, service)().get(path, params={"limit": 1}, raise_exc=False)
        except (ClientException, HomeostatError):
            continue  # the check of the service reports that it is missing or down
        if answer.status_code == 403:
            refusing.append(service)
    if refusing:
        remedy = "give the owners of stacks the roles that its policy asks for, such as load-balancer_member or creator"
        return Check(name, Level.WARN, f"{', '.join(refusing)} refuses who has the roles {listed}", remedy)
    if set(roles) == {"reader"}:
        return Check(name, Level.WARN, "reader alone: it may make nothing", "give it the role member, say")
    return Check(name, Level.OK, listed)


def _quotas(connections: Connections, project: str, project_id: str) -> Check:
    name = "openstack quotas"
    numbers: Numbers = {}
    for service in ABSOLUTE:
        numbers |= _read(partial(_absolute, connections, project, service))
    numbers |= _read(partial(_of_network, connections, project, project_id))
    if not numbers:
        return Check(name, Level.OK, "the services do not say how much is used")
    full = [f"{quota}: {used} of {limit}" for quota, (used, limit) in numbers.items() if used >= limit * FULL]
    if full:
        remedy = "raise the quota of the project, or delete what no one needs: stacks fail where it is used up"
        return Check(name, Level.WARN, f"nearly used up: {', '.join(full)}", remedy)
    return Check(name, Level.OK, f"there is room in each of {len(numbers)} that are limited")


def _read(read: Callable[[], Numbers]) -> Numbers:
    """Return the limited quotas of a service; empty if the service does not report any."""
    try:
        return {quota: numbers for quota, numbers in read().items() if numbers[1] >= 0}
    except (ClientException, HomeostatError, KeyError, TypeError, ValueError):
        return {}


def _absolute(connections: Connections, project: str, service: str) -> Numbers:
    limits = connections.proxy(project, service)().get("/limits").json()["limits"]["absolute"]
    return {quota: (int(limits[used]), int(limits[limit])) for quota, (used, limit) in ABSOLUTE[service].items()}


def _of_network(connections: Connections, project: str, project_id: str) -> Numbers:
    quota = connections.proxy(project, "network")().get(f"/quotas/{project_id}/details.json").json()["quota"]
    quotas = {name: quota[name] for name in NETWORK if name in quota}
    return {name.replace("_", " "): (int(numbers["used"]), int(numbers["limit"])) for name, numbers in quotas.items()}
