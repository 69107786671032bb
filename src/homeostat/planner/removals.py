"""Postponed removals: an update removes resources after all creations and changes are done (ADR 0088). Pure.

A failed update has therefore removed nothing, and its rollback finds everything in place. Some removals cannot wait: a
new thing may need the name or the address of a leftover.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.planner.lifecycle.create import may_exist
from homeostat.resources.registry import kind_of

LAST = "what an update removes goes last"
LAST_ENDS = "all that the update makes and changes being done"
TAKEN = frozenset(
    {
        *("ip_address", "fixed_ip", "fixed_ip_address", "floating_ip_address", "mac_address", "cidr", "vip_address"),
        *("address", "port", "port_id", "volume_id", "floating_ip_id", "floatingip_id"),
    }
)
"""Names of properties whose value is exclusive to one thing at a time."""
NAMED = frozenset(
    {
        *("dns_zone", "dns_record_set", "domain", "flavor", "group", "host_aggregate", "project", "region", "role"),
        *("service", "user", "volume_type", "workflow"),
    }
)
"""Kinds whose names are exclusive, in addition to kinds whose id is their name."""
HOLDS_DATA = frozenset(
    {
        *("container", "container_cluster", "database_cluster", "database_instance", "image", "node_cluster", "queue"),
        *("remote_stack", "secret", "server", "share", "stack", "volume", "volume_snapshot"),
    }
)
"""Kinds whose things cannot be restored by creating them again."""
REFUSED_AGAIN = 2
"""Consecutive refusals after which a new thing may need something that a leftover holds."""


class Removals:
    """Decides which leftovers of one shard wait for the end of the update.

    Args:
        current: Name -> current row; kept up to date by the frontier.

    Attributes:
        needed: Keys of leftovers that new resources wait for, since they hold an exclusive claim.
    """

    def __init__(self, world: World, current: Mapping[str, Resource]) -> None:
        self._world = world
        self._current = current
        self.needed: set[str] = set()

    def waits(self, row: Resource, unfinished: int) -> bool:
        """Return whether a leftover, whose deletion has not begun, stays for now.

        Args:
            unfinished: Number of resources yet to be created or changed.
        """
        if unfinished == 0 or self._world.stack.status != Status.IN_PROGRESS or self._world.stack.abandoned:
            return False
        # A thing that a look has missed stays, too: it may come back, and a rollback needs it then.
        if not may_exist(row) or self._is_in_the_way(row):
            return False
        if row.key in self.needed:
            return False
        if self._wanted & set(_claims(row.type, row.properties, row.handle)):
            return False
        # The refused creation may need a quota or a claim missing from `TAKEN`: free what a rollback can
        # create again, and nothing with data.
        return not self._refused or kind_of(row.type) in HOLDS_DATA

    def _is_in_the_way(self, row: Resource) -> bool:
        """Return whether the deletion of a requirement has begun or cannot wait, and may be blocked by this row."""
        pending, keys = list(row.requires), set(row.requires)
        while pending:
            used = self._world.rows.get(pending.pop())
            if used is None:
                continue
            if used.deleting or used.key in self.needed:
                return True
            pending += [key for key in used.requires if key not in keys]
            keys.update(used.requires)
        return False

    @cached_property
    def _unmade(self) -> list[Resource]:
        """Rows whose last request the cloud has refused temporarily."""
        rows = self._current.values()
        return [row for row in rows if row.busy and row.acted_at is None and row.retries > 0]

    @cached_property
    def _refused(self) -> bool:
        return any(row.retries >= REFUSED_AGAIN for row in self._unmade)

    @cached_property
    def _wanted(self) -> set[tuple[str, str]]:
        """Known claims of the resources yet to be created."""
        claims = {claim for row in self._unmade for claim in _claims(row.type, row.properties)}
        for name, definition in self._world.definitions.items():
            row = self._current.get(name)
            # A thing with a handle has its claims already.
            if row is None or row.handle == "":
                claims |= set(_claims(definition.type, definition.properties))
        return claims


def _claims(type_name: str, properties: Mapping[str, Any], handle: str = "") -> Iterator[tuple[str, str]]:
    """Yield the addresses and names that a resource claims; `handle` is "" without a thing."""
    name, kind = properties.get("name"), kind_of(type_name)
    # Kinds whose handle is their name show it only after the creation; before, any name may turn out to be
    # exclusive.
    if isinstance(name, str) and (kind in NAMED or handle in ("", name)):
        yield f"name of {kind}", name
    pending: list[Any] = [properties]
    while pending:
        tree = pending.pop()
        if isinstance(tree, Mapping):
            yield from (("taken", value) for key, value in tree.items() if key in TAKEN and isinstance(value, str))
            pending += tree.values()
        elif isinstance(tree, Sequence) and not isinstance(tree, str):
            pending += tree
