"""Frontier of one shard: the resources that may be acted on now (CV4, CV6, CV12).

The nodes of its graph are the names of desired resources, and the keys of leftover rows prefixed with a slash. A
resource waits for its requirements; a leftover waits for its replacement and until no row uses the leftover any more.
The frontier is built once from a world and then moved by the outcomes of steps: a chain of a thousand resources does
not cost a thousand loads of the shard.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from homeostat.model.plan import Observe, Record, Settled, Step, StepOutcome
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.cascades import Cascades
from homeostat.planner.current import current_row
from homeostat.planner.decide import Decider
from homeostat.planner.graph import Node, WaitGraph, leftover_node, order_of
from homeostat.planner.lifecycle import cascade, deadlines, hooks, rollouts
from homeostat.planner.removals import LAST, LAST_ENDS, Removals
from homeostat.planner.states import maintenance_state
from homeostat.planner.states.maintenance_state import wait_while_frozen


class Frontier:
    """Plans one shard. Pure: changes nothing but the rows of its own world.

    A node is in one of these states: blocked by other nodes or ready to be examined (see `WaitGraph`), acting (its step
    was returned and not yet applied), waiting for a reason in `waiting`, or settled.

    Args:
        keys: Supply of fresh row keys, since the planner has no randomness.
    """

    def __init__(self, world: World, keys: Iterator[str]) -> None:
        self.world = world
        self.current: dict[str, Resource] = {}
        self.leftovers: dict[str, Resource] = {}
        self.waiting: dict[Node, Waiting] = {}
        self._graph = WaitGraph()
        # Shared, so that the decider sees every replacement row.
        self._decider = Decider(world, self.current, keys, self._graph.settled)
        self._users: dict[str, list[str]] = defaultdict(list)
        self._acting: set[Node] = set()
        self._braked: deque[Node] = deque()
        self._budgeted: deque[Node] = deque()
        self._needing: list[Node] = []
        self._removals, self._postponed = Removals(world, self.current), list[Node]()
        self._unfinished = len(world.definitions)
        self._cascades = Cascades(world, self.leftovers, self._users, self._graph, self._decider, self._blockers)
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
            # Without a definition there is no current row: all rows are leftovers to be deleted.
            self.leftovers.update((row.key, row) for row in rows if row is not current)
        for name, blockers in order_of(self.world).items():
            self._add(name, blockers)
        for row in list(self.leftovers.values()):
            self._add_leftover(row)
        # A leftover may be deleted last, after the rows that wait for the brake: its healing must not count.
        self._decider.healing.difference_update(self.leftovers)
        self._cascades.queue_wholes()

    def _add(self, node: Node, blockers: Iterable[Node]) -> None:
        self._graph.add(node, blockers)
        # A lost answer is cleared up at once, whatever blocks the node by now; see `_unanswered`. Existing things of a
        # failed stack are examined at once, too: their blockers may never settle.
        if self._graph.blocked[node] == 0 or self._unanswered(node) is not None or self._exists_in_failed_stack(node):
            self._graph.ready.append(node)

    def _add_leftover(self, row: Resource) -> None:
        # Too late to wait for users of a row whose deletion has begun, unless its cascade was refused: then the parts
        # still come first.
        is_begun = row.deleting and not cascade.is_refused(self.world, row)
        self._cascades.add(row)
        self._add(leftover_node(row.key), () if is_begun else self._blockers(row))

    def _blockers(self, row: Resource) -> set[Node]:
        """Return the nodes to settle before the deletion of a leftover: its replacement, and the rows built on it."""
        nodes: set[Node] = {row.name} if self._was_replaced(row) else set()
        for user in (self.world.rows.get(key) for key in self._users.get(row.key, ()) if key != row.key):
            if user is not None and user.key in self.leftovers:
                nodes.add(leftover_node(user.key))
            # A settled user was compared with its definition, and updated to use the replacement.
            elif user is not None and user.name in self.world.definitions:
                nodes.add(user.name)
        return nodes

    def _was_replaced(self, row: Resource) -> bool:
        """Return whether a younger row is current now; after a rollback the older row may be."""
        current = self.current.get(row.name)
        return current is not None and current.born > row.born

    # -- choosing ----------------------------------------------------------------------------------------------------

    def steps(self, now: float, limit: int) -> list[Step]:
        """Return at most `limit` steps that may be taken now, with their intents already in their rows.

        A step that failed before acting comes last: the failure of the stack is stored before anything else starts.
        """
        steps: list[Step] = []
        while self._graph.ready and len(steps) < limit:
            node = self._graph.ready.popleft()
            # A node may have been queued twice, or settled since it was queued.
            if node in self._graph.settled or node in self._acting:
                continue
            step = self._examine(node, now)
            if step is not None:
                steps.append(step)
                if isinstance(step.act, Record) and (step.row.failed or step.act.fails):
                    break
        return steps

    def _examine(self, node: Node, now: float) -> Step | None:
        self.waiting.pop(node, None)
        decision = self._decide(node, now)
        if decision is None:
            return None
        if isinstance(decision, Waiting):
            self._graph.wait_for(node, decision.after)
            if decision.after and decision.why is Why.REQUIRES:
                return None
            decision = deadlines.in_time(self.world, decision, now)
        if isinstance(decision, Waiting):
            self.waiting[node] = decision
            if decision.why is Why.BRAKE:
                self._braked.append(node)
            elif decision.why is Why.BUDGET:
                self._budgeted.append(node)
            elif decision.why is Why.REQUIRES:
                self._needing.append(node)
            elif decision.why is Why.HANDOVER:
                self._removals.needed.update(decision.on)
                self._graph.ready.extend([*map(leftover_node, decision.on), *self._postponed])
                self._postponed.clear()
            return None
        if isinstance(decision, Settled):
            self._settle(node)
            return decision.step
        self._acting.add(node)
        self._adopt(node, decision)
        return decision

    def _decide(self, node: Node, now: float) -> Step | Settled | Waiting | None:
        """Decide about a node; None if blocked: the end of the block queues the node again."""
        if node[0] == "/":
            # May block the node: a part by its whole, a whole by the users of its parts.
            self._cascades.collect(node, now)
            return None if self._graph.blocked[node] > 0 else self._decide_leftover(node, now)
        if self._graph.blocked[node] > 0:
            # Queued for a lost answer. If the answer has arrived meanwhile, the end of the block queues the node again.
            row = self._unanswered(node)
            if row is not None:
                return self._decider.look_for(row, now)
            return self._decide_blocked(node, now) if self._exists_in_failed_stack(node) else None
        return self._decider.decide(self.world.definitions[node], now)

    def _exists_in_failed_stack(self, node: Node) -> bool:
        """Return whether a resource has or had a thing, in a stack whose newest revision failed early."""
        stack, row = self.world.stack, self.current.get(node)
        if row is None or not stack.failed_early or stack.maintained or node not in self.world.definitions:
            return False
        return row.handle != "" or row.replaces is not None

    def _decide_blocked(self, node: Node, now: float) -> Step | Waiting | None:
        """Decide about a resource blocked by a failed one: a lost thing is restored, and nothing new is begun."""
        decision = self._decider.decide(self.world.definitions[node], now)
        if isinstance(decision, Settled):
            return decision.step
        return None if isinstance(decision, Waiting) and decision.why is Why.STACK_FAILED else decision

    def _unanswered(self, node: Node) -> Resource | None:
        """Return the current row of a name if its creation has no answer, so that a thing may exist.

        The thing is looked for even while the resource is blocked: a requirement added by a newer revision may fail for
        ever, and the thing would never be found.
        """
        row = self.current.get(node)
        if row is None or not row.busy or row.action != Action.CREATE or row.handle or not row.token:
            return None
        return row

    def _decide_leftover(self, node: Node, now: float) -> Step | Settled | Waiting:
        row = self.leftovers.get(node[1:])
        # The row was deleted while the node was queued.
        if row is None:
            return Settled()
        stack = self.world.stack
        unanswered = row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None
        # Maintenance ignores leftovers and must be able to end, so they count as settled. In a locked or suspended
        # stack they wait, and the wait is explained.
        if (stack.maintained or stack.frozen) and not (row.deleting and row.busy) and not unanswered:
            return Settled() if stack.maintained else wait_while_frozen(stack, row.name, row.key, row.updated_at)
        # The thing of an unanswered creation is looked for even if nothing new may begin.
        is_begun = row.deleting or unanswered
        if stack.failed_early and not is_begun and stack.action != Action.DELETE:
            return Waiting(row.name, Why.STACK_FAILED, reason=self.world.stack.reason, key=row.key)
        if not is_begun and self._removals.waits(row, self._unfinished):
            ended = rollouts.end(self.world, row)
            if ended is not None:
                return ended
            self._postponed.append(node)
            return Waiting(row.name, Why.IN_USE, (), LAST, row.updated_at, key=row.key, by=LAST_ENDS)
        return self._decider.decide_leftover(row, now)

    def _adopt(self, node: Node, step: Step) -> None:
        """Add the new row of a step to the world; the replaced row becomes a leftover."""
        row = step.row
        if step.handover is not None and row.key in self.leftovers:
            self._acting.add(leftover_node(row.key))
        elif not step.inserted:
            # A decision about a name may concern one of its leftovers: the replaced thing has come back.
            if node[0] != "/" and row.key in self.leftovers:
                self._reinstate(row)
            # A row that is acted on is current, even if a replacement was intended before a rollback.
            if node[0] != "/":
                row.replaced_by = None
        else:
            self._insert(row)

    def _insert(self, row: Resource) -> None:
        self.world.rows[row.key] = row
        for key in row.requires:
            self._users[key].append(row.key)
        old = self.current.get(row.name)
        self.current[row.name] = row
        if old is not None:
            self.leftovers[old.key] = old
            self._cascades.retry()
            self._add_leftover(old)
            self._block_requirements(old)

    def _block_requirements(self, user: Resource) -> None:
        """Block the leftovers that a new leftover was built on until its deletion.

        They waited only for the replacement so far.
        """
        holder = leftover_node(user.key)
        for key in user.requires:
            used = self.leftovers.get(key)
            if used is not None and used is not user and not used.deleting:
                self._graph.wait_for(leftover_node(key), (holder,))

    def _reinstate(self, row: Resource) -> None:
        """Make a replaced row current again, and its replacement a leftover."""
        del self.leftovers[row.key]
        new = self.current[row.name]
        self.current[row.name] = row
        self.leftovers[new.key] = new
        self._add_leftover(new)
        self._end_healing(new, removed=True)

    # -- moving ------------------------------------------------------------------------------------------------------

    def apply(self, step: Step, record: StepOutcome) -> None:
        """Move the frontier by an executed step whose outcome is in its row."""
        row = record.row
        node = leftover_node(row.key) if row.key in self.leftovers else row.name
        # The step may have turned the current row into a leftover or back, so discard both of its nodes.
        self._acting.discard(node)
        self._acting.discard(row.name)
        self._end_healing(row, removed=record.removed)
        for other in step.also:
            self._end_healing(other, removed=False)
        if row.status == Status.COMPLETE and self.world.stack.failed_early:
            self._graph.ready.extend(self._needing)
            self._needing.clear()
        if self._cascades.is_refused(row):
            for separated in self._cascades.separate(row):
                self._add_leftover(separated)
        if cascade.is_deleted_stack(row):
            self._cascades.queue_wholes()
        if record.removed:
            self._remove(row)
        elif step.handover is not None:
            self._handed_over(node, step, step.handover.needed_by)
        # A row that was only recorded may not have been compared with its definition yet: examine it again.
        elif row.status == Status.COMPLETE and not isinstance(step.act, Record) and self._is_done(node, row):
            self._settle(node)
        elif isinstance(step.act, Observe):
            # The decision after a look comes next: only this pass has the observation.
            self._graph.ready.appendleft(node)
        else:
            self._graph.ready.append(node)

    def _handed_over(self, node: Node, step: Step, needed_by: Node) -> None:
        """Examine both ends of a handover again; a predecessor that cannot let go is being deleted now."""
        for predecessor in step.also:
            if predecessor.key in self.leftovers:
                self._graph.forget_waits_of({leftover_node(predecessor.key)})
                self._add_leftover(predecessor)
        self._acting.discard(needed_by)
        self._graph.ready.extend((node, needed_by))

    def _end_healing(self, row: Resource, *, removed: bool) -> None:
        """After the end of a healing, examine a resource that waits for the brake."""
        healing = self._decider.healing
        if row.key in healing and (removed or not outcome.is_being_healed(row)):
            healing.discard(row.key)
            if self._braked:
                self._graph.ready.append(self._braked.popleft())

    def _is_done(self, node: Node, row: Resource) -> bool:
        """Return whether a row that has just become complete needs no further examination.

        Reasons for another examination: the row was merely healed, a value it reads changed meanwhile, its newest
        observation was not judged, a hook is due, a rollout or new metadata is pending, the stack was resumed or
        unlocked and the row was not, or the row has marks: a user's request, or a recovery whose policy may be gone.
        """
        definition = self.world.definitions.get(node)
        if definition is None or row.revision != self.world.stack.revision or not row.judged_observation:
            return False
        if row.marks is not None or row.new_metadata is not None or row.key in self.world.rollouts:
            return False
        if maintenance_state.unresumed(self.world, row) or (row.hooks and hooks.due(self.world, row)):
            return False
        seen = self.world.seen.get(row.key)
        if seen is not None and seen.number != row.judged_observation:
            return False
        return not self._decider.is_stale(definition, row)

    def _remove(self, row: Resource) -> None:
        self.world.rows.pop(row.key, None)
        self.world.seen.pop(row.key, None)
        self.leftovers.pop(row.key, None)
        self._settle(leftover_node(row.key))
        # A resource in `Why.LEAVING` waits for the deletion of its broken predecessor, but is not blocked by the
        # predecessor's node, so settling the node does not queue it. In a failed stack it may be blocked for ever.
        if (
            self._graph.blocked.get(row.name) == 0 or self._exists_in_failed_stack(row.name)
        ) and row.name not in self._graph.settled:
            self._graph.ready.append(row.name)

    def _settle(self, node: Node) -> None:
        if node in self._graph.settled:
            return
        # The settled member may have been away until now: examine a node that waits for the budget.
        if self._budgeted:
            self._graph.ready.append(self._budgeted.popleft())
        self._graph.settle(node)
        self._unfinished -= node[0] != "/"
        if self._unfinished == 0:
            self._graph.ready.extend(self._postponed)
            self._postponed.clear()

    def time_out(self, now: float) -> list[Step]:
        """Fail all rows in progress, since the stack's deadline has passed."""
        return [deadlines.time_out(self.world, row, now, gives_up=True) for row in self.world.rows.values() if row.busy]

    # -- reporting ---------------------------------------------------------------------------------------------------

    @property
    def at_rest(self) -> bool:
        """Whether the shard matches its desired state: nothing to do, nothing in progress, no leftovers."""
        return len(self._graph.settled) >= len(self._graph.blocked)

    @property
    def exhausted(self) -> bool:
        """Whether nothing can be done now: the rest waits for time, or for events outside the shard."""
        return not self._graph.ready and not self._acting

    @property
    def unfinished(self) -> int:
        """Number of nodes that are not at rest."""
        return max(0, len(self._graph.blocked) - len(self._graph.settled))

    @property
    def size(self) -> int:
        """Number of desired resources and leftovers, including leftovers deleted since the frontier was built."""
        return len(self._graph.blocked)

    def due_at(self) -> float | None:
        """Return the earliest time at which a waiting node should be examined again."""
        times = (at for waiting in self.waiting.values() for at in (waiting.due_at, waiting.ends_at))
        return min((at for at in times if at is not None), default=None)

    @property
    def healing(self) -> int:
        """Number of rows of the shard that are being healed."""
        return len(self._decider.healing)

    def waits_for_reports(self, row: Resource) -> str:
        return self._decider.waits_for_reports(row)

    def is_deleted_with_whole(self, node: Node) -> bool:
        """Return whether a leftover is deleted together with its whole."""
        return self._cascades.is_collected(node)

    def is_settled(self, node: Node) -> bool:
        return node in self._graph.settled

    def step_at(self, node: Node, at: float) -> Step | None:
        """Return the step for a waiting node at a later time; the frontier is useless afterwards."""
        return self._examine(node, at)

    def unmet(self) -> dict[Node, list[Node]]:
        """Return the unsettled nodes that block each node not examined yet."""
        blockers_of: dict[Node, list[Node]] = defaultdict(list)
        for blocker, nodes in self._graph.unblocks.items():
            for node in nodes:
                if node not in self._graph.settled:
                    blockers_of[node].append(blocker)
        return blockers_of

    def name(self, node: Node) -> str:
        """Return the resource name of a node."""
        return node if node[0] != "/" else self.world.rows[node[1:]].name
