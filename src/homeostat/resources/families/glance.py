"""Types of the image service."""

from homeostat.resources import comparison
from homeostat.resources.base import MaintenanceMethod, Props, ResourceType
from homeostat.resources.rules import apart_in_more_than_case, is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    between,
    boolean,
    integer,
    listing,
    mapping,
    one_of,
    pattern,
    text,
)

UUID = pattern("^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$")
AMAZON_FORMATS = ("ami", "ari", "aki")


class WebImage(ResourceType):
    name = "OS::Glance::WebImage"
    kind = "image"
    description = "An image that the cloud downloads."
    properties = {
        "name": text("Name of the image."),
        "id": text("Id that it should have."),
        "min_disk": integer("Smallest disk that it fits on, in GiB.", default=0, constraints=(between(0),)),
        "min_ram": integer("Least memory that it runs in, in MiB.", default=0, constraints=(between(0),)),
        "protected": boolean("It may not be deleted.", default=False, update=True),
        "disk_format": text(
            "Format of the disk.",
            required=True,
            constraints=(one_of(*AMAZON_FORMATS, "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"),),
        ),
        "container_format": text(
            "Format of the container.",
            required=True,
            constraints=(one_of(*AMAZON_FORMATS, "bare", "ovf", "ova", "docker"),),
        ),
        "location": text("URL to download it from.", required=True),
        "tags": listing("Tags.", update=True, same=comparison.includes),
        "architecture": text("Architecture of the system in it.", update=True),
        "kernel_id": text("Image of the kernel to boot it with.", update=True, constraints=(UUID,)),
        "os_distro": text("Name of the system in it.", update=True),
        "os_version": text("Version of the system in it.", update=True),
        "owner": text("Project that owns it.", update=True),
        "extra_properties": mapping("Further properties of the image.", default={}, update=True),
        "visibility": text(
            "Who sees it.",
            default="private",
            update=True,
            constraints=(one_of("public", "private", "community", "shared"),),
        ),
        "ramdisk_id": text("Image of the RAM disk to boot it with.", update=True, constraints=(UUID,)),
        "active": boolean("Its data may be used.", default=True, update=True),
        "members": listing("Projects that it is shared with.", update=True, items=text(), same=comparison.unordered),
    }

    maintenance_methods = {
        "LOCK": MaintenanceMethod(fields={"protected": True}, observed_field="protected", done=(True,), gradual=False),
        "UNLOCK": MaintenanceMethod(
            fields={"protected": False}, observed_field="protected", done=(False,), gradual=False
        ),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        disk, container = values.get("disk_format"), values.get("container_format")
        amazon = [form for form in (disk, container) if form in AMAZON_FORMATS]
        fits = not amazon or disk == container or UNKNOWN in (disk, container)
        require(fits, f"disk_format and container_format must both be {amazon[0] if amazon else ''}", path)
        shared = values.get("visibility") in ("shared", UNKNOWN)
        require(shared or not is_set(values, "members"), "members needs the visibility shared", path)
        apart_in_more_than_case(values, "tags", path)


TYPES: list[type[ResourceType]] = [WebImage]
