"""The desired state of a group's stack: its members, and the definition of each member. Pure.

Members are named by numbers, and described by ranges of numbers: a group may have very many members. The stored form is
a map (`GroupDefinition.encoded`), which only the store reads and writes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Range = tuple[int, int]
"""Numbers from the first up to, not including, the second."""
MemberDefinition = Mapping[str, Any]
"""`{type, properties[, metadata, deletion_policy, update_policy, description]}` of a member."""


@dataclass(frozen=True, slots=True)
class RangedDefinition:
    """The definition of the members with some numbers."""

    resource_def: MemberDefinition
    numbers: tuple[Range, ...]

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "RangedDefinition":
        return cls(stored["resource_def"], ranges(stored["numbers"]))

    def encoded(self) -> dict[str, Any]:
        return {"resource_def": self.resource_def, "numbers": _plain(self.numbers)}


@dataclass(frozen=True, slots=True)
class Companion:
    """A companion resource: each member of some ranges has one in the group's stack, which depends on the member.

    Attributes:
        name: Second part of the resource's name: the member's name, a dash, `name`.
        numbers: The members with this companion.
        member: The property that takes the member's reference.
        resource_def: The definition, without the property `member`.
    """

    name: str
    numbers: tuple[Range, ...]
    member: str
    resource_def: MemberDefinition

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Companion":
        return cls(stored["name"], ranges(stored["numbers"]), stored["member"], stored["resource_def"])

    def encoded(self) -> dict[str, Any]:
        own = {"name": self.name, "numbers": _plain(self.numbers), "member": self.member}
        return {**own, "resource_def": self.resource_def}


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports that the members of a batch have to send, see `planner.members.member_reports`.

    Attributes:
        timeout: Seconds to wait once the batch is at rest.
        percent: Share of the members of the whole update that have to report success.
        count: In a creation, how many members have to report; None in an update: all members of the batch.
        total: Members of all batches that have to report.
        succeeded: Members of earlier batches with a report of success.
        lost: Members of earlier batches without a report of success.
        number: Number of the batch.
        since: Time at which the batch began; earlier reports do not count.
    """

    timeout: float
    percent: float
    count: int | None = None
    total: int = 0
    succeeded: int = 0
    lost: int = 0
    number: int = 1
    since: float = 0.0

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Reports":
        return cls(**{name: stored[name] for name in cls.__dataclass_fields__ if name in stored})

    def encoded(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Series:
    """A series of batches by which members get a new definition, or are made: see `planner.members.rolling_update`.

    Attributes:
        target: Number of members after the last batch.
        max_batch_size: Most members in a batch.
        min_in_service: Members to leave alone in each batch, if the group has so many.
        pause_time: Seconds between two batches.
        max_unavailable: Most members that may be unavailable, as a number or percentage; "" for no limit.
        suspended: Names of processes that stand still meanwhile, see `resources.instance_signals`.
        batch: Members of the batch under way, if the series records batches.
        reports: Reports that the members have to send, if any.
        unheard: Members that had not reported when the update began, with the time since when their reports count.
    """

    target: int
    max_batch_size: int
    min_in_service: int
    pause_time: float
    max_unavailable: str = ""
    suspended: tuple[str, ...] = ()
    batch: tuple[Range, ...] | None = None
    reports: Reports | None = None
    unheard: tuple[tuple[int, int, float], ...] = ()

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Series":
        batch, reports = stored.get("batch"), stored.get("reports")
        return cls(
            stored["target"],
            stored["max_batch_size"],
            stored.get("min_in_service") or 0,
            stored.get("pause_time") or 0.0,
            str(stored.get("max_unavailable") or ""),
            tuple(stored.get("suspended") or ()),
            None if batch is None else ranges(batch),
            None if reports is None else Reports.decoded(reports),
            tuple((low, high, since) for low, high, since in stored.get("unheard") or ()),
        )

    def encoded(self) -> dict[str, Any]:
        stored: dict[str, Any] = {
            name: getattr(self, name) for name in ("target", "max_batch_size", "min_in_service", "pause_time")
        }
        if self.max_unavailable:
            stored["max_unavailable"] = self.max_unavailable
        if self.suspended:
            stored["suspended"] = list(self.suspended)
        if self.batch is not None:
            stored["batch"] = _plain(self.batch)
        if self.reports is not None:
            stored["reports"] = self.reports.encoded()
        if self.unheard:
            stored["unheard"] = [list(member) for member in self.unheard]
        return stored


@dataclass(frozen=True, slots=True)
class Staged:
    """The definitions that members return to if a rollout fails, see `planner.members.staged_group`.

    Attributes:
        since: Number of the revision that brought the new definition.
        resource_def: Definition of all members before.
        earlier: Definitions of the members that differed from `resource_def`.
    """

    since: int
    resource_def: MemberDefinition
    earlier: tuple[RangedDefinition, ...] = ()

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Staged":
        return cls(stored["since"], stored["resource_def"], _parts(stored.get("earlier")))

    def encoded(self) -> dict[str, Any]:
        stored = {"since": self.since, "resource_def": self.resource_def}
        return {**stored, "earlier": [part.encoded() for part in self.earlier]} if self.earlier else stored


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The naming of members that are nodes of a cluster, see `clustering.decisions.names`."""

    seed: str
    format: str


@dataclass(frozen=True, slots=True)
class GroupDefinition:
    """The members of a group.

    Attributes:
        resource_def: Definition of each member.
        index_var: Text in properties that the number of the member replaces; None for none.
        count: Number of members.
        skip: Names that no member may have. An entry `<N` stands for all numbers below N, so that a group which has
            scaled a thousand times is described in as few words as one that is new.
        earlier: Former definitions of members that a series of batches, or a rollout, has not reached yet.
        series: The series of batches under way.
        staged: The rollout of a definition under way.
        own: Definitions of single members, instead of `resource_def`.
        nodes: Names of the nodes, if members are nodes of a cluster.
        companions: Companion resources of members, in the same stack.
        left: Names in `skip` of members that left for a mark, and that the template has not named since.
    """

    resource_def: MemberDefinition
    index_var: str | None
    count: int
    skip: tuple[str, ...] = ()
    earlier: tuple[RangedDefinition, ...] = ()
    series: Series | None = None
    staged: Staged | None = None
    own: tuple[RangedDefinition, ...] = ()
    nodes: NodeNames | None = None
    companions: tuple[Companion, ...] = ()
    left: tuple[str, ...] = ()

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "GroupDefinition":
        """Return the group of a stored map."""
        series, staged, nodes = stored.get("rollout"), stored.get("staged"), stored.get("nodes")
        return cls(
            stored["resource_def"],
            stored["index_var"],
            stored["count"],
            tuple(stored["skip"]),
            _parts(stored.get("earlier")),
            None if series is None else Series.decoded(series),
            None if staged is None else Staged.decoded(staged),
            _parts(stored.get("own")),
            None if nodes is None else NodeNames(nodes["seed"], nodes["format"]),
            tuple(Companion.decoded(companion) for companion in stored.get("beside") or ()),
            tuple(stored.get("left") or ()),
        )

    def encoded(self) -> dict[str, Any]:
        """Return the map to be stored."""
        stored: dict[str, Any] = {name: getattr(self, name) for name in ("resource_def", "index_var", "count")}
        stored["skip"] = list(self.skip)
        for name, parts in (("earlier", self.earlier), ("own", self.own)):
            if parts:
                stored[name] = [part.encoded() for part in parts]
        for name, change in (("rollout", self.series), ("staged", self.staged)):
            if change is not None:
                stored[name] = change.encoded()
        if self.nodes is not None:
            stored["nodes"] = {"seed": self.nodes.seed, "format": self.nodes.format}
        if self.companions:
            stored["beside"] = [companion.encoded() for companion in self.companions]
        return {**stored, "left": list(self.left)} if self.left else stored

    def with_series(self, series: Series | None) -> "GroupDefinition":
        return replace(self, series=series)


def reports_of(group: GroupDefinition | None) -> Reports | None:
    """Return the reports that the members of the batch under way have to send."""
    return None if group is None or group.series is None else group.series.reports


def batch_of(group: GroupDefinition | None) -> tuple[Range, ...]:
    """Return the members of the batch under way, if the series records batches."""
    return () if group is None or group.series is None else group.series.batch or ()


def ranges(stored: Iterable[Sequence[int]]) -> tuple[Range, ...]:
    return tuple((low, high) for low, high in stored)


def _plain(numbers: Iterable[Range]) -> list[list[int]]:
    return [[low, high] for low, high in numbers]


def _parts(stored: Iterable[Mapping[str, Any]] | None) -> tuple[RangedDefinition, ...]:
    return tuple(RangedDefinition.decoded(part) for part in stored or ())
