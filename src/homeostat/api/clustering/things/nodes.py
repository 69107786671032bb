"""Nodes of templates."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from homeostat.api.clustering import nodes
from homeostat.api.clustering.bodies import read
from homeostat.api.clustering.things.asking import Desk
from homeostat.api.clustering.things.specs import unknown
from homeostat.api.services.clusters.requester import Asking, referring
from homeostat.builtin.clustering.port import Fields, Keep, Kept, Requester
from homeostat.clustering.states import NodeStatus
from homeostat.store import schema
from homeostat.store.clusters import node_views

PLACEHOLDER = "node"
"""Name of a request for a node in a cluster that leaves the name to the cluster."""


class Nodes:
    """Nodes of templates."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._all = desk.services
        self._service = desk.services.nodes

    def look(self, tx: Connection, project: str, rows: Sequence[Row[Any]]) -> dict[str, Fields]:
        names = self._all.profile_names(tx, {row.profile_id for row in rows})
        found: dict[str, Fields] = {}
        for each in node_views.nodes(tx, rows, names, tainted=True):
            shown = {name: value for name, value in each.items() if name not in ("dependents", "domain")}
            status = str(each["status"]).lower()
            fault = {"fault": each["status_reason"]} if each["status"] == NodeStatus.ERROR else {}
            found[each["id"]] = {**shown, "status": status, **fault}
        return found

    def make(self, by: Requester, spec: Fields, keep: Keep) -> None:
        asking = self._desk.asking(by)
        body = {"name": PLACEHOLDER, **{name: spec[name] for name in nodes.NEW.keys() & spec.keys()}}
        given = read(body, nodes.NEW)
        profile = self._all.profile(asking, given["profile_id"])
        cluster = self._cluster(asking, given.get("cluster_id") or "")
        if cluster is None:
            self._desk.check_depth(by)

        def also(tx: Connection, id: str) -> None:
            stack_id = select(schema.node.c.stack_id).where(schema.node.c.id == id)
            keep(tx, Kept(id, tx.execute(stack_id).scalar_one() if cluster is None else ""))

        checked = self._desk.check_types(asking)
        named = "name" in spec
        self._service.create(asking, given["name"], profile, cluster, given, checked, also, named=named)

    def _cluster(self, asking: Asking, named: str) -> Row[Any] | None:
        if not named:
            return None
        with self._desk.db.read() as tx, referring(f"The specified cluster '{named}'"):
            return self._all.clusters.get(tx, asking, named)

    def change(self, by: Requester, id: str, spec: Fields, before: Fields, keep: Keep) -> None:
        asking = self._desk.asking(by)
        given = read({name: spec[name] for name in ("name", "profile_id", "metadata") if name in spec}, nodes.CHANGED)
        profile = self._all.profile(asking, given.pop("profile_id"))
        with self._desk.db.read() as tx:
            row = self._service.get(tx, asking, id)
        if row.profile_id != profile.id or any(getattr(row, name) != value for name, value in given.items()):
            self._service.update(asking, id, given, profile, self._desk.check_types(asking))
        if row.cluster_id is None:
            with self._desk.db.write() as tx:
                keep(tx, Kept(id, row.stack_id))

    def take_over(self, by: Requester, id: str, spec: Fields, keep: Keep) -> None:
        with self._desk.db.write() as tx:
            row = self._service.get(tx, self._desk.asking(by), id)
            keep(tx, Kept(row.id, row.stack_id if row.cluster_id is None else ""))

    def operate(self, by: Requester, id: str, verb: str, before: Fields) -> None:
        raise unknown(verb)

    def remove(self, by: Requester, id: str, before: Fields, forget: Callable[[Connection], None]) -> None:
        asking = self._desk.asking(by)
        checked = self._desk.check_types(asking)
        self._service.delete(asking, id, force=True, check_types=checked, also=lambda tx, _: forget(tx))
