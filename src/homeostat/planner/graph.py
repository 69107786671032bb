"""Graph of the waits between the nodes of a shard, and the queue of nodes to examine. Pure; decides nothing."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping

from homeostat.model.stack_actions import STACK_ACTIONS, Order
from homeostat.model.world import World

Node = str
"""Name of a resource, or a slash and the key of a leftover row. Resource names cannot contain a slash."""


def leftover_node(key: str) -> Node:
    """Return the node of a leftover row."""
    return f"/{key}"


def order_of(world: World) -> Mapping[Node, Iterable[Node]]:
    """Return the predecessors of each resource: its requirements.

    Maintenance may go the other way round, dependents first, or in no order.
    """
    definitions, stack = world.definitions, world.stack
    order = STACK_ACTIONS[stack.action].order if stack.maintained else Order.REQUIRED_FIRST
    if order is Order.REQUIRED_FIRST:
        return {name: definition.requires for name, definition in definitions.items()}
    # A server is suspended before the things it uses; for an order without waits the lists stay empty.
    users: dict[Node, list[Node]] = {name: [] for name in definitions}
    if order is Order.DEPENDENTS_FIRST:
        for name, definition in definitions.items():
            for required in definition.requires:
                users[required].append(name)
    return users


class WaitGraph:
    """Nodes and the waits between them.

    Attributes:
        blocked: Node -> number of its blockers.
        unblocks: Node -> nodes blocked by this node.
        settled: Nodes at rest, which nothing waits for.
        ready: Queue of nodes to examine; may contain a node twice, and settled nodes.
    """

    def __init__(self) -> None:
        self.blocked: dict[Node, int] = {}
        self.unblocks: dict[Node, list[Node]] = defaultdict(list)
        self.settled: set[Node] = set()
        self.ready: deque[Node] = deque()

    def add(self, node: Node, blockers: Iterable[Node]) -> None:
        """Add a node that waits for the unsettled blockers, without queueing it."""
        unsettled = [blocker for blocker in set(blockers) if blocker not in self.settled]
        for blocker in unsettled:
            self.unblocks[blocker].append(node)
        self.blocked[node] = len(unsettled)

    def wait_for(self, node: Node, blockers: Iterable[Node]) -> None:
        """Add blockers to a node."""
        for blocker in blockers:
            self.unblocks[blocker].append(node)
            self.blocked[node] += 1

    def release(self, blocker: Node, nodes: Collection[Node]) -> None:
        """Remove a blocker from these nodes, and queue the nodes without blockers."""
        waiting = self.unblocks.pop(blocker, [])
        # Only the listed nodes: the others still wait for the end of the blocker.
        self.unblocks[blocker] = [node for node in waiting if node not in nodes]
        for node in waiting:
            if node in nodes:
                self._unblock(node)

    def settle(self, node: Node) -> None:
        """Mark a node as settled, and unblock the nodes that wait for it."""
        self.settled.add(node)
        for other in self.unblocks.pop(node, ()):
            self._unblock(other)

    def forget_waits_of(self, nodes: Collection[Node]) -> None:
        """Remove all blockers of these nodes; the caller has to add the nodes again."""
        for blocker in list(self.unblocks):
            self.unblocks[blocker] = [node for node in self.unblocks[blocker] if node not in nodes]

    def waiting_for(self, nodes: set[Node]) -> set[Node]:
        """Return the nodes that wait for these nodes, directly or transitively."""
        followers, pending = set[Node](), list(nodes)
        while pending:
            new = set(self.unblocks.get(pending.pop(), ())) - followers - nodes
            followers |= new
            pending += new
        return followers

    def _unblock(self, node: Node) -> None:
        self.blocked[node] -= 1
        if self.blocked[node] == 0:
            self.ready.append(node)
