"""Frontier of one shard: the resources that may be acted on now (CV4, CV6, CV12).

The nodes of its graph are the names of resources that should exist, and the keys of leftover rows with a slash before
them. A resource waits for what it requires. A leftover waits until no row uses it any more and its replacement is done.
The frontier is built once from a world and then moved by the outcomes of steps, so that a chain of a thousand resources
does not cost a thousand loads of the shard.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from homeostat.model.plan import Settled, Step, StepOutcome, Verb
from homeostat.model.status import Action, Status
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions import maintenance_state
from homeostat.planner.actions.maintenance_state import wait_while_frozen
from homeostat.planner.cascades import Cascades
from homeostat.planner.current import current_row
from homeostat.planner.decide import Decider
from homeostat.planner.graph import Node, WaitGraph, leftover_node, order_of
from homeostat.planner.lifecycle import cascade, hooks, rollouts
from homeostat.planner.removals import LAST, LAST_ENDS, Removals
from homeostat.planner.retry import deadlines


class Frontier:
    """Plans one shard. Pure: changes nothing but the rows of its own world.

    Each node is in one of these states: blocked by others or ready to be examined (see `WaitGraph`), acting (its step
    was returned, and `apply` was not called for it yet), waiting for a reason in `waiting`, or settled.

    Args:
        world: The whole shard.
        keys: Supply of fresh row keys, since the planner has no randomness of its own.
    """

    def __init__(self, world: World, keys: Iterator[str]) -> None:
        self.world = world
        self.current: dict[str, Resource] = {}
        self.leftovers: dict[str, Resource] = {}
        self.waiting: dict[Node, Waiting] = {}
        self._graph = WaitGraph()
        # `current` is shared with the decider, which so sees every row that takes the place of another one.
        self._decider = Decider(world, self.current, keys, self._graph.settled)
        self._users: dict[str, list[str]] = defaultdict(list)
        self._acting: set[Node] = set()
        self._braked: deque[Node] = deque()
        self._budgeted: deque[Node] = deque()
        self._needing: list[Node] = []
        self._removals, self._put_off = Removals(world, self.current), list[Node]()
        self._unfinished = len(world.definitions)
        self._cascades = Cascades(world, self.leftovers, self._users, self._graph, self._decider, self._holders)
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
            # A resource that is not in the desired graph has no current row, so all its rows are leftovers to be
            # deleted.
            self.leftovers.update((row.key, row) for row in rows if row is not current)
        for name, blockers in order_of(self.world).items():
            self._add(name, blockers)
        for row in list(self.leftovers.values()):
            self._add_leftover(row)
        self._decider.healing.difference_update(self.leftovers)  # which may go last, after what waits for the brake
        self._cascades.queue_wholes()

    def _add(self, node: Node, blockers: Iterable[Node]) -> None:
        self._graph.add(node, blockers)
        # A lost answer is cleared up at once, whatever blocks the node by now; see `_unanswered`.
        # So is what there was already in a stack that has failed: what blocks it may never come to rest.
        if self._graph.blocked[node] == 0 or self._unanswered(node) is not None or self._outlasts(node):
            self._graph.ready.append(node)

    def _add_leftover(self, row: Resource) -> None:
        # A deletion that has begun is carried on: it is too late to wait for what uses the row.
        # If it was refused together with the parts, these still come before it.
        begun = row.deleting and not cascade.is_refused(self.world, row)
        self._cascades.add(row)
        self._add(leftover_node(row.key), () if begun else self._holders(row))

    def _holders(self, row: Resource) -> set[Node]:
        """Return what comes before the deletion of a leftover: its replacement, and every row that was built on it."""
        nodes: set[Node] = {row.name} if self._was_replaced(row) else set()
        for user in (self.world.rows.get(key) for key in self._users.get(row.key, ()) if key != row.key):
            if user is not None and user.key in self.leftovers:
                nodes.add(leftover_node(user.key))
            # A desired user releases it when it settles: by then it was compared, and updated to use the replacement.
            elif user is not None and user.name in self.world.definitions:
                nodes.add(user.name)
        return nodes

    def _was_replaced(self, row: Resource) -> bool:
        """Return whether a younger row stands for the name by now; after a rollback the older one may."""
        current = self.current.get(row.name)
        return current is not None and current.born > row.born

    # -- choosing ----------------------------------------------------------------------------------------------------

    def steps(self, now: float, limit: int) -> list[Step]:
        """Return at most `limit` steps that may be taken now, with their intents already in their rows.

        A step that failed before anything acted is the last: what fails the stack is stored before anything else is
        tried.
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
                if step.verb is Verb.RECORD and (step.row.failed or step.fails):
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
                self._graph.ready.extend([*map(leftover_node, decision.on), *self._put_off])
                self._put_off.clear()
            return None
        if isinstance(decision, Settled):
            self._settle(node)
            return decision.step
        self._acting.add(node)
        self._adopt(node, decision)
        return decision

    def _decide(self, node: Node, now: float) -> Step | Settled | Waiting | None:
        """Decide about a node; None where it waits for others that queue it again."""
        if node[0] == "/":
            self._cascades.collect(node, now)
            # It waits for others by now: for what it is a part of, or what uses its parts.
            return None if self._graph.blocked[node] > 0 else self._decide_leftover(node, now)
        if self._graph.blocked[node] > 0:
            # Where it was queued for a lost answer that has arrived since, it is queued again when nothing blocks it.
            row = self._unanswered(node)
            if row is not None:
                return self._decider.look_for(row, now)
            return self._decide_blocked(node, now) if self._outlasts(node) else None
        return self._decider.decide(self.world.definitions[node], now)

    def _outlasts(self, node: Node) -> bool:
        """Return whether a name has a thing, or had one, in a stack whose newest revision has failed."""
        stack, row = self.world.stack, self.current.get(node)
        if row is None or not stack.failed_early or stack.maintained or node not in self.world.definitions:
            return False
        return row.handle != "" or row.replaces is not None

    def _decide_blocked(self, node: Node, now: float) -> Step | Waiting | None:
        """Decide about what a failed resource blocks: what is lost is brought back as it was, and nothing else."""
        decision = self._decider.decide(self.world.definitions[node], now)
        if isinstance(decision, Settled):
            return decision.step
        return None if isinstance(decision, Waiting) and decision.why is Why.STACK_FAILED else decision

    def _unanswered(self, node: Node) -> Resource | None:
        """Return the row of this name if it is not known whether its creation has made anything.

        That is found out whatever the resource waits for by now: a requirement that a newer revision has added may fail
        for ever, and the thing would never be found.
        """
        row = self.current.get(node)
        if row is None or not row.busy or row.action != Action.CREATE or row.handle or not row.token:
            return None
        return row

    def _decide_leftover(self, node: Node, now: float) -> Step | Settled | Waiting:
        row = self.leftovers.get(node[1:])
        # Its row was deleted while the node was queued.
        if row is None:
            return Settled()
        stack = self.world.stack
        unanswered = row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None
        # Maintenance passes leftovers by and must be able to end, so they count as settled; in a stack that is locked
        # or suspended they wait, and the wait is explained.
        if (stack.maintained or stack.frozen) and not (row.deleting and row.busy) and not unanswered:
            return Settled() if stack.maintained else wait_while_frozen(stack, row.name, row.key, row.updated_at)
        # What a creation may have made is looked for even where nothing new is begun.
        begun = row.deleting or unanswered
        if stack.failed_early and not begun and stack.action != Action.DELETE:
            return Waiting(row.name, Why.STACK_FAILED, reason=self.world.stack.reason, key=row.key)
        if not begun and self._removals.waits(row, self._unfinished):
            ended = rollouts.end(self.world, row)
            if ended is not None:
                return ended
            self._put_off.append(node)
            return Waiting(row.name, Why.IN_USE, (), LAST, row.updated_at, key=row.key, by=LAST_ENDS)
        return self._decider.decide_leftover(row, now)

    def _adopt(self, node: Node, step: Step) -> None:
        """Take a new row into the world; the row that it replaces becomes a leftover."""
        row = step.row
        if step.handover is not None and row.key in self.leftovers:
            self._acting.add(leftover_node(row.key))
        elif not step.inserted:
            # The decision about a name was about one of its leftovers: the replaced thing has come back.
            if node[0] != "/" and row.key in self.leftovers:
                self._reinstate(row)
            # A row that is acted on stands for its name, whatever was to replace it before a rollback.
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
            self._hold(old)

    def _hold(self, user: Resource) -> None:
        """Keep leftovers that a new leftover was built on until it is gone: they waited for its replacement only."""
        holder = leftover_node(user.key)
        for key in user.requires:
            used = self.leftovers.get(key)
            if used is not None and used is not user and not used.deleting:
                self._graph.wait_for(leftover_node(key), (holder,))

    def _reinstate(self, row: Resource) -> None:
        """Make a replaced row the current one of its name again, and its replacement a leftover."""
        del self.leftovers[row.key]
        new = self.current[row.name]
        self.current[row.name] = row
        self.leftovers[new.key] = new
        self._add_leftover(new)
        self._healed(new, removed=True)

    # -- moving ------------------------------------------------------------------------------------------------------

    def apply(self, step: Step, record: StepOutcome) -> None:
        """Move the frontier by a step that was carried out and whose outcome is in its row."""
        row = record.row
        node = leftover_node(row.key) if row.key in self.leftovers else row.name
        # The step may have turned its row from the current one into a leftover, or back: then it was returned under
        # the other node.
        self._acting.discard(node)
        self._acting.discard(row.name)
        self._healed(row, removed=record.removed)
        for other in step.also:
            self._healed(other, removed=False)
        if row.status == Status.COMPLETE and self.world.stack.failed_early:
            self._graph.ready.extend(self._needing)
            self._needing.clear()
        if self._cascades.is_refused(row):
            for separated in self._cascades.separate(row):
                self._add_leftover(separated)
        if cascade.is_deleted_stack(row):
            self._cascades.queue_wholes()
        if record.removed:
            self._gone(row)
        elif step.handover is not None:
            self._handed_over(node, step)
        # What was only recorded may not have been compared with its definition yet, so it is examined again.
        elif row.status == Status.COMPLETE and step.verb is not Verb.RECORD and self._is_done(node, row):
            self._settle(node)
        elif step.verb is Verb.OBSERVE:
            self._graph.ready.appendleft(node)  # what follows from a look comes next: only this pass has seen it
        else:
            self._graph.ready.append(node)

    def _handed_over(self, node: Node, step: Step) -> None:
        """Examine what lets go of something, and what waits for that; what cannot let go is being deleted now."""
        for predecessor in step.also:
            if predecessor.key in self.leftovers:
                self._graph.forget_waits_of({leftover_node(predecessor.key)})
                self._add_leftover(predecessor)
        self._acting.discard(step.needed_by)
        self._graph.ready.extend((node, step.needed_by))

    def _healed(self, row: Resource, *, removed: bool) -> None:
        """Once a row is not being healed any more, examine one that the brake has held back."""
        healing = self._decider.healing
        if row.key in healing and (removed or not outcome.is_being_healed(row)):
            healing.discard(row.key)
            if self._braked:
                self._graph.ready.append(self._braked.popleft())

    def _is_done(self, node: Node, row: Resource) -> bool:
        """Return whether a row that has just become complete needs no further examination.

        It needs one if it was merely healed, if what it reads has changed while it was in progress, if a difference was
        not judged, if a hook is due, if a user has asked something of it, or if it was suspended with its stack, which
        is resumed by now.
        """
        definition = self.world.definitions.get(node)
        if definition is None or row.revision != self.world.stack.revision or not row.judged_observation:
            return False
        if (
            row.new_metadata is not None
            or row.key in self.world.rollouts
            or maintenance_state.unresumed(self.world, row)
        ):
            return False
        if maintenance_state.still_locked(self.world, row):
            return False
        if row.hooks and hooks.due(self.world, row):
            return False
        if row.marks is not None and row.marks.requested:
            return False
        seen = self.world.seen.get(row.key)
        if seen is not None and seen.number != row.judged_observation:
            return False
        return not self._decider.is_stale(definition, row)

    def _gone(self, row: Resource) -> None:
        self.world.rows.pop(row.key, None)
        self.world.seen.pop(row.key, None)
        self.leftovers.pop(row.key, None)
        self._settle(leftover_node(row.key))
        # What waits for its broken predecessor to be deleted (`Why.LEAVING`) is not blocked by the predecessor's node,
        # so settling that does not queue it; in a failed stack others may block it for ever.
        if (self._graph.blocked.get(row.name) == 0 or self._outlasts(row.name)) and row.name not in self._graph.settled:
            self._graph.ready.append(row.name)

    def _settle(self, node: Node) -> None:
        if node in self._graph.settled:
            return
        # It may have been away: a node that waits for others to be in service is examined again.
        if self._budgeted:
            self._graph.ready.append(self._budgeted.popleft())
        self._graph.settle(node)
        self._unfinished -= node[0] != "/"
        if self._unfinished == 0:
            self._graph.ready.extend(self._put_off)
            self._put_off.clear()

    def time_out(self, now: float) -> list[Step]:
        """Fail whatever is still in progress: the stack's deadline has passed."""
        return [deadlines.time_out(self.world, row, now, gives_up=True) for row in self.world.rows.values() if row.busy]

    # -- telling -----------------------------------------------------------------------------------------------------

    @property
    def at_rest(self) -> bool:
        """Whether everything is as it should be: nothing to do, nothing in progress, no leftovers."""
        return len(self._graph.settled) >= len(self._graph.blocked)

    @property
    def exhausted(self) -> bool:
        """Whether nothing can be done now: what is left waits for something outside this shard, or for time."""
        return not self._graph.ready and not self._acting

    @property
    def unfinished(self) -> int:
        """Number of nodes that are not at rest."""
        return max(0, len(self._graph.blocked) - len(self._graph.settled))

    @property
    def size(self) -> int:
        """Number of nodes: resources that should exist, and leftovers, even if deleted since the frontier was built."""
        return len(self._graph.blocked)

    def due_at(self) -> float | None:
        """Return the earliest time at which something that waits should be examined again."""
        times = (at for waiting in self.waiting.values() for at in (waiting.due_at, waiting.ends_at))
        return min((at for at in times if at is not None), default=None)

    @property
    def healing(self) -> int:
        """Number of rows of the shard that are being healed."""
        return len(self._decider.healing)

    def waits_for_reports(self, row: Resource) -> str:
        return self._decider.waits_for_reports(row)

    def is_deleted_with_whole(self, node: Node) -> bool:
        """Return whether a leftover waits for the whole that it is a part of."""
        return self._cascades.is_collected(node)

    def is_settled(self, node: Node) -> bool:
        return node in self._graph.settled

    def step_at(self, node: Node, at: float) -> Step | None:
        """Return what would be done about a waiting node at a later time; the frontier is useless afterwards."""
        return self._examine(node, at)

    def unmet(self) -> dict[Node, list[Node]]:
        """Return for each node not examined yet the nodes that have to come to rest first."""
        blockers_of: dict[Node, list[Node]] = defaultdict(list)
        for blocker, nodes in self._graph.unblocks.items():
            for node in nodes:
                if node not in self._graph.settled:
                    blockers_of[node].append(blocker)
        return blockers_of

    def name(self, node: Node) -> str:
        """Return the name of the resource that a node stands for."""
        return node if node[0] != "/" else self.world.rows[node[1:]].name
