"""Checks of `doctor` for an OpenStack: services, clocks, notifications, and the limits of requests."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import Any

from keystoneauth1 import discover
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException, EndpointNotFound

from homeostat.cli.openstack_project import examine_project
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.network import NetworkCollection
from homeostat.clouds.openstack.notifications import NotificationConfig, listened
from homeostat.clouds.openstack.registry import COLLECTIONS, VERSIONS
from homeostat.doctor.checks import CLOCKS_S, Check, Level
from homeostat.message_bus import shown
from homeostat.model.errors import HomeostatError
from homeostat.model.rates import Rate
from homeostat.store.database import Database
from homeostat.store.operation import request_turns

TIMEOUT_S = 10.0
LISTENS_S = 2.0
BACKLOG_MAX = 1000
"""Notifications in the queue above which a warning is due."""
QUEUE_S = 1.0
"""Wait of requests for their turn, in seconds, above which a warning is due."""
DATE_S = 1.0
"""Resolution of the `Date` of an answer."""


def examine_openstack(
    db: Database,
    connections: Connections,
    project: str,
    limits: Mapping[str, Rate],
    notifications: NotificationConfig,
) -> Iterator[Check]:
    """Run all checks of an OpenStack.

    Args:
        db: The database, with the current schema.
        project: Id of a project that the service may act in; "" if a single login is used for all.
        limits: Limits of requests, by type of service.
        notifications: Sources of notifications.
    """
    yield from _services(connections, project)
    yield from _notifications(notifications)
    yield _limits(db, limits)


def _services(connections: Connections, project: str) -> Iterator[Check]:
    try:
        session: Any = connections.of(project).session
        access = session.auth.get_access(session)
    except (ClientException, HomeostatError) as error:
        remedy = "look at --os-cloud and clouds.yaml, or at --keystone-config, and whether Keystone is up"
        yield Check("openstack login", Level.FAIL, str(error), remedy)
        return
    yield Check("openstack login", Level.OK, f"{access.username} in project {access.project_name}")
    needed = groupby(
        sorted(COLLECTIONS, key=lambda collection: collection.service), key=lambda collection: collection.service
    )
    differences: list[float] = []
    for service, kinds in needed:
        yield _service(
            connections.proxy(project, service), service, [collection.kind for collection in kinds], differences
        )
    yield from _extensions(connections.proxy(project, "network"))
    yield _clocks(differences)
    yield from examine_project(connections, project, str(access.project_id), list(access.role_names))


def _service(client: Callable[[], Any], service: str, kinds: Sequence[str], differences: list[float]) -> Check:
    """Check a service; add the difference between its clock and this machine's to `differences`."""
    name = f"openstack {service}"
    endpoint = ""
    try:
        proxy = client()
        # The proxy of Identity has another method of this name.
        endpoint = str(Adapter.get_endpoint(proxy) or "")
        if not endpoint:
            return _lacking(name, kinds)
        sent = time.time()
        answer = proxy.session.get(endpoint, authenticated=False, raise_exc=False, timeout=TIMEOUT_S)
        _add_difference(answer.headers.get("Date", ""), sent, differences)
        # Only services with microversions report their version in a common format.
        data = proxy.get_endpoint_data() if service in VERSIONS else None
    except EndpointNotFound:
        return _lacking(name, kinds)
    except ClientException as error:
        return Check(name, Level.FAIL, f"{endpoint or 'it'} gives no answer: {error}", "start it, or look at its proxy")
    if answer.status_code >= 500:
        return Check(name, Level.FAIL, f"{endpoint} answers {answer.status_code}", "look at its log, or its proxy's")
    newest = data.max_microversion if data is not None else None
    if service in VERSIONS and (newest is None or newest < discover.normalize_version_number(VERSIONS[service][0])):
        problem = f"its newest microversion is {newest and discover.version_to_string(newest)}"
        return Check(name, Level.FAIL, problem, f"upgrade it: {VERSIONS[service][0]} is needed")
    upto = f", up to {discover.version_to_string(newest)}" if newest else ""
    return Check(name, Level.OK, f"it answers at {endpoint}{upto}")


def _lacking(name: str, kinds: Sequence[str]) -> Check:
    remedy = f"add it to the catalogue of this region, or leave such resources out of templates: {_things(kinds)}"
    return Check(name, Level.WARN, "the catalogue does not have it", remedy)


def _extensions(client: Callable[[], Any]) -> Iterator[Check]:
    """Check for the Neutron extensions behind kinds; yield nothing if Neutron does not list its extensions."""
    name = "openstack network extensions"
    needed: dict[str, list[str]] = defaultdict(list)
    for collection in COLLECTIONS:
        if issubclass(collection, NetworkCollection) and collection.extension:
            needed[collection.extension].append(collection.kind)
    try:
        answer = client().get("/extensions", raise_exc=False)
        extensions = {str(extension["alias"]) for extension in answer.json()["extensions"]}
    except (ClientException, HomeostatError, KeyError, TypeError, ValueError):
        return  # the check of the service reports that it is down
    lacking = sorted(needed.keys() - extensions)
    if lacking:
        things = _things([kind for extension in lacking for kind in needed[extension]])
        remedy = f"have its operator load the plug-ins, or leave such resources out of templates: {things}"
        yield Check(name, Level.WARN, f"it lacks {', '.join(lacking)}", remedy)
    else:
        yield Check(name, Level.OK, f"it has {', '.join(sorted(needed))}")


def _things(kinds: Sequence[str]) -> str:
    return ", ".join(kind.replace("_", " ") for kind in kinds)


def _add_difference(date: str, sent: float, differences: list[float]) -> None:
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return
    # The service wrote the date between the request and now, and cut its fraction off.
    differences.append(max(sent - (theirs + DATE_S), theirs - time.time(), 0.0))


def _clocks(differences: Sequence[float]) -> Check:
    worst = max(differences, default=0.0)
    if worst > CLOCKS_S:
        remedy = "keep the clocks of all machines together (NTP): tokens expire early or late"
        return Check("openstack clocks", Level.WARN, f"a service's clock differs by {worst:.0f} s", remedy)
    return Check("openstack clocks", Level.OK, "those of the services agree with this machine's")


def _notifications(config: NotificationConfig) -> Iterator[Check]:
    name = "openstack notifications"
    if not config.urls:
        yield Check(name, Level.OK, "none are used (--os-notifications): changes are found at the next look")
    for url in config.urls:
        try:
            queue = listened(url, config, LISTENS_S, TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - whatever it is, it may quote the URL with its password
            words = f"{shown(url)} does not answer: {type(error).__name__}: {str(error).replace(url, shown(url))}"
            yield Check(name, Level.FAIL, words, "start the message bus, or correct --os-notifications")
            continue
        if queue.listeners == 0:
            remedy = "start the workers with the same --os-notifications and --os-notification-pool"
            yield Check(name, Level.WARN, f"no process listens to the queue {config.pool} of {shown(url)}", remedy)
        elif queue.waiting > BACKLOG_MAX:
            remedy = "start more workers (--workers), or name fewer topics (--os-notification-topic)"
            yield Check(name, Level.WARN, f"{queue.waiting} wait in the queue {config.pool} of {shown(url)}", remedy)
        else:
            heard = f"{queue.listeners} processes listen; {queue.heard} came in {LISTENS_S:.0f} s"
            yield Check(name, Level.OK, f"{shown(url)}: {heard}")


def _limits(db: Database, limits: Mapping[str, Rate]) -> Check:
    name = "openstack requests"
    if not limits:
        return Check(name, Level.OK, "they are not limited (--os-requests-per-second)")
    late = {service: free_s for service, free_s in sorted(request_turns.free_in(db).items()) if free_s > QUEUE_S}
    if late:
        waits = ", ".join(f"{service} for {free_s:.1f} s" for service, free_s in late.items())
        remedy = "raise --os-requests-per-second, or wait if this does not last"
        return Check(name, Level.WARN, f"they wait for their turn: {waits}", remedy)
    shown_limits = ", ".join(f"{service or 'each service'} {rate.per_s:g}/s" for service, rate in limits.items())
    return Check(name, Level.OK, f"within their limits: {shown_limits}")
