"""Settings for the OpenStack that the service stands beside."""

from dataclasses import dataclass

INTERFACES = ("public", "internal", "admin")


@dataclass(frozen=True, slots=True)
class OpenStackConfig:
    """How OpenStack is reached.

    Attributes:
        cloud: Name of a cloud in `clouds.yaml`, whose login is used for all projects; "" where trusts are used, or
            the variables `OS_*` tell.
        region: Region in the catalogue; "" for the only one.
        interface: Interface of the endpoints in the catalogue.
        request_s: Seconds that a request may take.
        connections: Requests that one process sends at once.
    """

    cloud: str = ""
    region: str = ""
    interface: str = "public"
    request_s: float = 60.0
    connections: int = 16
