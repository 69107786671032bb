"""Profiles and policies of templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import select

from homeostat.clustering.decisions.specs import spec_of_template
from homeostat.clustering.decisions.states import ActionStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.service.changes import StartedAction
from homeostat.clustering.service.receivers import ReceiverService
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.service.specs import SpecService
from homeostat.clustering.store import bindings
from homeostat.clustering.wire import specs, views
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Rejected
from homeostat.resources.families.senlin import POLICY
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ProfileRow

Service = TypeVar("Service", SpecService[ProfileRow], ReceiverService)
ATTACH = "attach"
ATTACHED, DETACHED = "attached", "detached"


def _template_spec(spec: Fields) -> dict[str, Any]:
    return spec_of_template(spec["type"], spec.get("properties") or {})


def properties_of(row: Any) -> dict[str, Any]:
    """Return type and properties of a stored spec, in the format of templates."""
    return {"type": row.type, "properties": dict(row.spec.get("properties") or {})}


class PlainHandler(Generic[Service]):
    """Operations on objects of a kind that need no request besides that of their service."""

    def __init__(self, context: ResourceContext, service: Service) -> None:
        self._context = context
        self._service: Service = service

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        with self._context.db.write() as tx:
            keep(tx, ResourceRecord(self._service.get(tx, self._context.scope(by), id).id))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None:
        self._service.delete(self._context.scope(by), id, also=lambda tx, _: forget(tx))


class Profiles(PlainHandler[SpecService[ProfileRow]]):
    """Profiles of templates."""

    def __init__(self, context: ResourceContext) -> None:
        super().__init__(context, context.services.profiles)

    def look(self, tx: Transaction, project: str, rows: Sequence[Any]) -> dict[str, Fields]:
        objects: dict[str, Fields] = {}
        for row in rows:
            fields = {name: value for name, value in views.profile(row).items() if name != "spec"}
            objects[row.id] = {**fields, **properties_of(row)}
        return objects

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        body = {
            "name": spec["name"],
            "spec": _template_spec(spec),
            "metadata": spec.get("metadata"),
        }
        fields = read(body, specs.NEW_PROFILE)
        metadata = fields.get("metadata", {})
        self._service.create(
            scope, fields["name"], fields["spec"], also=lambda tx, id: keep(tx, ResourceRecord(id)), metadata=metadata
        )

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        fields = read({name: spec[name] for name in ("name", "metadata") if name in spec}, specs.CHANGED_PROFILE)
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        if any(getattr(row, name) != value for name, value in fields.items()):
            self._service.update(scope, id, fields)


class Policies:
    """Policies of templates, and their attachments to clusters."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._service = context.services.policies
        self._bindings = context.services.bindings

    def look(self, tx: Transaction, project: str, rows: Sequence[Any]) -> dict[str, Fields]:
        ids = [row.id for row in rows]
        asked = {id: record.object.get("bindings") or [] for id, record in records.of_ids(tx, POLICY, ids).items()}
        bindings_of = bindings.of_policies(tx, ids)
        objects: dict[str, Fields] = {}
        for row in rows:
            bound = bindings_of.get(row.id, {})
            existing = [{"cluster_id": cluster, "enabled": enabled} for cluster, enabled in bound.items()]
            missing = [binding for binding in asked.get(row.id, ()) if binding["cluster_id"] not in bound]
            fields = {name: value for name, value in views.policy(row).items() if name not in ("spec", "data")}
            status = DETACHED if missing else ATTACHED
            objects[row.id] = {**fields, **properties_of(row), "bindings": existing, "status": status}
        return objects

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        fields = read({"name": spec["name"], "spec": _template_spec(spec)}, specs.NEW_POLICY)
        requested = {"bindings": self._wanted(scope, spec)}
        self._service.create(
            scope, fields["name"], fields["spec"], also=lambda tx, id: keep(tx, ResourceRecord(id, asked=requested))
        )

    def _wanted(self, scope: RequestScope, spec: Fields) -> list[dict[str, Any]]:
        """Return the bindings in a spec with the ids of their clusters.

        Raises:
            Rejected: BadRequest: a cluster does not exist.
        """
        resolved = []
        with self._context.db.read() as tx:
            for binding in spec.get("bindings") or ():
                with referring(f"The specified cluster '{binding['cluster_id']}'"):
                    cluster = self._context.services.clusters.get(tx, scope, binding["cluster_id"])
                resolved.append({"cluster_id": cluster.id, "enabled": binding["enabled"]})
        return resolved

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        fields = read({"name": spec["name"]}, specs.CHANGED_POLICY)
        wanted = self._wanted(scope, spec)
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        if row.name != fields["name"]:
            self._service.update(scope, id, fields)
        named = {binding["cluster_id"] for binding in wanted}
        self._detach(
            scope, id, [binding for binding in before.get("bindings") or () if binding["cluster_id"] not in named]
        )
        self._attach(scope, id, wanted)
        with self._context.db.write() as tx:
            keep(tx, ResourceRecord(id, asked={"bindings": wanted}))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        if verb != ATTACH:
            raise unknown(verb)
        self._attach(self._context.scope(by), id, before.get("bindings") or ())

    def _attach(self, scope: RequestScope, id: str, wanted: Sequence[Mapping[str, Any]]) -> None:
        with self._context.db.read() as tx:
            bound = bindings.of_policies(tx, [id]).get(id, {})
        check_types = self._context.check_types(scope)
        for binding in wanted:
            cluster, enabled = binding["cluster_id"], binding["enabled"]
            if cluster not in bound:
                check_done(self._context, self._bindings.attach(scope, cluster, id, check_types, enabled=enabled))
            elif bound[cluster] != enabled:
                self._bindings.switch(scope, cluster, id, check_types, enabled=enabled)

    def _detach(self, scope: RequestScope, id: str, removed: Sequence[Mapping[str, Any]]) -> None:
        with self._context.db.read() as tx:
            bound = bindings.of_policies(tx, [id]).get(id, {})
        for binding in removed:
            if binding["cluster_id"] in bound:
                self._bindings.detach(scope, binding["cluster_id"], id, self._context.check_types(scope))

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        requested = {"bindings": self._wanted(scope, spec)}
        with self._context.db.write() as tx:
            keep(tx, ResourceRecord(self._service.get(tx, scope, id).id, asked=requested))

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Transaction], None]) -> None:
        scope = self._context.scope(by)
        self._detach(scope, id, before.get("bindings") or ())
        self._service.delete(scope, id, also=lambda tx, _: forget(tx))


def check_done(context: ResourceContext, started: StartedAction) -> None:
    """Check that an immediate action has not failed.

    Raises:
        Rejected: BadRequest with the reason of the failure.
    """
    table = schema.action
    with context.db.read() as tx:
        row = tx.execute(select(table.c.status, table.c.status_reason).where(table.c.id == started.action)).first()
    if row is not None and row.status == ActionStatus.FAILED:
        raise Rejected("BadRequest", row.status_reason)


def unknown(verb: str) -> Rejected:
    """Return the error for an operation that a kind does not support."""
    return Rejected("NotSupported", f"There is no operation {verb!r}")
