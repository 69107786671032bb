"""Load balancing: load balancers and their parts.

A load balancer accepts one change at a time, of itself or of any of its parts: during a change it is PENDING_UPDATE,
and Octavia answers 409. So each change takes a lock, and reads the load balancer before the request. Members created
together take the lock once per pool.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, cast

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.thing_locks import ThingLocks
from homeostat.clouds.openstack.tokens import InTags
from homeostat.model.errors import Terminal, Transient
from homeostat.model.plan import DELETE_WITH_PARTS
from homeostat.resources.kind_fields import fields_of

ERROR_S = 30.0
"""Seconds between looks at a load balancer in ERROR."""
PENDING = "PENDING_"
NAMED_MAX = 5
"""Maximum number of parts that an error names."""


class BalancingCollection(Collection):
    """A collection of load balancers or their parts.

    Attributes:
        above: Fields that lead to the load balancer, of which the first with a value counts -> the kind of the object.
    """

    service = "load-balancer"
    token = InTags()
    statuses = {"pending_delete": "deleting"}
    above: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.renamed = {"status": "provisioning_status", **cls.renamed}

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        for field, kind in self.above.items():
            listed = thing.get(KINDS_LISTED.get(kind, "")) or ()
            if listed and not fields.get(field):
                fields[field] = listed[0]["id"]
        operating = fields.get("operating_status")
        if operating:
            fields["operating_status"] = operating.lower()
        if fields.get("status") == "error":
            fields["fault"] = f"provisioning_status ERROR, operating_status {operating}"
        return fields

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        """Return the fields that the service takes, with ids instead of names."""
        # Octavia refuses "" for fields other than names and descriptions.
        return {
            name: value if value != "" or name in ("name", "description") else None
            for name, value in super().body_of(self.with_ids(spec)).items()
        }

    # -- turns ---------------------------------------------------------------------------------------------------

    def balancer_of(self, fields: Mapping[str, Any]) -> str:
        """Return the load balancer of an object with these fields of its kind.

        Raises:
            Missing: A field refers to an object that does not exist.
            Terminal: No field refers to an object.
        """
        for name, kind in self.above.items():
            if fields.get(name):
                parent = cast(BalancingCollection, self.cloud.collections[kind])
                return parent.balancer(str(parent.id_of(fields[name])))
        raise Terminal(f"{self.kind}: set {' or '.join(self.above)}")

    def balancer(self, handle: str) -> str:
        """Return the load balancer of an existing object, which never changes.

        Raises:
            Missing: The object does not exist.
        """
        return (
            self.cloud.known(
                f"balancer of {self.kind}", handle, lambda: self.balancer_of(self.object_of(self.get(handle)))
            )
            or handle
        )

    def turn(self, balancer: str, deletes: bool = False) -> AbstractContextManager[None]:
        """Run the body, which sends one change, if the load balancer accepts changes now.

        Args:
            balancer: Id of the load balancer.
            deletes: The change is the deletion of the load balancer, which is possible even in ERROR.

        Raises:
            Missing: The load balancer does not exist.
            Transient: The load balancer is being changed, or is in ERROR.
        """
        balancers = cast(LoadBalancers, self.cloud.collections["load_balancer"])
        return balancers.turns.turn(balancer, lambda: balancers.is_busy(balancer, deletes))

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        with self.turn(self.balancer_of(spec)):
            return super().create(token, {name: value for name, value in spec.items() if value not in (None, "")})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # The repair of an object in ERROR passes all its fields.
        mutable = [name for name in changed if name in fields_of(self.kind).mutable]
        if not mutable:
            return self.get(handle)
        with self.turn(self.balancer(handle)):
            return super().update(handle, spec, mutable)

    def delete(self, handle: str) -> Wire | None:
        # In ERROR, Octavia deletes the load balancer itself, but none of its parts.
        with self.turn(self.balancer(handle), self.kind == "load_balancer"):
            super().delete(handle)
        return self.going(handle)

    def going(self, handle: str) -> Wire:
        """Return an object that is being deleted."""
        return {"id": handle, "provisioning_status": "deleting"}


KINDS_LISTED = {"load_balancer": "loadbalancers", "pool": "pools"}
"""Kind of a parent -> field of a part that lists its parents."""


class LoadBalancers(BalancingCollection):
    kind = "load_balancer"
    path, key, keys = "/lbaas/loadbalancers", "loadbalancer", "loadbalancers"
    renamed = {
        "vip_subnet": "vip_subnet_id",
        "vip_network": "vip_network_id",
        "flavor": "flavor_id",
        "tenant_id": "project_id",
    }
    # Octavia takes availability zones by their names.
    links = {"vip_network": "network", "availability_zone": ""}

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self.turns = ThingLocks("load balancer")

    def balancer(self, handle: str) -> str:
        return handle

    def is_busy(self, id: str, deletes: bool) -> bool:
        """Return whether a load balancer is being changed.

        Raises:
            Missing: The load balancer does not exist.
            Transient: The load balancer is in ERROR.
        """
        status = str(self.get(id).get("provisioning_status"))
        if status == "ERROR" and not deletes:
            raise Transient(
                f"load balancer {id} is in ERROR: it takes no change before an administrator fails it over; or delete "
                f"it with all its parts: openstack loadbalancer delete --cascade {id}",
                ERROR_S,
            )
        return status.startswith(PENDING)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        placed = spec.get("vip_subnet") or spec.get("vip_network")
        chosen = spec if placed else {**spec, "vip_subnet": self._only_subnet()}
        return Collection.create(self, token, chosen)

    def _only_subnet(self) -> str:
        network = self.cloud.service("network")
        # External networks, which all projects see, are for floating addresses.
        inside = {"router:external": "false", "fields": "id"}
        networks = {entry["id"] for entry in network.list("/networks", "networks", **inside)}
        visible = network.list("/subnets", "subnets", fields=["id", "network_id"])
        subnets = [subnet for subnet in visible if subnet["network_id"] in networks]
        if len(subnets) != 1:
            raise Terminal(f"choose a subnet for the address: set vip_subnet, since the project sees {len(subnets)}")
        return str(subnets[0]["id"])

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"start": self._fail_over, DELETE_WITH_PARTS: self._delete_with_parts}

    def _delete_with_parts(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Delete a load balancer and all its parts in one request, the only change that Octavia accepts in ERROR.

        Octavia deletes foreign parts, too, so all parts are checked first. The lock excludes changes by this service;
        but a part added by a client between check and deletion is deleted as well.

        Raises:
            Terminal: The load balancer has parts that are not listed.
        """
        listed = {(kind, id.rpartition("/")[2]) for kind, ids in arguments["parts"].items() for id in ids}
        with self.turn(handle, deletes=True):
            others = [f"{kind.replace('_', ' ')} {id}" for kind, id in self._parts(handle) if (kind, id) not in listed]
            if others:
                more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
                raise Terminal(
                    f"load balancer {handle} has parts that are not to be deleted with it: "
                    f"{', '.join(others[:NAMED_MAX])}{more}"
                )
            self.api.request("DELETE", self.path_of(handle), of=handle, params={"cascade": "true"})

    def _parts(self, handle: str) -> Iterator[tuple[str, str]]:
        """Yield kind and id of each part of a load balancer."""
        balancer = self.get(handle)
        for pool in self._below(balancer, "pools"):
            yield "pool", pool["id"]
            yield from (("pool_member", member["id"]) for member in pool.get("members") or ())
            if pool.get("healthmonitor_id"):
                yield "health_monitor", pool["healthmonitor_id"]
        policies = set()
        for listener in self._below(balancer, "listeners"):
            yield "listener", listener["id"]
            policies |= {policy["id"] for policy in listener.get("l7policies") or ()}
        yield from (("l7_policy", id) for id in sorted(policies))
        for policy in self.api.list("/lbaas/l7policies", "l7policies") if policies else ():
            if policy["id"] in policies:
                yield from (("l7_rule", rule["id"]) for rule in policy.get("rules") or ())

    def _below(self, balancer: Wire, keys: str) -> Sequence[Wire]:
        """Return the listeners or the pools of a load balancer.

        Raises:
            Transient: The list lacks parts that the load balancer itself names.
        """
        # An Octavia without filters (allow_filtering) lists the parts of all load balancers.
        reference = {"id": balancer["id"]}
        listed = self.api.list(f"/lbaas/{keys}", keys, loadbalancer_id=balancer["id"])
        parts = [part for part in listed if reference in (part.get("loadbalancers") or [reference])]
        missed = {part["id"] for part in balancer.get(keys) or ()} - {part["id"] for part in parts}
        if missed:
            raise Transient(f"load balancer {balancer['id']} has {keys} that are not listed: {', '.join(missed)}")
        return parts

    def _fail_over(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Restore a load balancer in ERROR, with new machines behind the same address."""
        if self.get(handle).get("provisioning_status") != "ERROR":
            return
        try:
            self.api.request("PUT", f"{self.path_of(handle)}/failover", of=handle)
        except Terminal as error:
            raise Terminal(
                f"load balancer {handle} is in ERROR: an administrator has to fail it over, or it has to be replaced: "
                f"{error}"
            ) from error


class Listeners(BalancingCollection):
    kind = "listener"
    path, key, keys = "/lbaas/listeners", "listener", "listeners"
    renamed = {"loadbalancer": "loadbalancer_id", "default_pool": "default_pool_id", "tenant_id": "project_id"}
    links = {"tenant_id": "project"}
    above = {"loadbalancer": "load_balancer"}


class Pools(BalancingCollection):
    kind = "pool"
    path, key, keys = "/lbaas/pools", "pool", "pools"
    renamed = {"loadbalancer": "loadbalancer_id", "listener": "listener_id"}
    above = {"loadbalancer": "load_balancer", "listener": "listener"}


class HealthMonitors(BalancingCollection):
    kind = "health_monitor"
    path, key, keys = "/lbaas/healthmonitors", "healthmonitor", "healthmonitors"
    renamed = {"pool": "pool_id", "tenant_id": "project_id"}
    links = {"tenant_id": "project"}
    above = {"pool": "pool"}


class L7Policies(BalancingCollection):
    kind = "l7_policy"
    path, key, keys = "/lbaas/l7policies", "l7policy", "l7policies"
    renamed = {"listener": "listener_id", "redirect_pool": "redirect_pool_id"}
    above = {"listener": "listener"}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        # Heat's property takes any number, such as 1.0; Octavia takes integers.
        if body.get("position") is not None:
            body["position"] = int(body["position"])
        return body


COLLECTIONS: tuple[type[Collection], ...] = (
    LoadBalancers,
    Listeners,
    Pools,
    HealthMonitors,
    L7Policies,
)
