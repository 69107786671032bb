"""What the values of trials name, made when a trial needs it first."""

import contextlib
import ipaddress
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.resources.registry import type_of
from tests.openstack.lives import make, remove
from tests.openstack.normal_values import Values
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.test_networking import filled

SERVER = {"image": "$image", "flavor": "$flavor", "networks": [{"network": "$network"}]}
MADE: Mapping[str, tuple[str, Mapping[str, Any], bool]] = {
    "volume": ("OS::Cinder::Volume", {"size": 1}, False),
    "other_volume": ("OS::Cinder::Volume", {"size": 1}, False),
    "volume_type": ("OS::Cinder::VolumeType", {}, True),
    "server": ("OS::Nova::Server", SERVER, False),
    "other_server": ("OS::Nova::Server", SERVER, False),
    "server_group": ("OS::Nova::ServerGroup", {"policies": ["soft-affinity"]}, False),
    "role": ("OS::Keystone::Role", {}, True),
    "group": ("OS::Keystone::Group", {}, True),
    "other_group": ("OS::Keystone::Group", {}, True),
    "domain": ("OS::Keystone::Domain", {}, True),
}
"""Name -> type, properties, whether an administrator makes it."""


class Things:
    """Things of a project, by names; `<name>_name` is what each is called in the cloud."""

    def __init__(self, clouds: tuple[OpenStackCloud, ...], project: Project, there: Mapping[str, str]) -> None:
        self.user, self.operator = clouds
        self.project = project
        self.names = {**there, "own_project": project.id, "user": project.user_id, "unique_id": str(uuid.uuid4())}
        self.stack = contextlib.ExitStack()

    def make(self, called: str, type_name: str, by_admin: bool = False, **properties: object) -> str:
        """Make a thing that is there to the end, and return its handle."""
        cloud = self.operator if by_admin else self.user
        name = f"{called}-{uuid.uuid4().hex[:6]}"
        has_name = "name" in type_of(type_name).properties
        given = {**({"name": name} if has_name else {}), **properties}
        made = make(cloud, type_name, given, name)
        self.stack.callback(remove, cloud, type_of(type_name).kind, made)
        self.names[called], self.names[f"{called}_name"] = made, str(given.get("name", name))
        return made

    def have(self, values: Values, key: str) -> None:
        """Make what the values of a property name, and what the other properties do that are set with it."""
        for name in sorted(_named([values.base, values.tried[key], (values.together or {}).get(key)])):
            self._have(name.removesuffix("_name"))

    def _have(self, called: str) -> None:
        if called in self.names:
            return
        if called in MADE:
            type_name, properties, by_admin = MADE[called]
            self.make(called, type_name, by_admin, **filled(properties, self.names))
        else:
            getattr(self, f"_{called}", lambda: None)()

    def _volume_snapshot(self) -> None:
        self._have("volume")
        user = self.stack.enter_context(contextlib.closing(self.project.connection()))
        storage: Any = user.block_storage
        made = storage.create_snapshot(volume_id=self.names["volume"], name=f"snapshot-{uuid.uuid4().hex[:6]}")
        self.stack.callback(_gone, storage.delete_snapshot, storage.find_snapshot, made.id)
        eventually(lambda: storage.get_snapshot(made).status == "available" or None, "the snapshot of a volume")
        self.names |= {"volume_snapshot": made.id, "volume_snapshot_name": made.name}

    def _share_snapshot(self) -> None:
        share = self.make("share", "OS::Manila::Share", share_protocol="NFS", size=1)
        user = self.stack.enter_context(contextlib.closing(self.project.connection()))
        shares: Any = user.shared_file_system
        made = shares.create_share_snapshot(share_id=share, name=f"snapshot-{uuid.uuid4().hex[:6]}")

        def find(id: str) -> Any:
            return next((each for each in shares.share_snapshots() if each.id == id), None)

        self.stack.callback(_gone, shares.delete_share_snapshot, find, made.id)
        eventually(lambda: shares.get_share_snapshot(made.id).status == "available" or None, "the snapshot of a share")
        self.names["share_snapshot"] = made.id

    def _segment(self) -> None:
        """The one that each network has."""
        with contextlib.closing(self.project.admin()) as admin:
            (segment,) = admin.network.segments(network_id=self.names["segmented_network"])
            self.names["segment"] = segment.id

    def _public_subnet(self) -> None:
        with contextlib.closing(self.project.admin()) as admin:
            subnet = next(iter(admin.network.subnets(network_id=self.names["public"], ip_version=4)))
            self.names |= {"public_subnet": subnet.id, "public_subnet_name": subnet.name}
            self.names["public_address"] = str(ipaddress.ip_network(subnet.cidr)[-7])

    _public_address = _public_subnet


def _gone(delete: Any, find: Any, id: str) -> None:
    delete(id)
    eventually(lambda: find(id) is None or None, f"{id} to go")


def _named(tree: Any) -> set[str]:
    if isinstance(tree, Mapping):
        return {name for each in tree.values() for name in _named(each)}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return {name for each in tree for name in _named(each)}
    return {tree[1:]} if isinstance(tree, str) and tree.startswith("$") else set()
