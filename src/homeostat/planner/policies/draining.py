"""Draining: a server that leaves its group runs on for a while after leaving its load balancers. Pure (ADR 0069).

Only healthy leftovers drain: servers removed by scaling in or replaced by an update. Their pool members are deleted
first. Then the server and its dependants, such as volume attachments, stay for the `drain_time` of the group. No timer
runs meanwhile: the end is a column of the row.
"""

from collections.abc import Iterator

from homeostat.model.observed import Condition
from homeostat.model.plan import Step
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner.context import Context
from homeostat.planner.policies.unhealthy import mark_of
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import kind_of, type_of

SERVER, PLACE = "server", "pool_member"
"""Kinds of servers and of their pool members in load balancers."""


def drain(context: Context, row: Resource, now: float) -> Step | Waiting | None:
    """Return why a leftover is not deleted yet, or the step that begins its drain; None if it may be deleted."""
    # The pool member itself goes first: its deletion ends new connections.
    if context.world.drain_s <= 0 or kind_of(row.type) == PLACE:
        return None
    servers = [server for server in _built_on(context, row) if _drains(context, server, now)]
    if not servers:
        return None
    places = tuple(node for server in servers for node in _places(context, server))
    if places:
        return Waiting(row.name, Why.REQUIRES, places, after=places, key=row.key)
    undrained = [server for server in servers if server.drains_until is None]
    # Stored before the wait, since another worker may own the shard at its end.
    for server in undrained:
        server.drains_until = now + context.world.drain_s
    if undrained:
        return Step(row, also=[server for server in undrained if server is not row])
    until = max(server.drains_until or now for server in servers)
    if until <= now:
        return None
    reason = "it has left its load balancers, and ends what it has begun"
    return Waiting(row.name, Why.DRAINING, (), reason, until - context.world.drain_s, until, row.key)


def _built_on(context: Context, row: Resource) -> Iterator[Resource]:
    """Yield the servers among a row and its direct and indirect requirements in the same shard."""
    keys, pending = {row.key}, [row]
    while pending:
        used = pending.pop()
        if kind_of(used.type) == SERVER:
            yield used
        requirements = [
            context.world.rows[key] for key in used.requires if key in context.world.rows and key not in keys
        ]
        keys |= {requirement.key for requirement in requirements}
        pending += requirements


def _drains(context: Context, server: Resource, now: float) -> bool:
    """Return whether a leaving server is in service; a dead, broken or unhealthy server is deleted at once."""
    exists = server.handle != "" and server.action != Action.INIT and not server.deleting
    leaves = exists and server.status == Status.COMPLETE and server is not context.current.get(server.name)
    if not leaves or mark_of(server) is not None:
        return False
    verdict = type_of(server.type).judge(thing_of(context.world, server), now)
    return verdict.condition not in (Condition.ABSENT, Condition.BROKEN)


def _places(context: Context, server: Resource) -> Iterator[str]:
    """Yield the nodes of a server's remaining pool members."""
    if context.places is None:
        context.places = _by_server(context)
    for place in context.places.get(server.key, ()):
        # A pool member may have moved to another server, or been deleted, since the cache was built.
        if server.key not in place.requires or place.key not in context.world.rows:
            continue
        current = context.current.get(place.name) is place
        node = place.name if current else f"/{place.key}"
        if context.settled is None or node not in context.settled:
            yield node


def _by_server(context: Context) -> dict[str, list[Resource]]:
    """Return the pool members by the keys of their required rows."""
    places: dict[str, list[Resource]] = {}
    for row in context.world.rows.values():
        if kind_of(row.type) == PLACE:
            for key in row.requires:
                places.setdefault(key, []).append(row)
    return places
