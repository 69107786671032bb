"""The port to the outside world: the operations of a cloud that convergence uses, in batches.

Everything that acts on or observes real objects goes through `Cloud`. Adapters: `local` (real processes), `openstack`
(the services of an OpenStack), `simulated` (in memory, virtual time), `heat_api` (stacks in other regions),
`builtin.cloud` (the service itself), `plugins.cloud` (types with handlers). Each passes the same contract tests
(`tests/contract/test_clouds.py`, `test_cloud_kinds.py`).

Rules for adapters
* Arguments and answers are plain data (str, int, float, bool, None, list, dict) with the fields that
  `homeostat.resources.kind_fields` returns.
* A batch is answered item by item, in the order of the request; a failed item is a value in the list, never an
  exception. An exception from the call itself means that the whole batch is `Transient` (not sent) or `Uncertain`
  (perhaps sent). Where answers are missing, the last items are `Uncertain`; with too many answers, all are.
* `create` is idempotent on the token where the cloud allows it: a second call with the same token returns the same
  object. In any case the object carries its token, so that `find` finds it after a crash (CV18).
* A create returns as soon as the cloud has accepted it; the object may still be building (`status`).
* Deleting an absent object succeeds; the answer is then ABSENT with `not_found`. If the cloud was wrong and the object
  reappears soon, it is removed then. A delete may take time: the answer is then a PRESENT observation whose status is
  `deleting`, and later observations are ABSENT.
* ABSENT requires that the cloud answered that the object does not exist. A cloud that does not answer raises
  `Transient`; the observation is then unknown, never absent.

Kinds
* What objects there are, with their status words and operations, is data: `homeostat.kinds`, a module for each
  service; their fields follow from the properties of resource types. An adapter reports the fields of a kind as far
  as it has them, and may report others besides. Status words are in lower case.
* Kinds that the service itself provides (`kinds.builtin`) have an operation `adopt`, see `builtin.cloud`.

Snapshots
* `snapshot` with the arguments {token, name} starts to copy the data of an object (a volume: a backup or snapshot; a
  server: an image of its disk) and returns at once. It is idempotent on the token: a second call continues the snapshot
  that carries the token, or restarts it if it was lost.
* As long as the object exists, it lists its snapshots that carry a token: `snapshots: [{id, token, name, status:
  creating|available|error, fault, created_at}]`; without snapshots the field is left out.
* A snapshot remains when the object is deleted. Deleting an object during its snapshot may spoil the snapshot.
* Snapshots are a kind of their own (`model.plan.snapshots_of`), which has only `observe`, `find` and `delete`: {id,
  token, name, status}. Deleting an unfinished snapshot cancels it.
* An object whose `snapshot_field` (see its kind) is the id of a snapshot starts with the saved data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from homeostat.model.errors import HomeostatError
from homeostat.model.observed import Observation


@dataclass(frozen=True, slots=True)
class Creation:
    """An object to create.

    Attributes:
        token: Idempotency token, stored before the cloud is called.
        spec: Desired object.
    """

    token: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """An update in place; `changed` names the fields of `spec` that differ from the last request."""

    handle: str
    spec: Mapping[str, Any]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """An action on an object that does not change its definition, such as start or reboot."""

    handle: str
    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Answer = Observation | HomeostatError
"""Result of one item of a batch: the present state, or an error (Terminal, Transient, Uncertain, Rejected)."""


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A notice that an object changed; carries no data, so losing it costs only time (invariant 1, CONTRIBUTING.md)."""

    kind: str
    handle: str


class Cloud(Protocol):
    """A cloud as one project sees it.

    Attributes:
        name: Name of the cloud.
        kinds: Kinds of objects of this cloud.
        listing_lag_s: Seconds after a create in which `observe` and `find` may still say ABSENT; 0 for a consistent
            cloud.

    An adapter may also have `look_max_s`, see the function of this name.
    """

    name: str
    kinds: frozenset[str]
    listing_lag_s: float

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        """Return the present state of objects, one observation for each handle, in order.

        Raises:
            Transient: The cloud does not answer.
        """

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        """Return the objects that carry these tokens (ABSENT where there is none), in order.

        Raises:
            Transient: The cloud does not answer.
        """

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Return the ids of the objects with these names or ids, in order; None where there is no such object.

        Where a cloud accepts any name, the name is the id.

        Args:
            kind: A kind, or an entity that is named but never created here, such as `availability_zone`.
            names: Names or ids.

        Raises:
            Transient: The cloud does not answer.
            Rejected: PhysicalResourceNameAmbiguity: several objects have the name.
        """

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        """Create objects; each carries its token from the first moment on."""

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        """Change existing objects in place."""

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        """Delete objects."""

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        """Carry out operations."""

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        """Yield changes as they happen, until `stop()` is true.

        Any change may be missed. A cloud without notices ends at once.
        """

    def close(self) -> None:
        """Close connections and threads; created objects remain."""


def look_max_s(cloud: Cloud) -> float:
    """Return the longest time in seconds between two looks at many objects in progress; 0 where looks cost little."""
    return float(getattr(cloud, "look_max_s", 0.0))


Clouds = Callable[[str], Cloud]
"""Project -> the cloud as that project sees it."""
