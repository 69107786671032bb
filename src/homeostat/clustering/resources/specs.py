"""Profiles and policies of templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from homeostat.clustering.decisions.specs import spec_of_template
from homeostat.clustering.decisions.states import ActionStatus
from homeostat.clustering.resources.context import ResourceContext
from homeostat.clustering.resources.records import Fields, RecordWriter, Requester, ResourceRecord
from homeostat.clustering.service.plans import StartedAction
from homeostat.clustering.service.requester import RequestScope, referring
from homeostat.clustering.store import bindings
from homeostat.clustering.wire import policies, profiles, views
from homeostat.clustering.wire.bodies import read
from homeostat.model.errors import Rejected
from homeostat.resources.families.senlin import POLICY
from homeostat.store import schema
from homeostat.store.builtin import records

ATTACH = "attach"
ATTACHED, DETACHED = "attached", "detached"


def _asked(spec: Fields) -> dict[str, Any]:
    return spec_of_template(spec["type"], spec.get("properties") or {})


def properties_of(row: Any) -> dict[str, Any]:
    """Return the type and the properties of a stored spec, as templates have them."""
    return {"type": row.type, "properties": dict(row.spec.get("properties") or {})}


class Profiles:
    """Profiles of templates."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._service = context.services.profiles

    def look(self, tx: Connection, project: str, rows: Sequence[Any]) -> dict[str, Fields]:
        found: dict[str, Fields] = {}
        for row in rows:
            shown = {name: value for name, value in views.profile(row).items() if name != "spec"}
            found[row.id] = {**shown, **properties_of(row)}
        return found

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        body = {
            "name": spec["name"],
            "spec": _asked(spec),
            "metadata": spec.get("metadata"),
        }
        given = read(body, profiles.NEW)
        metadata = given.get("metadata", {})
        self._service.create(
            scope, given["name"], given["spec"], also=lambda tx, id: keep(tx, ResourceRecord(id)), metadata=metadata
        )

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        given = read({name: spec[name] for name in ("name", "metadata") if name in spec}, profiles.CHANGED)
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        if any(getattr(row, name) != value for name, value in given.items()):
            self._service.update(scope, id, given)

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        with self._context.db.write() as tx:
            keep(tx, ResourceRecord(self._service.get(tx, self._context.scope(by), id).id))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        self._service.delete(self._context.scope(by), id, also=lambda tx, _: forget(tx))


class Policies:
    """Policies of templates, and the clusters that they name."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._service = context.services.policies
        self._bindings = context.services.bindings

    def look(self, tx: Connection, project: str, rows: Sequence[Any]) -> dict[str, Fields]:
        ids = [row.id for row in rows]
        asked = {id: each.object.get("bindings") or [] for id, each in records.of_ids(tx, POLICY, ids).items()}
        bindings_of = bindings.of_policies(tx, ids)
        found: dict[str, Fields] = {}
        for row in rows:
            bound = bindings_of.get(row.id, {})
            there = [{"cluster_id": cluster, "enabled": enabled} for cluster, enabled in bound.items()]
            missing = [each for each in asked.get(row.id, ()) if each["cluster_id"] not in bound]
            shown = {name: value for name, value in views.policy(row).items() if name not in ("spec", "data")}
            status = DETACHED if missing else ATTACHED
            found[row.id] = {**shown, **properties_of(row), "bindings": there, "status": status}
        return found

    def make(self, by: Requester, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        given = read({"name": spec["name"], "spec": _asked(spec)}, policies.NEW)
        kept = {"bindings": self._wanted(scope, spec)}
        self._service.create(
            scope, given["name"], given["spec"], also=lambda tx, id: keep(tx, ResourceRecord(id, asked=kept))
        )

    def _wanted(self, scope: RequestScope, spec: Fields) -> list[dict[str, Any]]:
        """Return the bindings of a spec with the ids of their clusters.

        Raises:
            Rejected: BadRequest: there is no such cluster.
        """
        found = []
        with self._context.db.read() as tx:
            for each in spec.get("bindings") or ():
                with referring(f"The specified cluster '{each['cluster_id']}'"):
                    cluster = self._context.services.clusters.get(tx, scope, each["cluster_id"])
                found.append({"cluster_id": cluster.id, "enabled": each["enabled"]})
        return found

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        given = read({"name": spec["name"]}, policies.CHANGED)
        wanted = self._wanted(scope, spec)
        with self._context.db.read() as tx:
            row = self._service.get(tx, scope, id)
        if row.name != given["name"]:
            self._service.update(scope, id, given)
        named = {each["cluster_id"] for each in wanted}
        self._detach(scope, id, [each for each in before.get("bindings") or () if each["cluster_id"] not in named])
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
        for each in wanted:
            cluster, enabled = each["cluster_id"], each["enabled"]
            if cluster not in bound:
                check_done(self._context, self._bindings.attach(scope, cluster, id, check_types, enabled=enabled))
            elif bound[cluster] != enabled:
                self._bindings.switch(scope, cluster, id, check_types, enabled=enabled)

    def _detach(self, scope: RequestScope, id: str, gone: Sequence[Mapping[str, Any]]) -> None:
        with self._context.db.read() as tx:
            bound = bindings.of_policies(tx, [id]).get(id, {})
        for each in gone:
            if each["cluster_id"] in bound:
                self._bindings.detach(scope, each["cluster_id"], id, self._context.check_types(scope))

    def take_over(self, by: Requester, id: str, spec: Fields, keep: RecordWriter) -> None:
        scope = self._context.scope(by)
        kept = {"bindings": self._wanted(scope, spec)}
        with self._context.db.write() as tx:
            keep(tx, ResourceRecord(self._service.get(tx, scope, id).id, asked=kept))

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        scope = self._context.scope(by)
        self._detach(scope, id, before.get("bindings") or ())
        self._service.delete(scope, id, also=lambda tx, _: forget(tx))


def check_done(context: ResourceContext, begun: StartedAction) -> None:
    """Check that an action that is carried out at once has not failed.

    Raises:
        Rejected: BadRequest says why it has.
    """
    table = schema.action
    with context.db.read() as tx:
        row = tx.execute(select(table.c.status, table.c.status_reason).where(table.c.id == begun.action)).first()
    if row is not None and row.status == ActionStatus.FAILED:
        raise Rejected("BadRequest", row.status_reason)


def unknown(verb: str) -> Rejected:
    """Return the error for an operation that a kind does not have."""
    return Rejected("NotSupported", f"There is no operation {verb!r}")
