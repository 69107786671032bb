"""Operations of the Clustering API on all kinds of `OS::Senlin::*` resources."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, select

from homeostat.api.access.enforcer import Policy
from homeostat.clustering.decisions.policies import POLICY_TYPES
from homeostat.clustering.decisions.profiles import PROFILE_TYPES
from homeostat.clustering.decisions.specs import Catalogue
from homeostat.clustering.resources.clusters import Clusters
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.nodes import Nodes
from homeostat.clustering.resources.receivers import Receivers
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester
from homeostat.clustering.resources.specs import Policies, Profiles
from homeostat.clustering.service.services import Clustering
from homeostat.clustering.store import listing, living
from homeostat.clustering.store.tokens import KINDS
from homeostat.clustering.wire.context import PREFIX
from homeostat.model.errors import Rejected
from homeostat.resources.families.senlin import CLUSTER, NODE, POLICY, PROFILE, RECEIVER
from homeostat.services.stacks import StackService
from homeostat.store.database import Database, Transaction

CATALOGUES: Mapping[str, Catalogue] = {"cluster_profile_type": PROFILE_TYPES, "cluster_policy_type": POLICY_TYPES}


class ResourceHandler(Protocol):
    """Operations on objects of a kind; for the methods see `ClusteringResources`."""

    def look(self, tx: Transaction, project: str, rows: Sequence[Any]) -> Mapping[str, Fields]: ...

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None: ...

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None: ...

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None: ...

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None: ...

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None: ...


class ClusteringResources:
    """The operations of the Clustering API for resources of templates.

    Each method acts on behalf of a requester, with the same checks as a request of this user.
    Errors of all methods: Rejected, Transient.

    Args:
        stack_service: The write path of stacks.
        url: URL of the service for servers and alarms.
        policy: The access rules; None if every user may do everything.
    """

    def __init__(self, db: Database, stack_service: StackService, url: str, policy: Policy | None) -> None:
        self._db = db
        services = Clustering(db, stack_service)
        base = f"{url.rstrip('/')}{PREFIX}/v1"
        quotas = stack_service.quotas
        context = ResourceContext(db, services, base, policy, quotas.depth_max, quotas.timeout_s)
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
        """Return id -> fields of the existing ones of these objects."""
        table = listing.TABLES[KINDS[kind]]
        conditions = (table.c.id.in_(ids), table.c.project == project, *self._living.get(kind, ()))
        with self._db.read() as tx:
            return self._sorts[kind].look(tx, project, tx.execute(select(table).where(*conditions)).all())

    def find(self, kind: str, project: str, name: str) -> str | None:
        """Return the id of an object, or the name of a type, from its name or id; None if unknown.

        Raises:
            Rejected: MultipleChoices.
        """
        if kind in CATALOGUES:
            try:
                CATALOGUES[kind].find(name)
            except Rejected:
                return None
            return name
        with self._db.read() as tx:
            row = listing.find(tx, KINDS[kind], project, name, *self._living.get(kind, ()))
        return row.id if row is not None else None

    def make(self, kind: str, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        """Create an object."""
        self._sorts[kind].make(by, spec, keep)

    def change(self, kind: str, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        """Change an object to match a spec; repeated calls with the same spec have no further effect."""
        self._sorts[kind].change(by, id, spec, before, keep)

    def take_over(self, kind: str, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        """Adopt an existing object for a resource, without changing the object."""
        self._sorts[kind].take_over(by, id, spec, keep)

    def operate(self, kind: str, by: Requester, id: str, verb: str, before: Fields) -> None:
        """Perform an operation on an object. Raise Rejected: NotSupported if its kind has no such operation."""
        self._sorts[kind].operate(by, id, verb, before)

    def remove(self, kind: str, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None:
        """Delete an object, or start its deletion, and call `forget` in the same transaction."""
        self._sorts[kind].remove(by, id, before, forget)
