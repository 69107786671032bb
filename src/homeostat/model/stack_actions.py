"""The actions of stacks as a table: what each may follow, what it changes, and how it goes through the resources.

Another action is another row here, beside the methods of the resource types that carry it out (`maintenance_methods`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from homeostat.model.status import GONE, STATES, Action, State, Status


class Effect(Enum):
    """What an action does to the things of a stack.

    Attributes:
        CHANGE: It creates, updates and deletes them until they are as desired.
        READ: It observes or copies them.
        MAINTAIN: It acts on those that exist; the desired state stays as it is, and none is created or deleted.
    """

    CHANGE = auto()
    READ = auto()
    MAINTAIN = auto()


class Order(Enum):
    """Which resources come first."""

    REQUIRED_FIRST = auto()
    DEPENDENTS_FIRST = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class StackAction:
    """An action of a stack.

    Attributes:
        effect: What it does to the things.
        follows: The actions that it may follow, in progress or ended; None for a new stack.
        order: Of maintenance, the order in which it goes through the resources.
        thorough: Every resource gets its turn although others fail, and the stack fails at the end.
        looks_first: Every thing is observed before anything is done.
        rolls_back: A stack with rollback enabled goes back to its last COMPLETE revision after it fails (CV11).
        creates: It may create things.
        cancellable: A user may stop it.
        marks_allowed: Resources may be marked unhealthy meanwhile: the stack replaces them at once, or does so later.
        suspends: Whether the stack is suspended from then on; None leaves that as it is.
        mark: The mark that it leaves on the row of each thing that it acts on; "" for none. While the stack rests after
            an action with a mark, nothing of the stack is changed.
        clears: The mark that it takes away; it leaves things without it alone.
        heals_after: What was found to differ meanwhile is mended once it has ended.
        overtakes: Actions in progress that a request for it may end; a request during any other is refused. None for an
            action with rules of its own.
        for_nested: A user may request it of a nested stack.
        checks_types: It is refused to users who may not use one of the stack's resource types.
        summary: What it does, for users. An action with a summary has a command of its name, without flags of its own.
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
"""Action -> what it means for a stack."""


def _those(**values: object) -> frozenset[Action]:
    """Return the actions whose fields have these values."""
    found = STACK_ACTIONS.items()
    return frozenset(Action(name) for name, each in found if all(getattr(each, key) == values[key] for key in values))


MAINTENANCE = _those(effect=Effect.MAINTAIN)
"""Actions on existing things that leave the desired state as it is; nothing is created or deleted for them."""
LOCKING = frozenset({Action.LOCK, Action.UNLOCK})
READ_ONLY_ACTIONS = _those(effect=Effect.READ)
"""Actions that change no thing of a stack."""
NON_CHANGING_ACTIONS = READ_ONLY_ACTIONS | MAINTENANCE
"""Actions that leave the desired state as it is."""
ROLLED_BACK_ON_FAILURE = _those(rolls_back=True)
"""Actions after whose failure a stack with rollback enabled goes back to its last COMPLETE revision (CV11)."""
CREATING = _those(creates=True)
"""Actions that create things."""
REQUESTED = frozenset(Action(name) for name, each in STACK_ACTIONS.items() if each.overtakes is not None)
"""Actions that a user requests by their name, and that begin by these rules alone."""
CANCELLABLE = _those(cancellable=True)
"""Actions that a user can cancel; a deletion, for one, goes on."""

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
"""State of a stack at rest -> states that it may change to without a request.

One of its resources has failed; none of them is FAILED any more, or none is left (ADR 0047); or an unlocked stack
returns to what it said before it was locked.
"""


def stack_may(before: State | None, after: State) -> bool:
    """Return whether a stack may change from one state to the other; `before` is None for a new stack.

    A newer revision may begin the same action again.
    """
    action, then = after
    rules = STACK_ACTIONS.get(action)
    if before is None:
        return rules is not None and rules.follows is None and then == Status.IN_PROGRESS
    was, status = before
    if before == GONE:
        return False
    if after in AT_REST.get(before, ()):
        return True
    if was == action and status == Status.IN_PROGRESS:
        return True
    return then == Status.IN_PROGRESS and rules is not None and rules.follows is not None and was in rules.follows


STACK_TRANSITIONS: frozenset[tuple[State | None, State]] = frozenset(
    (before, after) for before in (None, *STATES) for after in STATES if stack_may(before, after)
)
"""`stack_may` as a table."""
