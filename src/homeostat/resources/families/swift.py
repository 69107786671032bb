"""Types of object storage: containers."""

from typing import Any
from urllib.parse import urlsplit

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.schema import Attribute, ValueType, boolean, listing, mapping, one_of, text

ANYBODY = ".r:*"
"""Access list that grants access to everyone."""


class ContainerType(ResourceType):
    """Base of the types of containers, whose id is their name."""

    kind = "container"
    attributes = {
        "DomainName": Attribute("Host of its URL."),
        "WebsiteURL": Attribute("Its URL."),
    }

    def attribute(self, thing: Thing, name: str) -> Any:
        url = thing.seen.properties.get("url") or ""
        if name == "DomainName":
            return urlsplit(url).hostname
        if name == "WebsiteURL":
            return url or None
        if name == "RootURL":
            return url.rpartition("/")[0] or None
        return super().attribute(thing, name)


class Container(ContainerType):
    name = "OS::Swift::Container"
    description = "A container of objects."
    properties = {
        "name": text("Name of the container."),
        "X-Container-Read": text("Access list of those who may read its objects.", blank=True),
        "X-Container-Write": text("Access list of those who may write objects.", blank=True),
        "X-Container-Meta": mapping("Metadata of the container.", default={}),
        "X-Account-Meta": mapping("Metadata of the account.", default={}),
        "PurgeOnDelete": boolean("Delete its objects with it; else one that is not empty stays.", default=False),
    }
    attributes = {
        **ContainerType.attributes,
        "RootURL": Attribute("URL of the account."),
        "ObjectCount": Attribute("How many objects are in it.", ValueType.INTEGER, field="object_count"),
        "BytesUsed": Attribute("Bytes that they take.", ValueType.INTEGER, field="bytes_used"),
        "HeadContainer": Attribute("Its headers.", ValueType.MAP, field="headers"),
    }
    renamed = {
        "X-Container-Read": "read_acl",
        "X-Container-Write": "write_acl",
        "X-Container-Meta": "metadata",
        "X-Account-Meta": "account_metadata",
        "PurgeOnDelete": "purge",
    }


class Bucket(ContainerType):
    name = "AWS::S3::Bucket"
    description = "A container of objects, in the words of S3."
    properties = {
        "AccessControl": text(
            "Who may use it: PublicRead and PublicReadWrite let everybody in, the others leave it to the project.",
            constraints=(
                one_of(
                    *("Private", "PublicRead", "PublicReadWrite", "AuthenticatedRead"),
                    *("BucketOwnerRead", "BucketOwnerFullControl"),
                ),
            ),
        ),
        "WebsiteConfiguration": mapping(
            "Pages of a static web site.",
            fields={
                "IndexDocument": text("Name of its first page."),
                "ErrorDocument": text("Name of the page that is shown for errors."),
            },
        ),
        "Tags": listing(
            "Tags.",
            items=mapping(
                fields={
                    "Key": text("Name of the tag.", required=True),
                    "Value": text("Value of the tag.", required=True),
                }
            ),
        ),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        metadata = {f"S3-Tag-{tag['Key']}": tag["Value"] for tag in values.get("Tags") or ()}
        site = values.get("WebsiteConfiguration") or {}
        metadata |= {"Web-Index": site["IndexDocument"]} if site.get("IndexDocument") else {}
        metadata |= {"Web-Error": site["ErrorDocument"]} if site.get("ErrorDocument") else {}
        spec: dict[str, Any] = {"name": physical_name, "metadata": metadata, "purge": False}
        if values.get("AccessControl") in ("PublicRead", "PublicReadWrite"):
            spec["read_acl"] = ANYBODY
        if values.get("AccessControl") == "PublicReadWrite":
            spec["write_acl"] = ANYBODY
        return spec


TYPES: list[type[ResourceType]] = [Container, Bucket]
