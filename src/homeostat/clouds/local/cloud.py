"""The local cloud, the default: processes, addresses and directories of this machine that outlive the service."""

import contextlib
import copy
import logging
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from homeostat.clouds.local import (
    flavors,
    floating_ips,
    hypervisors,
    landlock,
    load_balancers,
    networks,
    processes,
    project_migration,
    servers,
    snapshots,
    storage,
)
from homeostat.clouds.local.catalogue import Catalogue
from homeostat.clouds.local.family import Family
from homeostat.clouds.local.files import scan
from homeostat.clouds.local.tree import Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.local.watcher import Watcher
from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.model.errors import Terminal, Transient, Uncertain, ambiguous
from homeostat.model.observed import Observation

LOG = logging.getLogger(__name__)

FAMILIES: tuple[type[Family], ...] = (
    servers.Servers,
    hypervisors.Hypervisors,
    networks.Networks,
    networks.Subnets,
    networks.Ports,
    networks.Routers,
    networks.RouterInterfaces,
    networks.RouterGateways,
    networks.SecurityGroups,
    networks.SecurityGroupRules,
    flavors.Flavors,
    flavors.ServerGroups,
    storage.Volumes,
    storage.VolumeAttachments,
    storage.Keypairs,
    snapshots.ServerSnapshots,
    snapshots.VolumeSnapshots,
    floating_ips.FloatingIps,
    floating_ips.FloatingIpAssociations,
    load_balancers.LoadBalancers,
    load_balancers.Listeners,
    load_balancers.Pools,
    load_balancers.PoolMembers,
    load_balancers.HealthMonitors,
)


ANY_NAME = frozenset({"availability_zone", "volume_type"})
"""Kinds for which this cloud accepts any name, since everything is on one machine."""
SNAPSHOTS = {"image": "server", "volume_snapshot": "volume", "volume_backup": "volume"}
"""Kind that a snapshot can be used as -> kind of the snapshot's source."""


class Ledger(Protocol):
    """Data about a local cloud that its service stores elsewhere."""

    def agree(self, identity: str) -> str:
        """Return the stored identity of the cloud; "" if none is stored yet.

        Args:
            identity: Identity to store if it is the first one; "" for none.

        Raises:
            Transient: The store does not answer.
        """

    def projects(self, handles: Collection[str]) -> Mapping[str, str]:
        """Return handle -> project, for the known handles; "" -> the only project, if there is just one.

        Raises:
            Transient: The store does not answer.
        """


class NoLedger:
    """A ledger for a cloud without a service: only the directory describes the cloud."""

    def agree(self, identity: str) -> str:
        return identity

    def projects(self, handles: Collection[str]) -> Mapping[str, str]:
        return {}


class LocalCloud:
    """The cloud port on this machine; its state is the directory `root`, which several processes may share.

    Linux only; works with and without privileges. `family.py` has the verbs, the other modules the kinds.

    A new instance is the whole cloud, as the owner of the machine sees it; `of` returns the view of a project. While
    the directory does not carry the identity of the ledger, it counts as away, and every call raises Transient.
    """

    name = "local"
    listing_lag_s = 0.0

    def __init__(self, root: Path, ledger: Ledger | None = None, private: Collection[Path] = ()) -> None:
        """Open a cloud, or start a new one.

        Args:
            root: Its directory.
            ledger: Data of the service about the cloud; None for none.
            private: Files and directories that user data must not reach; enforced only by Landlock.
        """
        self._whole = self
        self._ledger = ledger or NoLedger()
        self._meeting = threading.Lock()
        self._met = False
        self._projects: dict[str, LocalCloud] = {}
        self._look_through(Tree(root, private))
        if not landlock.version():
            LOG.warning("no Landlock here: nothing keeps user data of servers from the files of the service")
        try:
            with self._there(Transient):
                pass
        except Transient as error:
            LOG.warning("starting all the same: %s", error)

    def _look_through(self, tree: Tree) -> None:
        self._tree = tree
        self._catalogue = Catalogue(tree.root)
        self._families: dict[str, Family] = {family.kind: family(tree) for family in FAMILIES}
        self.kinds = frozenset(self._families)

    def of(self, project: str) -> "LocalCloud":
        """Return the cloud as a project sees it: its own objects and the built-in ones.

        Objects of other projects cannot be read, changed or named. All projects share the addresses of the machine.
        """
        view = self._projects.get(project)
        if view is None:
            view = copy.copy(self)
            view._look_through(self._whole._tree.of(project))
            self._projects[project] = view
        return view

    def _meet(self) -> None:
        """Check the identity of the cloud, and prepare its directory, once before the first operation.

        Raises:
            Transient: The directory is away.
        """
        whole = self._whole
        if whole._met:
            return
        with whole._meeting:
            identity = whole._tree.open_or_start({*self.kinds, snapshots.KIND}, self._ledger.agree(""))
            if self._ledger.agree(identity) != identity:
                raise Transient(f"another process of this service has another local cloud than {self._tree.root}")
            networks.Networks(whole._tree).provide()
            project_migration.claim(whole._tree, sorted({*self.kinds, snapshots.KIND}), self._ledger.projects)
            whole._tree.empty_trash()
            whole._met = True

    @contextlib.contextmanager
    def _there(self, error: type[Transient | Uncertain]) -> Iterator[None]:
        """Convert errors of the file system to `error`: they say nothing about the objects of the cloud."""
        try:
            self._meet()
            yield
        except OSError as cause:
            raise error(f"the local cloud in {self._tree.root} cannot be used: {cause}") from cause

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        with self._there(Transient):
            looks = self._family(kind).observe(handles)
            # Liveness is read by path: if the directory went away meanwhile, live guests looked dead.
            self._tree.check(kind)
            return looks

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        with self._there(Transient):
            looks = self._family(kind).find(tokens)
            self._tree.check(kind)
            return looks

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        with self._there(Transient):
            look = TreeSnapshot(self._tree)
            return [self._resolve(look, kind, name) for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        with self._there(Uncertain):
            return self._swept(self._family(kind).create(intents))

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        with self._there(Uncertain):
            return self._swept(self._family(kind).update(changes))

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        with self._there(Uncertain):
            return self._swept(self._family(kind).delete(handles))

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        with self._there(Uncertain):
            return self._family(kind).operate(operations)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return Watcher(self._tree, sorted(self.kinds)).change_notices(stop)

    def handles(self, kind: str) -> list[str]:
        """Return the handles of all objects of a kind, oldest first; for people, convergence knows its handles."""
        return [self._family(kind).handle(record) for record in self._tree.all(kind).values()]

    def snapshots(self) -> list[tuple[str, str, str]]:
        """Return all snapshots, even of deleted objects, oldest first: id, status, name."""
        records = self._tree.all(snapshots.KIND).values()
        return [(record.id, record.facts["status"], record.spec["name"]) for record in records]

    def close(self) -> None:
        self._tree.threads.close()

    def destroy(self) -> None:
        """End every process and remove every file of this cloud, root included."""
        self.close()
        directories = [entry.path for kind in self.kinds for entry in scan(f"{self._tree.root}/{kind}s")]
        processes.end(directories)
        shutil.rmtree(self._tree.root)

    def _resolve(self, look: TreeSnapshot, kind: str, name: str) -> str | None:
        if kind in ANY_NAME:
            return name
        if kind in ("image", "flavor") and (known_id := self._catalogue.resolve(kind, name)) is not None:
            return known_id
        if kind in SNAPSHOTS:
            return self._snapshot(look, kind, name)
        if kind == hypervisors.Hypervisors.kind:
            return name if name == hypervisors.HOST else None
        id = look.called(kind, name) if kind in self._families else None
        return name if id is not None and kind == "keypair" else id

    def _snapshot(self, look: TreeSnapshot, kind: str, name: str) -> str | None:
        """Return the id of a complete snapshot with this id or name; a server's snapshot serves as an image."""
        of = SNAPSHOTS[kind]
        ids = [
            record.id
            for record in look.all(snapshots.KIND).values()
            if name in (record.id, record.spec["name"])
            and snapshots.complete_snapshot(self._tree, record.id, of) is not None
        ]
        if len(ids) > 1:
            raise ambiguous(name)
        return ids[0] if ids else None

    def _swept(self, answers: list[Answer]) -> list[Answer]:
        self._tree.empty_trash()
        return answers

    def _family(self, kind: str) -> Family:
        try:
            return self._families[kind]
        except KeyError:
            raise Terminal(f"The local cloud has no {kind!r}; it has {', '.join(sorted(self.kinds))}") from None
