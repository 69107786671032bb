"""The moving edge of what may be done in one shard (CV4, CV6, CV12).

Nodes are names of resources that should exist, and, with a slash before them, keys of rows that should not.
A resource waits for what it requires; a leftover waits for its users to let go and for its replacement to be done.
The frontier is built once from a world, then moved by outcomes: a chain of a thousand does not cost a thousand reloads.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from homeostat.model.plan import Recorded, Settled, Step, Verb, Waiting, Why
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions.maintenance import held
from homeostat.planner.current import current_row
from homeostat.planner.decide import Decider
from homeostat.planner.lifecycle import hooks
from homeostat.planner.retry import deadlines
from homeostat.resources.registry import kind_of

Node = str


def leftover_node(key: str) -> Node:
    return f"/{key}"


class Frontier:
    """Plans one shard. Pure: changes only the rows of its own world, by the steps and outcomes it is told of.

    Takes: world — all of the shard; keys — supply of fresh row keys.
    """

    def __init__(self, world: World, keys: Iterator[str]) -> None:
        self.world = world
        self.current: dict[str, Resource] = {}
        self.leftovers: dict[str, Resource] = {}
        self.waiting: dict[Node, Waiting] = {}
        self._decider = Decider(world, self.current, keys)
        self._blocked: dict[Node, int] = {}
        self._unblocks: dict[Node, list[Node]] = defaultdict(list)
        self._users: dict[str, list[str]] = defaultdict(list)
        self._settled: set[Node] = set()
        self._acting: set[Node] = set()
        self._ready: deque[Node] = deque()
        self._braked: deque[Node] = deque()
        self._build()

    def _build(self) -> None:
        by_name: dict[str, list[Resource]] = defaultdict(list)
        for row in self.world.rows.values():
            by_name[row.name].append(row)
            for key in row.requires:
                self._users[key].append(row.key)
        for name, rows in by_name.items():
            current = current_row(rows, self.world.stack) if name in self.world.definitions else None
            if current is not None:
                self.current[name] = current
            self.leftovers.update((row.key, row) for row in rows if row is not current)
        for name, blockers in self._order().items():
            self._add(name, blockers)
        for row in list(self.leftovers.values()):
            self._add_leftover(row)

    def _order(self) -> Mapping[Node, Iterable[Node]]:
        """Which resources come before each: what it requires; before one that is suspended, what requires it."""
        definitions = self.world.definitions
        if not self.world.stack.maintained or self.world.stack.action == Action.RESUME:
            return {name: each.requires for name, each in definitions.items()}
        users: dict[Node, list[Node]] = {name: [] for name in definitions}
        if self.world.stack.action == Action.SUSPEND:
            for name, each in definitions.items():
                for required in each.requires:
                    users[required].append(name)
        return users

    def _add(self, node: Node, blockers: Iterable[Node]) -> None:
        count = 0
        for blocker in set(blockers):
            if blocker not in self._settled:
                self._unblocks[blocker].append(node)
                count += 1
        self._blocked[node] = count
        if count == 0 or self._unanswered(node) is not None:
            self._ready.append(node)

    def _add_leftover(self, row: Resource) -> None:
        self._add(leftover_node(row.key), () if row.leaving else self._holders(row))

    def _holders(self, row: Resource) -> set[Node]:
        """What must be done before this leftover may go: its replacement, and every row that was built on it."""
        nodes: set[Node] = {row.name} if self._was_replaced(row) else set()
        for key in self._users.get(row.key, ()):
            user = self.world.rows.get(key)
            if user is None or user is row:
                continue
            if user.key in self.leftovers:
                nodes.add(leftover_node(user.key))
            elif user.name in self.world.definitions:
                nodes.add(user.name)
        return nodes

    def _was_replaced(self, row: Resource) -> bool:
        """Has the name a younger row by now? (After a rollback the current one may be the older.)"""
        current = self.current.get(row.name)
        return current is not None and current.born > row.born

    # -- choosing ----------------------------------------------------------------------------------------------------

    def steps(self, now: float, limit: int) -> list[Step]:
        """At most `limit` steps that may be taken now; their intents are in their rows already.

        One that failed before anything acted is the last: what fails its stack is stored before anything else is tried.
        """
        found: list[Step] = []
        while self._ready and len(found) < limit:
            node = self._ready.popleft()
            if node in self._settled or node in self._acting:
                continue
            step = self._examine(node, now)
            if step is not None:
                found.append(step)
                if step.verb is Verb.RECORD and (step.row.failed or step.fails):
                    break
        return found

    def _examine(self, node: Node, now: float) -> Step | None:
        self.waiting.pop(node, None)
        decision: Step | Settled | Waiting
        if node[0] == "/":
            decision = self._drop(node, now)
        elif self._blocked[node] > 0:
            row = self._unanswered(node)
            if row is None:
                return None
            decision = self._decider.look_for(row, now)
        else:
            decision = self._decider.keep(self.world.definitions[node], now)
        if isinstance(decision, Waiting):
            decision = deadlines.in_time(self.world, decision, now)
        if isinstance(decision, Waiting):
            self.waiting[node] = decision
            if decision.why is Why.BRAKE:
                self._braked.append(node)
            return None
        if isinstance(decision, Settled):
            self._settle(node)
            return decision.step
        self._acting.add(node)
        self._adopt(node, decision)
        return decision

    def _unanswered(self, node: Node) -> Resource | None:
        """The row of this name, if nobody knows whether its creation has made anything. That is found out whatever it
        has to wait for by now: a requirement that a newer revision gave it may fail for ever."""
        row = self.current.get(node)
        if row is None or not row.busy or row.action != Action.CREATE or row.handle or not row.token:
            return None
        return row

    def _drop(self, node: Node, now: float) -> Step | Settled | Waiting:
        row = self.leftovers.get(node[1:])
        if row is None:
            return Settled()
        stack = self.world.stack
        unanswered = row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None
        if (stack.maintained or stack.held) and not (row.leaving and row.busy) and not unanswered:
            return Settled() if stack.maintained else held(stack, row.name, row.key, row.updated_at)
        begun = row.leaving or unanswered  # what it may have made is found also where nothing new is begun
        if stack.halted and not begun and stack.action != Action.DELETE:
            return Waiting(row.name, Why.HALTED, reason=self.world.stack.reason, key=row.key)
        return self._decider.drop(row, now)

    def _adopt(self, node: Node, step: Step) -> None:
        """Take a new row into the world; the one that it replaces becomes a leftover."""
        row = step.row
        if not step.inserted:
            if node[0] != "/" and row.key in self.leftovers:
                self._reinstate(row)
            return
        self.world.rows[row.key] = row
        for key in row.requires:
            self._users[key].append(row.key)
        old = self.current.get(row.name)
        self.current[row.name] = row
        if old is not None:
            self.leftovers[old.key] = old
            self._add_leftover(old)

    def _reinstate(self, row: Resource) -> None:
        """What was replaced stands for its name again; what was to replace it becomes the leftover."""
        del self.leftovers[row.key]
        new = self.current[row.name]
        self.current[row.name] = row
        self.leftovers[new.key] = new
        self._add_leftover(new)

    # -- moving ------------------------------------------------------------------------------------------------------

    def apply(self, step: Step, record: Recorded) -> None:
        """A step was carried out and its outcome is in its row: move the edge."""
        row = record.row
        node = leftover_node(row.key) if row.key in self.leftovers else row.name
        self._acting.discard(node)
        self._acting.discard(row.name)
        self._healed(row, removed=record.removed)
        for each in step.also:
            self._healed(each, removed=False)
        if record.removed:
            self._gone(row)
        elif row.status == Status.COMPLETE and step.verb is not Verb.RECORD and self._is_done(node, row):
            self._settle(node)
        else:
            self._ready.append(node)

    def _healed(self, row: Resource, *, removed: bool) -> None:
        """When one is not being healed any more, one that had to wait for that is examined again."""
        healing = self._decider.healing
        if row.key in healing and (removed or not outcome.is_being_healed(row)):
            healing.discard(row.key)
            if self._braked:
                self._ready.append(self._braked.popleft())

    def _is_done(self, node: Node, row: Resource) -> bool:
        """Otherwise it is examined again: it was merely healed, what it reads has changed while it was in progress, or
        a difference was not judged."""
        definition = self.world.definitions.get(node)
        if definition is None or row.revision != self.world.stack.revision or not row.judged:
            return False
        if row.hooks and hooks.due(self.world, row):
            return False
        seen = self.world.seen.get(row.key)
        if seen is not None and seen.number != row.judged:
            return False
        return not self._decider.stale(definition, row)

    def _gone(self, row: Resource) -> None:
        self.world.rows.pop(row.key, None)
        self.world.seen.pop(row.key, None)
        self.leftovers.pop(row.key, None)
        self._settle(leftover_node(row.key))
        if self._blocked.get(row.name) == 0 and row.name not in self._settled:
            self._ready.append(row.name)

    def _settle(self, node: Node) -> None:
        if node in self._settled:
            return
        self._settled.add(node)
        for other in self._unblocks.pop(node, ()):
            self._blocked[other] -= 1
            if self._blocked[other] == 0:
                self._ready.append(other)

    def time_out(self, now: float) -> list[Step]:
        """The stack's deadline has passed: whatever is still in progress has failed."""
        steps = []
        for row in self.world.rows.values():
            if row.busy:
                step = deadlines.time_out(self.world, row, now)
                if row.handle == "" and kind_of(row.type) != "stack":  # a child stack is found by its row at any time
                    step.forsaken, row.token = row.token, ""
                steps.append(step)
        return steps

    # -- telling -----------------------------------------------------------------------------------------------------

    @property
    def at_rest(self) -> bool:
        """Everything is as it should be: nothing to do, nothing in progress, no leftovers."""
        return len(self._settled) >= len(self._blocked)

    @property
    def exhausted(self) -> bool:
        """Nothing can be done now; what is left waits for something outside this shard, or for time."""
        return not self._ready and not self._acting

    @property
    def unfinished(self) -> int:
        """How many of the shard's nodes are not at rest."""
        return max(0, len(self._blocked) - len(self._settled))

    @property
    def size(self) -> int:
        """How many nodes there are: what should exist, and leftovers, also those that went since it was built."""
        return len(self._blocked)

    def due_at(self) -> float | None:
        """Earliest time at which something waiting should be examined again."""
        times = (at for each in self.waiting.values() for at in (each.due_at, each.ends_at))
        return min((at for at in times if at is not None), default=None)

    @property
    def healing(self) -> int:
        """How many rows of the shard are being healed."""
        return len(self._decider.healing)

    def is_settled(self, node: Node) -> bool:
        return node in self._settled

    def foresee(self, node: Node, at: float) -> Step | None:
        """What would be done about a waiting node at a later time. The frontier is of no other use afterwards."""
        return self._examine(node, at)

    def unmet(self) -> dict[Node, list[Node]]:
        """What each node waits for that could not be examined yet: nodes that have to come to rest first."""
        found: dict[Node, list[Node]] = defaultdict(list)
        for blocker, nodes in self._unblocks.items():
            for node in nodes:
                if node not in self._settled:
                    found[node].append(blocker)
        return found

    def name(self, node: Node) -> str:
        """Of the resource that a node stands for."""
        return node if node[0] != "/" else self.world.rows[node[1:]].name
