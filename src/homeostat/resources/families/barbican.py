"""Types of the key manager: secrets, orders of keys, containers of secrets."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.constraints import EXPIRATION
from homeostat.resources.rules import is_set, maps, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    ValueType,
    between,
    integer,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support

KEY: dict[str, Property] = {
    "mode": text("Mode of the algorithm."),
    "expiration": text("When it expires, as ISO 8601 writes it.", constraints=(EXPIRATION,)),
    "algorithm": text("Algorithm that the key is for."),
}


SECRET_TYPES = ("symmetric", "public", "private", "certificate", "passphrase", "opaque")
BINARY = "application/octet-stream"
KEY_PARTS = ("algorithm", "bit_length", "mode", "payload_content_type", "expiration")
PARTS_OF_ORDERS: Mapping[str, tuple[str, ...]] = {
    "key": KEY_PARTS,
    "asymmetric": (*KEY_PARTS, "pass_phrase"),
    "certificate": ("request_type", "subject_dn", "source_container_ref", "ca_id", "profile", "request_data"),
}
"""Type of an order -> its allowed properties."""


def _is_set(values: Props, name: str) -> bool:
    """Return whether a property is given; "" and 0 count as not given, since an explicit null is converted to these."""
    return is_set(values, name) and values[name] != 0


def _is_base64(payload: str) -> bool:
    try:
        base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


class KeyManagerType(ResourceType):
    """Base of the types of the key manager, whose objects are immutable."""

    secretive = True


class Secret(KeyManagerType):
    name = "OS::Barbican::Secret"
    kind = "secret"
    support = Support(version="2014.2")
    description = "A secret."
    properties = {
        "name": text("Name of the secret."),
        "payload": text("The secret itself.", blank=True),
        "payload_content_type": text("What it is.", constraints=(one_of("text/plain", BINARY),)),
        "payload_content_encoding": text("How it is written.", constraints=(one_of("base64"),)),
        "secret_type": text("Kind of the secret.", default="opaque", constraints=(one_of(*SECRET_TYPES),)),
        "bit_length": integer("Length of the key in bits.", constraints=(between(0),)),
        **KEY,
    }
    attributes = {
        "status": Attribute("Status of the secret."),
        "decrypted_payload": Attribute("The secret itself.", field="payload", secret=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        content, encoding = values.get("payload_content_type"), is_set(values, "payload_content_encoding")
        typed = is_set(values, "payload_content_type")
        require(not typed or is_set(values, "payload"), "payload_content_type needs a payload", path)
        binary = content in (BINARY, UNKNOWN)
        require(binary or not encoding, f"payload_content_encoding needs the payload_content_type {BINARY}", path)
        require(content != BINARY or encoding, f"{BINARY} needs payload_content_encoding", path)
        if content == BINARY and isinstance(values.get("payload"), str):
            require(_is_base64(values["payload"]), "it is not written in base64", (*path, "payload"))

    def show(self, thing: Thing) -> Any:
        return {name: value for name, value in thing.seen.properties.items() if name != "payload"}


class Order(KeyManagerType):
    name = "OS::Barbican::Order"
    kind = "secret_order"
    support = Support(version="2014.2")
    description = "An order to make a key or a certificate."
    properties = {
        "name": text("Name of the secret that is made."),
        "payload_content_type": text("What it is."),
        "bit_length": integer("Length of the key in bits."),
        "type": text("What is ordered.", required=True, constraints=(one_of("key", "asymmetric", "certificate"),)),
        "request_type": text(
            "Kind of the request for a certificate.", constraints=(one_of("stored-key", "simple-cmc", "custom"),)
        ),
        "subject_dn": text("Subject of the certificate."),
        "source_container_ref": link("Container that the certificate is made from.", "barbican.container"),
        "ca_id": text("Authority that makes the certificate."),
        "profile": text("Profile of the certificate."),
        "request_data": text("The request for a certificate."),
        "pass_phrase": text("Passphrase of the key."),
        **KEY,
    }
    attributes = {
        "status": Attribute("Status of the order."),
        "order_ref": Attribute("URL of the order."),
        "secret_ref": Attribute("URL of the secret that was made."),
        "container_ref": Attribute("URL of the container that was made."),
        "public_key": Attribute("The public key that was made."),
        "private_key": Attribute("The private key that was made.", secret=True),
        "certificate": Attribute("The certificate that was made."),
        "intermediates": Attribute("Certificates between it and the authority."),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        ordered = values.get("type")
        if ordered is UNKNOWN:
            return
        allowed = ("name", "type", *PARTS_OF_ORDERS[str(ordered)])
        refused = sorted(name for name in values if name not in allowed and _is_set(values, name))
        listed = ", ".join(allowed)
        require(not refused, f"{', '.join(refused)} cannot be given for an order of a {ordered}; it has {listed}", path)
        if ordered == "certificate":
            require(is_set(values, "ca_id") or not is_set(values, "profile"), "profile needs ca_id", path)
        else:
            needed = [name for name in ("algorithm", "bit_length") if not _is_set(values, name)]
            require(not needed, f"{' and '.join(needed)} must be given for an order of type {ordered}", path)


class ContainerType(KeyManagerType):
    """Base of the types of containers, which hold secrets under names.

    Attributes:
        contents: Type of the container in the words of Barbican.
    """

    kind = "secret_container"
    contents: str
    attributes = {
        "status": Attribute("Status of the container."),
        "container_ref": Attribute("URL of the container."),
        "secret_refs": Attribute("URL of each secret in it, by name.", ValueType.MAP),
        "consumers": Attribute("Who uses it.", ValueType.LIST),
    }

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.unsent = cls.properties.keys() - {"name"}

    def references(self, values: Props) -> dict[str, Any]:
        """Return name of a secret -> its reference; for most types each property but `name` is such a reference."""
        return {name: value for name, value in values.items() if name != "name" and value}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        known = _known(self.references(values).values())
        require(len(known) == len(set(known)), "each secret may be there once only", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        name = values.get("name") or physical_name
        return {"name": name, "type": self.contents, "secret_refs": self.references(values)}


def _known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not UNKNOWN]


class GenericContainer(ContainerType):
    name = "OS::Barbican::GenericContainer"
    contents = "generic"
    support = Support(version="6.0.0")
    description = "A container of any secrets."
    properties = {
        "name": text("Name of the container."),
        "secrets": listing(
            "The secrets.",
            items=mapping(
                fields={
                    "name": text("Name of the secret in the container.", required=True),
                    "ref": link("The secret.", "barbican.secret", required=True),
                }
            ),
        ),
    }

    def references(self, values: Props) -> dict[str, Any]:
        return {entry["name"]: entry["ref"] for _, entry in maps(values, "secrets")}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        known = _known(entry["ref"] for _, entry in maps(values, "secrets"))
        require(len(known) == len(set(known)), "each secret may be there once only", (*path, "secrets"))


class CertificateContainer(ContainerType):
    name = "OS::Barbican::CertificateContainer"
    contents = "certificate"
    support = Support(version="6.0.0")
    description = "A container of a certificate and what belongs to it."
    properties = {
        "name": text("Name of the container."),
        "certificate_ref": link("The certificate.", "barbican.secret"),
        "private_key_ref": link("Its private key.", "barbican.secret"),
        "private_key_passphrase_ref": link("Passphrase of the private key.", "barbican.secret"),
        "intermediates_ref": link("Certificates between it and the authority.", "barbican.secret"),
    }

    def references(self, values: Props) -> dict[str, Any]:
        return {name.removesuffix("_ref"): value for name, value in super().references(values).items()}


class RSAContainer(CertificateContainer):
    name = "OS::Barbican::RSAContainer"
    contents = "rsa"
    description = "A container of a pair of RSA keys."
    properties = {
        "name": text("Name of the container."),
        "private_key_ref": link("The private key.", "barbican.secret"),
        "private_key_passphrase_ref": link("Passphrase of the private key.", "barbican.secret"),
        "public_key_ref": link("The public key.", "barbican.secret"),
    }


TYPES: list[type[ResourceType]] = [Secret, Order, GenericContainer, CertificateContainer, RSAContainer]
