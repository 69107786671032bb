"""Settings of the OpenStack connection."""

from dataclasses import dataclass

INTERFACES = ("public", "internal", "admin")


@dataclass(frozen=True, slots=True)
class OpenStackConfig:
    """Connection to an OpenStack.

    Attributes:
        cloud: Name of a cloud in `clouds.yaml`, whose login is used for all projects; "" if trusts are used, or the
            environment variables `OS_*`.
        region: Region in the catalogue; "" for the only one.
        interface: Interface of the endpoints in the catalogue.
        request_s: Timeout of a request in seconds.
        connections: Maximum number of concurrent requests of a process.
    """

    cloud: str = ""
    region: str = ""
    interface: str = "public"
    request_s: float = 60.0
    connections: int = 16
