"""Which nodes of a shard wait for which others, and which may be examined now. Pure; it decides nothing."""

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
    """Return for each resource the resources that come before it: those that it requires.

    Maintenance may go the other way, where what requires a resource comes before it, or in no order.
    """
    definitions, stack = world.definitions, world.stack
    order = STACK_ACTIONS[stack.action].order if stack.maintained else Order.REQUIRED_FIRST
    if order is Order.REQUIRED_FIRST:
        return {name: definition.requires for name, definition in definitions.items()}
    users: dict[Node, list[Node]] = {name: [] for name in definitions}
    if order is Order.DEPENDENTS_FIRST:
        for name, definition in definitions.items():
            for required in definition.requires:
                users[required].append(name)
    return users


class WaitGraph:
    """Nodes that wait for others.

    Attributes:
        blocked: Node -> how many others it waits for.
        unblocks: Node -> the nodes that wait for it.
        settled: Nodes that are at rest: nothing waits for them.
        ready: Nodes to be examined, in this order; one may be queued twice, or be settled by now.
    """

    def __init__(self) -> None:
        self.blocked: dict[Node, int] = {}
        self.unblocks: dict[Node, list[Node]] = defaultdict(list)
        self.settled: set[Node] = set()
        self.ready: deque[Node] = deque()

    def add(self, node: Node, blockers: Iterable[Node]) -> None:
        """Add a node that waits for others; it is not queued."""
        waits = [blocker for blocker in set(blockers) if blocker not in self.settled]
        for blocker in waits:
            self.unblocks[blocker].append(node)
        self.blocked[node] = len(waits)

    def wait_for(self, node: Node, blockers: Iterable[Node]) -> None:
        """Have a node wait for others, too."""
        for blocker in blockers:
            self.unblocks[blocker].append(node)
            self.blocked[node] += 1

    def release(self, blocker: Node, nodes: Collection[Node]) -> None:
        """Let these nodes not wait for another one any more; one that then waits for none is queued."""
        waiting = self.unblocks.pop(blocker, [])
        self.unblocks[blocker] = [node for node in waiting if node not in nodes]
        for node in waiting:
            if node in nodes:
                self._unblock(node)

    def settle(self, node: Node) -> None:
        """Let nothing wait for a node any more, which is at rest."""
        self.settled.add(node)
        for other in self.unblocks.pop(node, ()):
            self._unblock(other)

    def forget_waits_of(self, nodes: Collection[Node]) -> None:
        """Take these nodes out of every wait; they have to be added again."""
        for blocker in list(self.unblocks):
            self.unblocks[blocker] = [node for node in self.unblocks[blocker] if node not in nodes]

    def waiting_for(self, nodes: set[Node]) -> set[Node]:
        """Return what waits for these nodes, directly or through others."""
        followers, rest = set[Node](), list(nodes)
        while rest:
            fresh = set(self.unblocks.get(rest.pop(), ())) - followers - nodes
            followers |= fresh
            rest += fresh
        return followers

    def _unblock(self, node: Node) -> None:
        self.blocked[node] -= 1
        if self.blocked[node] == 0:
            self.ready.append(node)
