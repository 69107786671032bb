"""Order of a frontier in which things are deleted together with their parts (ADR 0070). Pure."""

from collections.abc import Callable, Mapping, Sequence

from homeostat.model.world import Resource, World
from homeostat.planner.decide import Decider
from homeostat.planner.graph import Node, WaitGraph, leftover_node
from homeostat.planner.lifecycle import cascade
from homeostat.planner.lifecycle.cascade import Deletion


class Cascades:
    """Makes parts wait for the deletion of their whole; all other leftovers wait for their users.

    The frontier keeps `leftovers`, `users` and `graph` up to date.

    Args:
        leftovers: Key -> leftover row.
        users: Key of a row -> keys of the rows built on this row.
        blockers: Returns the nodes that precede the deletion of a leftover without a cascade.
    """

    def __init__(
        self,
        world: World,
        leftovers: Mapping[str, Resource],
        users: Mapping[str, list[str]],
        graph: WaitGraph,
        decider: Decider,
        blockers: Callable[[Resource], set[Node]],
    ) -> None:
        self._world = world
        self._leftovers = leftovers
        self._users = users
        self._graph = graph
        self._decider = decider
        self._blockers = blockers
        self._wholes: set[str] = set()
        self._parts: dict[str, set[str]] = {}
        self._parts_first: set[str] = set()

    def add(self, row: Resource) -> None:
        """Note a new leftover if it is a whole."""
        if cascade.part_kinds(row):
            self._wholes.add(row.key)

    def queue_wholes(self) -> None:
        """Examine waiting wholes again if nested stacks, which may contain their parts, are being deleted."""
        if self._wholes and any(cascade.is_deleted_stack(row) for row in self._leftovers.values()):
            nodes = (leftover_node(key) for key in self._wholes if key in self._leftovers)
            self._graph.ready.extend(node for node in nodes if self._graph.blocked[node] > 0)

    def collect(self, node: Node, now: float) -> None:
        """Reverse the order of a whole and the parts deleted together with it: the whole first, then its parts.

        The whole then waits for all other users of itself or of these parts. A load balancer in ERROR waits only until
        its nested stacks have started deleting: their members can be removed only with the load balancer.
        """
        row = self._leftovers.get(node[1:])
        whole = self._whole_of(row) if row is not None else None
        # A whole that stays, or follows its parts, changes nothing in the usual order.
        if row is None or whole is None or whole.key not in self._leftovers or whole.key in self._parts_first:
            return
        if row.key not in self._parts.get(whole.key, ()):
            new_parts = self._deletable_parts(whole)
            # Remembered, since the examination of each part would try the same reversal again.
            if new_parts is None or not self._reverse_order(whole, new_parts):
                self._parts_first.add(whole.key)
                return
            self._parts.setdefault(whole.key, set()).update(part.key for part in new_parts)
        parts = [self._world.rows[key] for key in sorted(self._parts.get(whole.key, ())) if key in self._leftovers]
        users = {key for used in (whole, *parts) for key in self._users.get(used.key, ()) if key in self._leftovers}
        # In ERROR a load balancer refuses changes of its members: nested stacks with members never finish
        # before it.
        stacks = [self._leftovers[key] for key in users if cascade.is_stack(self._leftovers[key])]
        inside = bool(stacks) and (whole.deleting or self._decider.is_stuck(whole, now))
        self._decider.delete_parts_with(whole, parts, inside=inside)
        for stack in stacks if inside else ():
            if cascade.is_deleted_stack(stack):
                self._graph.release(leftover_node(stack.key), {leftover_node(whole.key)})

    def retry(self) -> None:
        """Try the reversed order again for all wholes, since another row has become a leftover."""
        # The cycle may have led through a row that leaves by now.
        self._parts_first.clear()

    def is_refused(self, row: Resource) -> bool:
        """Return whether the cloud has refused to delete this whole together with the parts collected for it."""
        return row.key in self._parts and cascade.is_refused(self._world, row)

    def separate(self, whole: Resource) -> list[Resource]:
        """Delete the parts before their whole again; return the leftovers to add to the graph anew."""
        rows = [whole, *(self._leftovers[key] for key in self._parts.pop(whole.key) if key in self._leftovers)]
        self._graph.forget_waits_of({leftover_node(row.key) for row in rows})
        # Before the next decision about the whole, which would list its parts in a request again.
        self._decider.delete_parts_with(whole, ())
        return rows

    def is_collected(self, node: Node) -> bool:
        """Return whether a leftover is deleted together with its whole."""
        return any(node[1:] in keys for keys in self._parts.values())

    def _whole_of(self, row: Resource) -> Resource | None:
        if cascade.part_kinds(row):
            return row
        return cascade.whole_of(self._world, row) if cascade.is_part(row) else None

    def _deletable_parts(self, whole: Resource) -> list[Resource] | None:
        """Return further parts to delete with a whole; None if the whole is deleted after its parts."""
        if cascade.is_refused(self._world, whole) or self._decider.deletion_of(whole) is not Deletion.DUE:
            return None
        parts = cascade.parts_of(self._world, self._users, whole)
        deletions = {part.key: self._decider.deletion_of(part) for part in parts}
        if Deletion.BLOCKED in deletions.values():
            return None
        due = (part for part in parts if part.key in self._leftovers and deletions[part.key] is Deletion.DUE)
        return [part for part in due if part.key not in self._parts.get(whole.key, ())]

    def _reverse_order(self, whole: Resource, parts: Sequence[Resource]) -> bool:
        """Let parts wait for their whole, and the whole for their other waits; return False for a cycle."""
        first, nodes = leftover_node(whole.key), {leftover_node(part.key) for part in parts}
        members = {first, *nodes, *map(leftover_node, self._parts.get(whole.key, ()))}
        blockers = {blocker for part in parts for blocker in self._blockers(part)} - members - self._graph.settled
        # Example of a cycle: a server knows the address of the load balancer, and a member knows the address
        # of the server.
        if (blockers | self._blockers(whole)) & self._graph.waiting_for(members):
            return False
        for node in nodes:
            self._graph.release(node, members)
        # A deletion that has begun waits for nobody: a request may have been sent.
        if not whole.deleting:
            self._graph.wait_for(first, [node for node in blockers if first not in self._graph.unblocks[node]])
        # The deletion of a part that has begun is carried on.
        for part in parts:
            if not part.deleting:
                self._graph.wait_for(leftover_node(part.key), (first,))
        return True
