"""Marks on resources: what else holds for them besides their state, as their rows store it.

`load` and `dump` alone know the JSON. A mark stays until the planner takes it off; a row without marks stores NULL.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from homeostat.model import requested
from homeostat.model.errors import Bug
from homeostat.model.requested import Request
from homeostat.model.stack_actions import STACK_ACTIONS

HEALTH_POLICY = "homeostat:health-policy"
"""Reporter of the marks that health policies make."""


@dataclass(frozen=True, slots=True)
class UnhealthyMark:
    """The resource is unhealthy, whatever is seen of it (MU1 to MU8); times are in seconds since the epoch.

    Attributes:
        reason: Why it is unhealthy.
        since: When it was marked.
        by: User who made the request, None if not known.
        reporter: Name that the caller gives itself, if any.
        expires_at: When the mark ends; None for no end.
        before: Action that had failed when the mark came, and its reason. The resource fails with that again when the
            mark expires, or, if nothing was ever made, when it is taken away. None if nothing had failed.
    """

    reason: str
    since: float
    by: str | None = None
    reporter: str | None = None
    expires_at: float | None = None
    before: tuple[str, str] | None = None

    def is_over(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class RestoredMark:
    """The thing has its data from a snapshot of its stack (ADR 0033).

    Attributes:
        run: The request to go back that restored it, see `store.schema.stack`.
        said: Property -> its value in the template then. What was restored stays for as long as the template says the
            same.
    """

    run: str | None
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecoveryMark:
    """A health policy is recovering the thing (ADR 0072); times are in seconds since the epoch.

    Attributes:
        begun_at: When its first action began.
        step: Number of the action that is tried; `BY_HINT` for the operation that the status suggests.
        acted_at: When that action began; None if it has yet to.
        fenced: What is confirmed cut off.
        unsure: What may be cut off: it was asked for, and the thing was not found any more.
        rounds: How often all actions were tried in vain.
        tried: The actions so far and what became of them, for users.
        identity: Properties that keep the identity of the thing, as its policy asks, for the one made in its place.
    """

    begun_at: float
    step: int = 0
    acted_at: float | None = None
    fenced: tuple[str, ...] = ()
    rounds: int = 0
    tried: tuple[str, ...] = ()
    identity: Mapping[str, Any] = field(default_factory=dict)
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LetGoMark:
    """The thing lets go of what one thing at a time can hold, for the one in its place (ADR 0094).

    Attributes:
        held: What it lets go of, in the words of `kinds.exclusive`.
        done: Whether that is confirmed.
        refused: Why the cloud does not let it; "" where it does.
        said: What the cloud answered last, if not that it is done.
        tries: How often that was.
        due_at: When it is asked again, in seconds since the epoch; None for at once.
    """

    held: tuple[str, ...]
    done: bool = False
    refused: str = ""
    said: str = ""
    tries: int = 0
    due_at: float | None = None


BY_HINT = -1
"""Step of a recovery before the actions of its policy."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks on a row; false if there is none.

    Attributes:
        unhealthy: By users and their programs.
        maintained: Mark of an action (`StackAction.mark`) -> when the action began on the thing.
        healing: The thing is being healed, or made in the place of one that is; such rows count against the brake.
        lost_at: When another thing was made since this one was absent; None if none was.
        restored: By a snapshot of the stack.
        recovery: By a health policy.
        requested: What users have asked of the thing and has not ended, the oldest first.
        kept: Status in which an operation that a user asked for has left the thing: it is not healed from it. "" for
            none.
        repaired: Name of a property that was sent again -> what tells the wanted and the observed value before that,
            until the wanted one is seen (see `planner.policies.unkept`).
        accepted: Name of a property -> what tells the value that was sent and the one that the service has made of it,
            as its answer showed (see `planner.policies.unkept`).
        let_go: What it lets go of, or has let go of, for another one.
    """

    unhealthy: UnhealthyMark | None = None
    maintained: Mapping[str, float] = field(default_factory=dict)
    healing: bool = False
    lost_at: float | None = None
    restored: RestoredMark | None = None
    recovery: RecoveryMark | None = None
    requested: tuple[Request, ...] = ()
    kept: str = ""
    repaired: Mapping[str, str] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    let_go: LetGoMark | None = None

    def __bool__(self) -> bool:
        return self != NO_MARKS


NO_MARKS = Marks()
_UNHEALTHY, _HEALING, _LOST, _RESTORED, _RECOVERY = "unhealthy", "healing", "lost", "restored", "recovery"
_REQUESTED, _KEPT, _REPAIRED, _ACCEPTED = "requested", "kept", "repaired", "accepted"
_LET_GO = "let_go"
_MAINTAINED = tuple(each.mark for each in STACK_ACTIONS.values() if each.mark)


def load(stored: Mapping[str, Any]) -> Marks:
    """Return the marks of a row from their JSON."""
    known = {_UNHEALTHY, _HEALING, _LOST, _RESTORED, _RECOVERY, _REQUESTED, _KEPT, _REPAIRED, _ACCEPTED, _LET_GO}
    strange = stored.keys() - known - {*_MAINTAINED}
    if strange:
        raise Bug(f"a row has marks that this version does not know: {sorted(strange)}")
    return Marks(
        _unhealthy(stored[_UNHEALTHY]) if _UNHEALTHY in stored else None,
        {name: stored[name]["at"] for name in _MAINTAINED if name in stored},
        _HEALING in stored,
        stored[_LOST]["at"] if _LOST in stored else None,
        RestoredMark(stored[_RESTORED]["run"], stored[_RESTORED]["said"]) if _RESTORED in stored else None,
        _recovery(stored[_RECOVERY]) if _RECOVERY in stored else None,
        tuple(map(requested.load, stored.get(_REQUESTED, ()))),
        stored.get(_KEPT, ""),
        stored.get(_REPAIRED, {}),
        stored.get(_ACCEPTED, {}),
        LetGoMark(**{**stored[_LET_GO], "held": tuple(stored[_LET_GO]["held"])}) if _LET_GO in stored else None,
    )


def _unhealthy(stored: Mapping[str, Any]) -> UnhealthyMark:
    before = stored.get("before")
    return UnhealthyMark(**{**stored, "before": None if before is None else tuple(before)})


_TEXTS = ("fenced", "tried", "unsure")


def _recovery(stored: Mapping[str, Any]) -> RecoveryMark:
    return RecoveryMark(**{**stored, **{name: tuple(stored.get(name, ())) for name in _TEXTS}})


_LATER = ("identity", "unsure")
"""Fields that a program of an earlier version, which may run beside this one, does not know: left out where empty."""


def _dumped(recovery: RecoveryMark) -> dict[str, Any]:
    return {name: value for name, value in asdict(recovery).items() if value or name not in _LATER}


def dump(marks: Marks) -> dict[str, Any]:
    """Return the JSON of the marks of a row."""
    stored: dict[str, Any] = {} if marks.unhealthy is None else {_UNHEALTHY: asdict(marks.unhealthy)}
    stored |= {name: {"at": at} for name, at in marks.maintained.items()}
    if marks.healing:
        stored[_HEALING] = {}
    if marks.lost_at is not None:
        stored[_LOST] = {"at": marks.lost_at}
    if marks.restored is not None:
        stored[_RESTORED] = {"run": marks.restored.run, "said": dict(marks.restored.said)}
    if marks.recovery is not None:
        stored[_RECOVERY] = _dumped(marks.recovery)
    if marks.requested:
        stored[_REQUESTED] = [requested.dump(each) for each in marks.requested]
    if marks.kept:
        stored[_KEPT] = marks.kept
    if marks.repaired:
        stored[_REPAIRED] = dict(marks.repaired)
    if marks.accepted:
        stored[_ACCEPTED] = dict(marks.accepted)
    if marks.let_go is not None:
        stored[_LET_GO] = asdict(marks.let_go)
    return stored
