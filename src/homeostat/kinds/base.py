"""Definition of a kind of cloud object: its fields, the meaning of its status words, and its operations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from homeostat.model.observed import Remedy
from homeostat.model.plan import snapshots_of


class FieldType(Enum):
    """Type of a field, in JSON; a field of any type may be null."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    MAP = "map"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a cloud object.

    Attributes:
        type: JSON type.
        shape: Contents of a list or map, such as `[{subnet_id, ip_address}]`, or the words allowed in a text.
        note: Anything else worth knowing.
    """

    type: FieldType
    shape: str = ""
    note: str = ""


TEXT, INTEGER, NUMBER = Field(FieldType.TEXT), Field(FieldType.INTEGER), Field(FieldType.NUMBER)
BOOLEAN, LIST, MAP, ANY = Field(FieldType.BOOLEAN), Field(FieldType.LIST), Field(FieldType.MAP), Field(FieldType.ANY)


def listing(shape: str, note: str = "") -> Field:
    """Return a field that holds a list."""
    return Field(FieldType.LIST, shape, note)


def mapping(shape: str, note: str = "") -> Field:
    """Return a field that holds a map."""
    return Field(FieldType.MAP, shape, note)


@dataclass(frozen=True, slots=True)
class Statuses:
    """Meaning of the words in the field `status`, all in lower case.

    A word not listed means broken, left to the user. Objects of every kind may also be `deleting`.

    Attributes:
        ready: Words for the desired state.
        busy: Words for states that end by themselves.
        broken: Word -> its remedy.
        operations: Word -> the operation that repairs the object.
        suspended: Words for the desired state of a suspended object; empty if suspension does not show in `status`.
        stored: The busy words under which the cloud has accepted and stored the request, and is only carrying it out.
    """

    ready: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()
    broken: Mapping[str, Remedy] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    suspended: frozenset[str] = frozenset()
    stored: frozenset[str] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """All words with a meaning."""
        return self.ready | self.busy | self.broken.keys() | self.operations.keys() | self.suspended


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cloud object. Every object has the field `id`; a cloud may report fields beyond the listed ones.

    Fields that a property of a resource type sets are not repeated here: `resources.kind_fields` has all fields.

    Attributes:
        name: Name of the kind in the port.
        description: One sentence about such an object.
        extra_fixed: Fields of a creation that never change, which no property has, or none of this type and shape.
        extra_mutable: Such fields that an update may change in place.
        reported: Fields that the cloud alone sets.
        statuses: Meaning of its status words.
        operations: Name of an operation -> its arguments and effect; "" if the name says it all.
        id_field: Field of the creation that becomes the id, if set; "" if the cloud always chooses the id.
        creation_only: Fields that the cloud reports only in its response to the creation.
        snapshot_field: Field that takes the id of a snapshot to start with its data; "" if snapshots are not supported.
        parts: Kinds of its parts, at any depth: the operation `delete_with_parts` deletes them with the object.
        notes: Rules beyond the fields.
    """

    name: str
    description: str
    extra_fixed: Mapping[str, Field] = field(default_factory=dict)
    extra_mutable: Mapping[str, Field] = field(default_factory=dict)
    reported: Mapping[str, Field] = field(default_factory=dict)
    statuses: Statuses = field(default_factory=Statuses)
    operations: Mapping[str, str] = field(default_factory=dict)
    id_field: str = ""
    creation_only: tuple[str, ...] = ()
    snapshot_field: str = ""
    parts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def snapshot_kind(source: Kind) -> Kind:
    """Return the kind of snapshots of `source`; snapshots are only observed, found and deleted."""
    return Kind(
        name=snapshots_of(source.name),
        description=f"A snapshot of the kind {source.name}.",
        reported={"token": TEXT, "name": TEXT, "status": TEXT, "fault": TEXT, "created_at": TEXT},
        statuses=Statuses(
            ready=frozenset({"available"}), busy=frozenset({"creating"}), broken={"error": Remedy.RECREATE}
        ),
    )
