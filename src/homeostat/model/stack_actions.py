"""The table of stack actions: predecessors, effect and order of each.

A new action needs a row here and methods of the resource types that carry it out (`maintenance_methods`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from homeostat.model.status import GONE, STATES, Action, State, Status


class Effect(Enum):
    """The effect of an action on the cloud's objects of a stack.

    Attributes:
        CHANGE: Creates, updates and deletes objects until they are as desired.
        READ: Observes or copies objects.
        MAINTAIN: Acts on existing objects. The desired state stays, and no object is created or deleted.
    """

    CHANGE = auto()
    READ = auto()
    MAINTAIN = auto()


class Order(Enum):
    """The order in which resources are visited."""

    REQUIRED_FIRST = auto()
    DEPENDENTS_FIRST = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class StackAction:
    """An action of a stack.

    Attributes:
        effect: Effect on the cloud's objects.
        follows: Permitted predecessors, in progress or ended; None for an action that begins a new stack.
        order: Order of the resources, for maintenance only.
        thorough: Every resource is processed even if some fail; the stack fails at the end.
        looks_first: Every object is observed before the first change.
        rolls_back: On failure, a stack with rollback enabled returns to its last COMPLETE revision (CV11).
        creates: May create objects.
        cancellable: A user may cancel the action.
        marks_allowed: Resources may be marked unhealthy during the action, and are replaced during or after it.
        suspends: Whether the stack is suspended from then on; None for no change.
        mark: Mark left on the row of each affected object; "" for none. While the stack rests after an action with a
            mark, nothing in the stack changes.
        clears: Mark removed from the rows; objects without the mark are skipped.
        heals_after: Drift found during the action is repaired after its end.
        overtakes: Actions in progress that a request for this action may end; during any other action the request is
            refused. None for an action with its own rules.
        for_nested: A user may request the action for a nested stack.
        checks_types: Refused to users who may not use one of the stack's resource types.
        summary: Help text for users. An action with a summary has a command of the same name, without own flags.
    """

    effect: Effect = Effect.CHANGE
    follows: frozenset[Action] | None = frozenset()
    order: Order = Order.REQUIRED_FIRST
    thorough: bool = False
    looks_first: bool = False
    rolls_back: bool = False
    creates: bool = False
    cancellable: bool = False
    marks_allowed: bool = False
    suspends: bool | None = None
    mark: str = ""
    clears: str = ""
    heals_after: bool = False
    overtakes: frozenset[Action] | None = None
    for_nested: bool = True
    checks_types: bool = False
    summary: str = ""


SUSPENDED, LOCKED = "suspended", "locked"
"""Marks on the rows of things that are suspended or locked with their stack."""
_MAINTAINED = frozenset({Action.SUSPEND, Action.RESUME, Action.LOCK, Action.UNLOCK})
_ALL = frozenset(Action)
_EXISTING = _ALL - {Action.DELETE}

STACK_ACTIONS: Mapping[str, StackAction] = {
    Action.CREATE: StackAction(follows=None, rolls_back=True, creates=True, cancellable=True, marks_allowed=True),
    Action.ADOPT: StackAction(follows=None, rolls_back=True, creates=True, marks_allowed=True, heals_after=True),
    # An update that is requested during a deletion wins (CV2).
    Action.UPDATE: StackAction(follows=_ALL, rolls_back=True, creates=True, cancellable=True, marks_allowed=True),
    Action.DELETE: StackAction(follows=_ALL),
    # A rollback is never rolled back itself.
    Action.ROLLBACK: StackAction(follows=_EXISTING - {Action.ROLLBACK}, creates=True, marks_allowed=True),
    Action.RESTORE: StackAction(follows=_ALL, rolls_back=True, creates=True, marks_allowed=True),
    Action.CHECK: StackAction(
        Effect.READ,
        follows=_EXISTING,
        thorough=True,
        looks_first=True,
        marks_allowed=True,
        heals_after=True,
        overtakes=frozenset(),
        summary="check every resource and report its health; change nothing",
    ),
    Action.SNAPSHOT: StackAction(Effect.READ, follows=_EXISTING, heals_after=True),
    Action.SUSPEND: StackAction(
        Effect.MAINTAIN,
        follows=_EXISTING,
        order=Order.DEPENDENTS_FIRST,
        looks_first=True,
        suspends=True,
        mark=SUSPENDED,
        overtakes=_MAINTAINED,
        for_nested=False,
        checks_types=True,
        summary="suspend the resources of a stack, such as servers",
    ),
    Action.RESUME: StackAction(
        Effect.MAINTAIN,
        follows=_EXISTING,
        thorough=True,
        looks_first=True,
        suspends=False,
        clears=SUSPENDED,
        heals_after=True,
        overtakes=_MAINTAINED,
        for_nested=False,
        checks_types=True,
        summary="resume a suspended stack",
    ),
    # A stack whose deletion failed may be locked.
    Action.LOCK: StackAction(
        Effect.MAINTAIN, follows=_ALL, order=Order.ANY, thorough=True, looks_first=True, mark=LOCKED
    ),
    Action.UNLOCK: StackAction(
        Effect.MAINTAIN,
        follows=_EXISTING,
        order=Order.ANY,
        thorough=True,
        looks_first=True,
        clears=LOCKED,
        summary="unlock a stack",
    ),
}
"""Action -> its rules."""


def _actions(field: str, value: object) -> frozenset[Action]:
    return frozenset(Action(name) for name, rules in STACK_ACTIONS.items() if getattr(rules, field) == value)


MAINTENANCE = _actions("effect", Effect.MAINTAIN)
"""Actions on existing objects; the desired state stays, and nothing is created or deleted."""
LOCKING = frozenset({Action.LOCK, Action.UNLOCK})
READ_ONLY_ACTIONS = _actions("effect", Effect.READ)
"""Actions that change no object of a stack."""
NON_CHANGING_ACTIONS = READ_ONLY_ACTIONS | MAINTENANCE
"""Actions that leave the desired state unchanged."""
ROLLED_BACK_ON_FAILURE = _actions("rolls_back", True)
"""Actions that, on failure, return a stack with rollback enabled to its last COMPLETE revision (CV11)."""
CREATING = _actions("creates", True)
"""Actions that create objects."""
REQUESTED = frozenset(Action(name) for name, rules in STACK_ACTIONS.items() if rules.overtakes is not None)
"""Actions that a user requests by name; only the rules in the table decide whether they begin."""
CANCELLABLE = _actions("cancellable", True)
"""Actions that a user can cancel. A deletion cannot be."""

CHECK_FAILED: State = (Action.CHECK, Status.FAILED)
CHECK_COMPLETE: State = (Action.CHECK, Status.COMPLETE)
AT_REST: Mapping[State, frozenset[State]] = {
    **{
        (action, Status.COMPLETE): frozenset({CHECK_FAILED})
        for action in _EXISTING
        if action not in STACK_ACTIONS or not STACK_ACTIONS[action].mark
    },
    **{(action, Status.FAILED): frozenset({CHECK_COMPLETE}) for action in (Action.CHECK, Action.UPDATE, Action.RESUME)},
    (Action.DELETE, Status.FAILED): frozenset({GONE}),
    (Action.UNLOCK, Status.COMPLETE): frozenset(
        {CHECK_FAILED, (Action.SUSPEND, Status.COMPLETE), *((action, Status.FAILED) for action in Action)}
    ),
}
"""State of a stack at rest -> states that may follow without a request (ADR 0047).

A resource has failed; or no resource is FAILED any longer, or none is left; or an unlocked stack returns to its state
before the lock.
"""


def stack_may(before: State | None, after: State) -> bool:
    """Return whether a stack may change from one state to another; `before` is None for a new stack."""
    action, then = after
    rules = STACK_ACTIONS.get(action)
    if before is None:
        return rules is not None and rules.follows is None and then == Status.IN_PROGRESS
    was, status = before
    if before == GONE:
        return False
    if after in AT_REST.get(before, ()):
        return True
    if was == action and status == Status.IN_PROGRESS:  # also IN_PROGRESS again, for a newer revision
        return True
    return then == Status.IN_PROGRESS and rules is not None and rules.follows is not None and was in rules.follows


STACK_TRANSITIONS: frozenset[tuple[State | None, State]] = frozenset(
    (before, after) for before in (None, *STATES) for after in STATES if stack_may(before, after)
)
"""`stack_may` as a table."""
