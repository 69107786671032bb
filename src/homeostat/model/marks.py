"""Marks on resources: stored facts about a row in addition to its state.

Only `load` and `dump` know the JSON. A mark stays until the planner removes it; a row without marks stores NULL.
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
    """The resource counts as unhealthy, whatever observations say (MU1 to MU8); times are in seconds since the epoch.

    Attributes:
        by: User who made the request, None if not known.
        reporter: Name that the caller gives itself, if any.
        expires_at: When the mark ends; None for no end.
        before: Action that had failed before the mark, and its reason; None without a failure. The resource returns to
            this failure when the mark expires, or, if no thing was ever created, when the mark is removed.
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
        run: The request that restored the stack, see `store.schema.stack`.
        template_values: Property -> its value in the template at that time. Restored data stays until the template's
            value changes.
    """

    run: str | None
    template_values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecoveryMark:
    """A health policy is recovering the thing (ADR 0072); times are in seconds since the epoch.

    Attributes:
        begun_at: When the first action began.
        step: Number of the current action; `BY_HINT` for the operation that the status suggests.
        acted_at: When the current action began; None if it has yet to.
        fenced: Fences that are confirmed.
        unsure: Fences that were requested before the thing disappeared: it may be fenced.
        rounds: Rounds through all actions without success.
        tried: The actions so far with their results, for users.
        identity: Properties by which the replacement keeps the identity of the thing, as its policy asks.
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
    """The thing releases its exclusive properties, such as a fixed address, to its replacement (ADR 0094).

    Attributes:
        held: The properties to release, in the words of `kinds.exclusive`.
        done: Whether the release is confirmed.
        refused: Why the cloud refuses the release; "" if it does not.
        failure: The newest failure of the request, which is repeated; "" for none.
        tries: Number of these failures.
        due_at: When the request is repeated, in seconds since the epoch; None for at once.
    """

    held: tuple[str, ...]
    done: bool = False
    refused: str = ""
    failure: str = ""
    tries: int = 0
    due_at: float | None = None


BY_HINT = -1
"""`RecoveryMark.step` before the actions of the policy."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks on a row; falsy without any mark.

    Attributes:
        unhealthy: Set by users and their programs.
        maintained: Mark of an action (`StackAction.mark`) -> when the action began on the thing.
        healing: The thing is being healed, or replaces a thing being healed; such rows count against the brake.
        lost_at: When a replacement was created because the thing was absent; None if none was.
        restored: Restoration from a snapshot of the stack.
        recovery: Recovery by a health policy.
        requested: Unfinished requests of users for the thing, the oldest first.
        kept: Status in which a user's operation has left the thing, and which is not healed; "" for none.
        repaired: Name of a property sent again -> fingerprint of the desired and the observed value before, until the
            desired value is observed (see `planner.states.unkept`).
        accepted: Name of a property -> fingerprint of the value sent and the value that the service answered with
            (see `planner.states.unkept`).
        let_go: Release of exclusive properties to another thing, in progress or complete.
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
_MAINTAINED = tuple(rules.mark for rules in STACK_ACTIONS.values() if rules.mark)


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
        _let_go(stored[_LET_GO]) if _LET_GO in stored else None,
    )


def _unhealthy(stored: Mapping[str, Any]) -> UnhealthyMark:
    before = stored.get("before")
    return UnhealthyMark(**{**stored, "before": None if before is None else tuple(before)})


_TEXTS = ("fenced", "tried", "unsure")


def _recovery(stored: Mapping[str, Any]) -> RecoveryMark:
    return RecoveryMark(**{**stored, **{name: tuple(stored.get(name, ())) for name in _TEXTS}})


def _let_go(stored: Mapping[str, Any]) -> LetGoMark:
    done, refused, failure = stored["done"], stored["refused"], stored["said"]
    return LetGoMark(tuple(stored["held"]), done, refused, failure, stored["tries"], stored["due_at"])


_LATER = ("identity", "unsure")
"""Fields unknown to earlier versions, which may run during an upgrade: left out if empty."""


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
        stored[_RESTORED] = {"run": marks.restored.run, "said": dict(marks.restored.template_values)}
    if marks.recovery is not None:
        stored[_RECOVERY] = _dumped(marks.recovery)
    if marks.requested:
        stored[_REQUESTED] = [requested.dump(request) for request in marks.requested]
    if marks.kept:
        stored[_KEPT] = marks.kept
    if marks.repaired:
        stored[_REPAIRED] = dict(marks.repaired)
    if marks.accepted:
        stored[_ACCEPTED] = dict(marks.accepted)
    if marks.let_go is not None:
        mark = asdict(marks.let_go)
        stored[_LET_GO] = {"said": mark.pop("failure"), **mark}
    return stored
