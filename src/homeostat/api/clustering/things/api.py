"""The Clustering API for resources of templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Connection, Row, select

from homeostat.api.access.enforcer import Policy
from homeostat.api.clustering.context import PREFIX
from homeostat.api.clustering.things.asking import ThingContext
from homeostat.api.clustering.things.clusters import Clusters
from homeostat.api.clustering.things.nodes import Nodes
from homeostat.api.clustering.things.receivers import Receivers
from homeostat.api.clustering.things.specs import Policies, Profiles
from homeostat.builtin.clustering.port import Fields, RecordWriter, Requester
from homeostat.clustering.policies import POLICY_TYPES
from homeostat.clustering.profiles import PROFILE_TYPES
from homeostat.clustering.specs import Catalogue
from homeostat.model.errors import Rejected
from homeostat.resources.families.senlin import CLUSTER, NODE, POLICY, PROFILE, RECEIVER
from homeostat.services.clusters.services import Clustering
from homeostat.services.stacks import StackService
from homeostat.store.clusters import listing, living
from homeostat.store.clusters.tokens import TABLES
from homeostat.store.database import Database

CATALOGUES: Mapping[str, Catalogue] = {"cluster_profile_type": PROFILE_TYPES, "cluster_policy_type": POLICY_TYPES}


class ResourceHandler(Protocol):
    """Things of one kind; for the methods see `builtin.clustering.port.ClusteringApi`."""

    def look(self, tx: Connection, project: str, rows: Sequence[Row[Any]]) -> Mapping[str, Fields]: ...

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None: ...

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None: ...

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None: ...

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None: ...

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None: ...


class ClusteringResources:
    """What the Clustering API does for resources of templates.

    Args:
        db: The database.
        stack_service: The write path of stacks.
        url: Where servers and alarms reach the service.
        policy: The access rules; None where every user may do everything.
    """

    def __init__(self, db: Database, stack_service: StackService, url: str, policy: Policy | None) -> None:
        self._db = db
        services = Clustering(db, stack_service)
        base = f"{url.rstrip('/')}{PREFIX}/v1"
        quotas = stack_service.quotas
        context = ThingContext(db, services, base, policy, quotas.depth_max, quotas.timeout_s)
        self._sorts: Mapping[str, ResourceHandler] = {
            PROFILE: Profiles(context),
            POLICY: Policies(context),
            CLUSTER: Clusters(context),
            NODE: Nodes(context),
            RECEIVER: Receivers(context),
        }
        self._living: Mapping[str, Sequence[ColumnElement[bool]]] = {
            CLUSTER: (living.is_living_cluster(),),
            NODE: (living.is_living_node(),),
            RECEIVER: (living.is_living_receiver(),),
        }

    def look(self, kind: str, project: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        table = TABLES[kind]
        mine = (table.c.id.in_(ids), table.c.project == project, *self._living.get(kind, ()))
        with self._db.read() as tx:
            return self._sorts[kind].look(tx, project, tx.execute(select(table).where(*mine)).all())

    def find(self, kind: str, project: str, name: str) -> str | None:
        if kind in CATALOGUES:
            try:
                CATALOGUES[kind].find(name)
            except Rejected:
                return None
            return name
        with self._db.read() as tx:
            row = listing.find(tx, TABLES[kind], project, name, *self._living.get(kind, ()))
        return row.id if row is not None else None

    def make(self, kind: str, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        self._sorts[kind].make(by, spec, keep)

    def change(self, kind: str, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        self._sorts[kind].change(by, id, spec, before, keep)

    def take_over(self, kind: str, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        self._sorts[kind].take_over(by, id, spec, keep)

    def operate(self, kind: str, by: Requester, id: str, verb: str, before: Fields) -> None:
        self._sorts[kind].operate(by, id, verb, before)

    def remove(self, kind: str, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        self._sorts[kind].remove(by, id, before, forget)
