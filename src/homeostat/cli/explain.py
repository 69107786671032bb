"""Explanations of the API, parsed into types, and formatted as words and a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.cli.tree import branches
from homeostat.cli.views import Key, last_part, lasting, seconds
from homeostat.model.waiting import words as words_of

Place = tuple[tuple[str, ...], bool]
"""Path of names, and whether the row is a leftover."""

ATTEMPTS = {
    "create": "to be created",
    "find": "a look whether its creation has begun",
    "observe": "a look whether it is there",
    "update": "to be updated",
    "operate": "to be brought back",
    "delete": "to be deleted",
    "record": "to be judged again",
    "look": "a look at it",
    "compare": "to be compared with what it should be",
}
"""Words for `next` in the API's reasons."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a resource or leftover is not at rest; times are in seconds since the epoch.

    Attributes:
        cause: Path and words of the origin; "" for none.
    """

    stack: str
    path: tuple[str, ...]
    type: str
    state: str
    leftover: bool
    why: str
    reason: str
    waits_for: tuple[str, ...]
    since: float | None
    released_by: str
    due_at: float | None
    next: str
    next_at: float | None
    fails_at: float | None
    blocks: tuple[str, ...]
    blocks_count: int
    cause: str

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def key(self) -> Key:
        return self.stack, self.name

    @property
    def place(self) -> Place:
        return self.path, self.leftover

    @property
    def follows(self) -> bool:
        """Whether the cause is another resource."""
        return self.why in ("requires", "in_use", "leaving")

    @property
    def words(self) -> str:
        """A few words, for one line."""
        if self.waits_for:
            return f"for {', '.join(self.waits_for)}"
        return self.reason or words_of(self.why)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Progress of a stack.

    Attributes:
        left_s: Estimate of the time left; None if unknown.
        by: Method of the estimate.
        chain: Names of the critical path.
        unknown: Types and actions with unknown durations.
    """

    planned: int = 0
    done: int = 0
    left_s: float | None = None
    by: str = ""
    rate: float | None = None
    chain: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanation of a stack.

    Attributes:
        more: There are further reasons.
        waiting: Reason of the stack itself to wait, besides its resources; "" for none.
        unseen: Why the current state of the things is unknown; "" if known.
    """

    outlook: Outlook = Outlook()
    reasons: Sequence[Reason] = field(default_factory=list)
    more: bool = False
    waiting: str = ""
    unseen: str = ""


def read(wire: Mapping[str, Any]) -> Explained:
    """Parse the API's explanation of a stack."""
    more = any(link["rel"] == "next" for link in wire["links"])
    reasons = [read_reason(resource) for resource in wire["resources"]]
    return Explained(_outlook(wire), reasons, more, _waiting(wire.get("waiting")), _unseen(wire.get("unseen")))


def _unseen(unseen: Mapping[str, Any] | None) -> str:
    if unseen is None:
        return ""
    return f"it could not be observed since {unseen['since'] or 'it was begun'}: {unseen['reason']}"


def _waiting(waiting: Mapping[str, Any] | None) -> str:
    if waiting is None:
        return ""
    until = f" until {waiting['due_at']}" if waiting["due_at"] else ""
    return f"{words_of(waiting['why'])}{until}: {waiting['reason']}; released by {waiting['released_by']}"


def _outlook(wire: Mapping[str, Any]) -> Outlook:
    path, estimate = wire["critical_path"] or {}, wire["estimate"] or {}
    return Outlook(
        wire["progress"]["planned"],
        wire["progress"]["done"],
        estimate.get("seconds"),
        estimate.get("by", ""),
        estimate.get("rate"),
        tuple(resource["resource_name"] for resource in path.get("resources", ())),
        tuple(f"{step['resource_type']} {step['action']}" for step in path.get("unknown", ())),
    )


def read_reason(wire: Mapping[str, Any]) -> Reason:
    links = {link["rel"]: link["href"] for link in wire["links"]}
    return Reason(
        last_part(links.get("stack", "")),
        tuple(wire["path"]),
        wire["resource_type"],
        wire["resource_status"].replace("_", " "),
        wire["leftover"],
        wire["why"],
        wire["reason"],
        tuple(wire["waits_for"]),
        seconds(wire["since"]),
        wire["released_by"],
        seconds(wire["due_at"]),
        wire["next"],
        seconds(wire["next_at"]),
        seconds(wire["fails_at"]),
        tuple(wire["blocks"]),
        wire["blocks_count"],
        _cause(wire["cause"]),
    )


def _cause(cause: Mapping[str, Any] | None) -> str:
    if cause is None:
        return ""
    words = words_of(cause["why"])
    reason = f", {cause['reason']}" if cause["reason"] else ""
    return f"{'.'.join(cause['path'])}: {words}{reason}"


# -- words -------------------------------------------------------------------------------------------------------------


def left(outlook: Outlook) -> str:
    """Return `about 50s left`, or "" without an estimate."""
    return "" if outlook.left_s is None else f"about {lasting(outlook.left_s)} left"


def how(outlook: Outlook) -> str:
    """Return the method of the estimate, and the steps with unknown durations."""
    if outlook.left_s is None:
        return f"unknown how long it takes: {', '.join(outlook.unknown)}" if outlook.unknown else ""
    method = f"by {' → '.join(outlook.chain)}, as long as such took before"
    if outlook.by == "rate":
        method = f"by {outlook.rate:.3g} resources a second" if outlook.rate else ""
    return f"{method}; unknown: {', '.join(outlook.unknown)}" if outlook.unknown else method


def since(reason: Reason, now: float) -> str:
    return "" if reason.since is None else f" for {lasting(now - reason.since)}"


def details(reason: Reason, now: float) -> list[tuple[str, str]]:
    """Return label and text of each line about a reason."""
    words = words_of(reason.why)
    blocked = ", ".join(reason.blocks)
    if reason.blocks_count > len(reason.blocks):
        blocked += f" and {reason.blocks_count - len(reason.blocks)} more"
    lines = [
        ("why", f"{words}: {reason.reason}" if reason.reason else words),
        ("waits for", ", ".join(reason.waits_for)),
        ("because of", reason.cause),
        ("next", _next(reason, now)),
        ("by itself", "" if reason.due_at in (None, reason.next_at) else _within(reason.due_at, now)),
        ("fails", "" if reason.fails_at is None else f"{_within(reason.fails_at, now)}, unless it is ready by then"),
        ("released by", reason.released_by),
        ("blocks", blocked),
    ]
    return [(label, text) for label, text in lines if text]


def _next(reason: Reason, now: float) -> str:
    if not reason.next:
        return ""
    words = ATTEMPTS.get(reason.next, reason.next)
    return words if reason.next_at is None else f"{words}, {_within(reason.next_at, now)}"


def _within(at: float | None, now: float) -> str:
    return f"in {lasting(at - now)}" if at is not None and at > now else "now"


# -- the tree ----------------------------------------------------------------------------------------------------------


def arranged(reasons: Sequence[Reason]) -> list[tuple[str, Reason]]:
    """Return each reason with its branches: below its cause, or below the owner of its nested stack."""
    by_place = {reason.place: reason for reason in reasons}
    below: dict[Place | None, list[Place]] = {}
    above: dict[Place, Place | None] = {}
    for reason in reasons:
        parent = next(
            (place for place in _above(reason) if place in by_place and not _hangs(above, place, reason.place)), None
        )
        above[reason.place] = parent
        below.setdefault(parent, []).append(reason.place)
    return [(prefix, by_place[place]) for prefix, place in branches(below)]


def _above(reason: Reason) -> list[Place]:
    """Return the possible parents of a reason in the tree."""
    owner = reason.path[:-1]
    siblings = [((*owner, name), leftover) for name in reason.waits_for for leftover in (False, True)]
    return [place for place in siblings if place != reason.place] + [(owner, False)]


def _hangs(above: Mapping[Place, Place | None], place: Place, on: Place) -> bool:
    """Return whether `place` is drawn below `on`, directly or not."""
    at: Place | None = place
    while at is not None and at != on:
        at = above.get(at)
    return at is not None
