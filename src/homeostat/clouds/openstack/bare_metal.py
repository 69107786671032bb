"""Bare metal: ports of machines. Templates only refer to the machines, and to groups of their ports."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InMetadata
from homeostat.resources.kind_fields import fields_of


class BareMetalCollection(Collection):
    """A collection of objects with a UUID."""

    service = "baremetal"
    token = InMetadata("extra")
    filtered_by_name = False

    def handle_of(self, thing: Wire) -> str:
        return str(thing["uuid"])


class Nodes(BareMetalCollection):
    kind = "baremetal_node"
    path, keys = "/nodes", "nodes"


class PortGroups(BareMetalCollection):
    kind = "baremetal_port_group"
    path, keys = "/portgroups", "portgroups"


class Ports(BareMetalCollection):
    """Ports. A hardware address belongs to at most one port."""

    kind = "baremetal_port"
    path, keys, detail = "/ports", "ports", "/detail"
    names = "address"
    cleared: ClassVar[Mapping[str, Any]] = {"pxe_enabled": True, "is_smartnic": False}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        known = fields_of(self.kind).all
        return self.with_ids({name: value for name, value in spec.items() if name in known})

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        return super().create(token, {name: value for name, value in spec.items() if value is not None})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        present = self.get(handle)
        part = self.body_of(self.part_of(spec, changed))
        token = self.token.read(present)
        if "extra" in part and token:
            part = self.token.write(part, token)
        changes = list(_changes(part))
        return self.api.request("PATCH", self.path_of(handle), changes, of=handle) if changes else present


def _changes(part: Mapping[str, Any]) -> Iterator[Wire]:
    for name, value in part.items():
        if value is None:
            yield {"op": "remove", "path": f"/{name}"}
        else:
            yield {"op": "add", "path": f"/{name}", "value": value}


COLLECTIONS: tuple[type[Collection], ...] = (Ports,)
NAMED_ONLY: tuple[type[Collection], ...] = (Nodes, PortGroups)
"""Kinds that templates refer to but do not create."""
