"""The desired state of a group's stack: which members it has, and which definition each of them has. Pure.

Members are named by numbers. Everything is said of ranges of numbers: a group may have very many members. The stored
form is a map (`GroupDefinition.encoded`), which the store reads and writes; all other code has this class.
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
        return {"resource_def": self.resource_def, "numbers": [list(each) for each in self.numbers]}


@dataclass(frozen=True, slots=True)
class Companion:
    """A resource that each member with some numbers has beside it in the stack, and that depends on the member.

    Attributes:
        name: Its name is that of the member, a dash and this.
        numbers: The members that have it.
        member: The property that takes the member's reference.
        resource_def: Its definition, without that property.
    """

    name: str
    numbers: tuple[Range, ...]
    member: str
    resource_def: MemberDefinition

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Companion":
        return cls(stored["name"], ranges(stored["numbers"]), stored["member"], stored["resource_def"])

    def encoded(self) -> dict[str, Any]:
        own = {"name": self.name, "numbers": [list(each) for each in self.numbers], "member": self.member}
        return {**own, "resource_def": self.resource_def}


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports that the members of a batch have to send, see `planner.policies.member_reports`.

    Attributes:
        timeout: Seconds to wait once the batch is at rest.
        percent: Share of the members of the whole update that have to report success.
        count: In a creation, how many members have to report; None in an update, in which those of the batch have to.
        total: Members that are asked in all.
        succeeded: Members of earlier batches that reported success.
        lost: Members of earlier batches that did not.
        number: Number of the batch.
        since: Time at which the batch began; earlier reports say nothing about it.
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
    """A series of batches by which members get a new definition, or are made: see `planner.policies.rolling_update`.

    Attributes:
        target: Number of members after the last batch.
        max_batch_size: Most members in a batch.
        min_in_service: Members to leave alone in each batch, if there are so many.
        pause_time: Seconds between two batches.
        max_unavailable: Most members that may be away, as a number or percentage; "" for no limit.
        suspended: Names of processes that stand still meanwhile, see `resources.instance_signals`.
        batch: Members of the batch under way, if it is kept track of.
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
        found: dict[str, Any] = {
            name: getattr(self, name) for name in ("target", "max_batch_size", "min_in_service", "pause_time")
        }
        if self.max_unavailable:
            found["max_unavailable"] = self.max_unavailable
        if self.suspended:
            found["suspended"] = list(self.suspended)
        if self.batch is not None:
            found["batch"] = [list(each) for each in self.batch]
        if self.reports is not None:
            found["reports"] = self.reports.encoded()
        if self.unheard:
            found["unheard"] = [list(each) for each in self.unheard]
        return found


@dataclass(frozen=True, slots=True)
class Staged:
    """The definitions that members go back to if a rollout fails, see `planner.policies.staged_group`.

    Attributes:
        since: Number of the revision that brought the new definition.
        resource_def: Definition of all members before it.
        earlier: Definitions of members that had another one.
    """

    since: int
    resource_def: MemberDefinition
    earlier: tuple[RangedDefinition, ...] = ()

    @classmethod
    def decoded(cls, stored: Mapping[str, Any]) -> "Staged":
        return cls(stored["since"], stored["resource_def"], _parts(stored.get("earlier")))

    def encoded(self) -> dict[str, Any]:
        found = {"since": self.since, "resource_def": self.resource_def}
        return {**found, "earlier": [each.encoded() for each in self.earlier]} if self.earlier else found


@dataclass(frozen=True, slots=True)
class NodeNames:
    """How members that are nodes of a cluster are named, see `clustering.names`."""

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
        own: Definitions of single members in the place of `resource_def`.
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
            tuple(Companion.decoded(each) for each in stored.get("beside") or ()),
            tuple(stored.get("left") or ()),
        )

    def encoded(self) -> dict[str, Any]:
        """Return the map to be stored."""
        found: dict[str, Any] = {name: getattr(self, name) for name in ("resource_def", "index_var", "count")}
        found["skip"] = list(self.skip)
        for name, parts in (("earlier", self.earlier), ("own", self.own)):
            if parts:
                found[name] = [each.encoded() for each in parts]
        for name, part in (("rollout", self.series), ("staged", self.staged)):
            if part is not None:
                found[name] = part.encoded()
        if self.nodes is not None:
            found["nodes"] = {"seed": self.nodes.seed, "format": self.nodes.format}
        if self.companions:
            found["beside"] = [each.encoded() for each in self.companions]
        return {**found, "left": list(self.left)} if self.left else found

    def with_series(self, series: Series | None) -> "GroupDefinition":
        return replace(self, series=series)


def reports_of(group: GroupDefinition | None) -> Reports | None:
    """Return the reports that the members of the batch under way have to send."""
    return None if group is None or group.series is None else group.series.reports


def batch_of(group: GroupDefinition | None) -> tuple[Range, ...]:
    """Return the members of the batch under way, if it is kept track of."""
    return () if group is None or group.series is None else group.series.batch or ()


def ranges(stored: Iterable[Sequence[int]]) -> tuple[Range, ...]:
    return tuple((low, high) for low, high in stored)


def _parts(stored: Iterable[Mapping[str, Any]] | None) -> tuple[RangedDefinition, ...]:
    return tuple(RangedDefinition.decoded(each) for each in stored or ())
