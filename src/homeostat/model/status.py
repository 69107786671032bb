"""States of stacks and resources in the words of Heat's API, and the transitions between them."""

from collections.abc import Mapping
from enum import StrEnum

from homeostat.model.errors import Bug


class Word(StrEnum):
    """Words that are compared and looked up in tables for each row of each pass."""

    # That of Enum hashes the name, in Python; this one the text, in C, and agrees with plain texts by definition.
    __hash__ = str.__hash__


class Action(Word):
    INIT = "INIT"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ROLLBACK = "ROLLBACK"
    CHECK = "CHECK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    ADOPT = "ADOPT"
    SNAPSHOT = "SNAPSHOT"
    RESTORE = "RESTORE"
    LOCK = "LOCK"
    UNLOCK = "UNLOCK"


class Status(Word):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


class DeletionPolicy(StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


def joined(action: str, status: str) -> str:
    """Join action and status as the API shows them: `CREATE`, `COMPLETE` -> `CREATE_COMPLETE`."""
    return f"{action}_{status}"


State = tuple[str, str]
"""Action and status."""

LATER = frozenset(Action) - {Action.INIT, Action.CREATE, Action.ADOPT, Action.ROLLBACK}
"""Actions that may follow once a stack or resource has begun to exist."""
RESOURCE_ACTIONS: Mapping[str, frozenset[Action]] = {
    Action.INIT: frozenset({Action.CREATE, Action.ADOPT, Action.DELETE}),
    **dict.fromkeys(LATER | {Action.CREATE, Action.ADOPT}, LATER),
    Action.ADOPT: LATER | {Action.CREATE},
    Action.CHECK: LATER | {Action.CREATE, Action.ADOPT},
    Action.DELETE: frozenset({Action.DELETE}),
}
"""Action of a resource -> other actions that may follow it.

A row that is being deleted never comes back; a new row takes its place. CREATE follows ADOPT for a thing that was to be
taken over and does not exist, and CHECK for a resource that was marked unhealthy before it was ever made. ADOPT follows
CHECK when the mark on a resource whose adoption had failed expires: it has failed with that again.
"""

GONE: State = (Action.DELETE, Status.COMPLETE)
UNBEGUN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.CHECK})
"""Actions of a resource that may fail without having begun: its values do not fit, or trouble is merely noticed."""


def resource_may(before: State, after: State) -> bool:
    """Return whether a resource may change from one state to the other.

    Each such change is one event; a row begins as INIT_COMPLETE.
    """
    (was, status), (action, then) = before, after
    # Any row may be removed (a thing that vanished, was retained or was never made); nothing follows after that.
    if before == GONE or after == GONE:
        return before != GONE
    if was == action:
        return _same_action(action, status, then)
    return action in RESOURCE_ACTIONS.get(was, ()) and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)


_AT_ONCE = {(Status.FAILED, action) for action in UNBEGUN}


def _same_action(action: str, status: str, then: str) -> bool:
    """Return whether an action may end, or begin once more.

    A failed one may still turn out well, or fail again for a newer revision before it begins.
    """
    if status == then:
        return (then, action) in _AT_ONCE
    # A row's thing is created once; another creation is another row.
    if status == Status.COMPLETE:
        return action != Action.CREATE and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)
    return True


STATES: tuple[State, ...] = tuple((action, status) for action in Action for status in Status)
RESOURCE_TRANSITIONS: frozenset[tuple[State | None, State]] = frozenset(
    (before, after) for before in STATES for after in STATES if resource_may(before, after)
)
"""`resource_may` as a table."""


def check_transition(
    legal: frozenset[tuple[State | None, State]], subject: tuple[str, str, str], before: State | None, after: State
) -> None:
    """Check that a stack or resource may change from one state to the other.

    Nearly all changes are legal: a text is made only for the others.

    Args:
        legal: The table of legal transitions.
        subject: What changes, for the message: "stack" or "resource", its id or key, and its name.
        before: The state now; None for what does not exist yet.
        after: The next state.

    Raises:
        Bug: It may not.
    """
    if (before, after) not in legal:
        was = "nothing" if before is None else joined(*before)
        what, key, name = subject
        raise Bug(f"{what} {key} ({name}) cannot change from {was} to {joined(*after)}")
