"""Container clusters and cluster templates."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import LATE_S, Wire
from homeostat.clouds.openstack.tokens import InMetadata
from homeostat.model.errors import Uncertain
from homeostat.resources.kind_fields import fields_of

CHANGING = "UPDATE_IN_PROGRESS"


class ContainerCollection(Collection):
    """A collection of objects with a UUID. Only the list with details shows all fields."""

    service = "container-infrastructure-management"
    update_method = "PATCH"
    detail = "/detail"
    token = InMetadata("labels")
    filtered_by_name = False

    def handle_of(self, thing: Wire) -> str:
        return str(thing["uuid"])

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if value is not None}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        known = [name for name in changed if name in fields_of(self.kind).mutable]
        changes = [_change(name, spec.get(name)) for name in known]
        present = self.get(handle)
        if not changes:
            return present
        self.api.request("PATCH", self.path_of(handle), changes, of=handle)
        return self._after(present)

    def _after(self, before: Wire) -> Wire:
        """Return an object after the request for its change."""
        return self.get(self.handle_of(before))


class ClusterTemplates(ContainerCollection):
    kind = "cluster_template"
    path, keys = "/clustertemplates", "clustertemplates"


class Clusters(ContainerCollection):
    """Clusters. Magnum's API passes requests on to its conductor, and answers before the conductor has accepted them.

    So a new cluster does not exist at first, and a changed cluster still looks unchanged.
    """

    kind = "container_cluster"
    path, keys = "/clusters", "clusters"

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Create a cluster that carries a token; labels not specified are those of its template."""
        body = self.token.write({**self.body_of(spec), "merge_labels": True}, token)
        answer = self.api.request("POST", self.path, body, of=token)
        try:
            return self.get(answer["uuid"])
        except Missing as error:
            # The conductor has not stored the cluster yet; a retry now would create a second one.
            raise Uncertain(f"the cluster {answer['uuid']} was asked for, and is not there yet", LATE_S) from error

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the faults of node groups, which only a read of a single cluster shows."""
        return {
            handle: self._read({handle}).get(handle, thing) if _is_failed(thing) and "faults" not in thing else thing
            for handle, thing in things.items()
        }

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        status, addresses = str(fields.get("status") or ""), thing.get("node_addresses")
        if _is_failed(thing):
            fields["fault"] = _fault_of(thing)
        # The wanted number of nodes changes at once, the status moments later.
        if status.endswith("_complete") and addresses is not None and len(addresses) != thing.get("node_count"):
            fields["status"] = CHANGING.lower()
        return fields

    def _after(self, before: Wire) -> Wire:
        return {**before, "status": CHANGING}

    def delete(self, handle: str) -> Wire | None:
        present = self.get(handle)
        self.api.request("DELETE", self.path_of(handle), of=handle)
        return {**present, "status": "DELETE_IN_PROGRESS"}


def _is_failed(thing: Wire) -> bool:
    return str(thing.get("status")).endswith("_FAILED")


def _fault_of(thing: Wire) -> str:
    """Return why a cluster failed: the service explains the failure of node groups better than of clusters."""
    faults = dict.fromkeys(str(fault) for fault in (thing.get("faults") or {}).values() if fault)
    reason = "; ".join(faults) or str(thing.get("status_reason") or "")
    if reason:
        return reason
    stack = thing.get("stack_id")
    where = f"its stack is {stack}" if stack else "it made no stack, so the log of its conductor says why"
    return f"Magnum gives no reason for cluster {thing['uuid']}: {where}"


def _change(name: str, value: Any) -> Wire:
    return (
        {"op": "remove", "path": f"/{name}"} if value is None else {"op": "replace", "path": f"/{name}", "value": value}
    )


COLLECTIONS: tuple[type[Collection], ...] = (ClusterTemplates, Clusters)
