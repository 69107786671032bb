"""Types of block storage for operators: volume types, their encryption, their quality of service."""

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import Property, boolean, custom, integer, listing, mapping, one_of, text


def _volume_type(description: str, **options: object) -> Property:
    return text(description, constraints=(custom("cinder.vtype"),), same=comparison.reference, **options)


class VolumeType(ResourceType):
    name = "OS::Cinder::VolumeType"
    kind = "volume_type"
    description = "A type of volumes that users may choose."
    properties = {
        "name": text("Name of the type.", required=True, update=True),
        "metadata": mapping("Extra specifications for the scheduler and the storage.", update=True),
        "is_public": boolean("All projects may use it.", default=True, update=True),
        "description": text("Description of the type.", update=True),
        "projects": listing(
            "Projects that may use it, where it is not public.",
            default=[],
            update=True,
            items=text(constraints=(custom("keystone.project"),)),
            same=comparison.references,
        ),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        public = values.get("is_public", True) is True
        require(
            not (public and is_set(values, "projects")),
            "projects may be given only where is_public is false: a public type is for all",
            (*path, "projects"),
        )


class EncryptedVolumeType(ResourceType):
    name = "OS::Cinder::EncryptedVolumeType"
    kind = "volume_type_encryption"
    description = "How volumes of a type are encrypted."
    properties = {
        "provider": text("Who encrypts them, such as luks.", required=True, update=True),
        "control_location": text(
            "Where they are encrypted: by compute or by the storage.",
            default="front-end",
            update=True,
            constraints=(one_of("front-end", "back-end"),),
        ),
        "cipher": text("Algorithm and mode.", update=True, constraints=(one_of("aes-xts-plain64", "aes-cbc-essiv"),)),
        "key_size": integer("Size of the key in bits.", update=True),
        "volume_type": _volume_type("Type that is encrypted.", required=True),
    }


class QoSSpecs(ResourceType):
    name = "OS::Cinder::QoSSpecs"
    kind = "volume_qos_specs"
    description = "How fast volumes may be."
    properties = {
        "name": text("Name of the specification."),
        "specs": mapping("Limits by name, as the storage knows them.", required=True, update=True),
    }


class QoSAssociation(ResourceType):
    name = "OS::Cinder::QoSAssociation"
    kind = "volume_qos_association"
    description = "Types of volumes that a specification of speed is for."
    properties = {
        "qos_specs": text(
            "The specification.",
            required=True,
            constraints=(custom("cinder.qos_specs"),),
            same=comparison.reference,
        ),
        "volume_types": listing(
            "The types.",
            required=True,
            update=True,
            items=text(constraints=(custom("cinder.vtype"),)),
            same=comparison.references,
        ),
    }


TYPES: list[type[ResourceType]] = [VolumeType, EncryptedVolumeType, QoSSpecs, QoSAssociation]
