"""Load balancing: load balancers and their parts.

A load balancer takes one change at a time, of itself or of any of its parts: meanwhile it is PENDING_UPDATE, and the
service answers 409. So each change takes its turn, and looks at the load balancer before it is sent. Members that are
created together take one turn for all of each pool.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, cast

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InTags
from homeostat.clouds.openstack.turns import ThingLocks
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import Terminal, Transient
from homeostat.model.plan import DELETE_WITH_PARTS

ERROR_S = 30.0
"""Seconds until a load balancer in ERROR is looked at again."""
PENDING = "PENDING_"
NAMED_MAX = 5
"""Most parts that an error names."""


class BalancingCollection(Collection):
    """A collection of the load balancing service whose things are load balancers or parts of them.

    Attributes:
        links: Field of the kind that names another thing -> the kind of that thing.
        above: Fields that lead to the load balancer, the first that is set counts -> the kind of what they name.
    """

    service = "load-balancer"
    token = InTags()
    statuses = {"pending_delete": "deleting"}
    links: ClassVar[Mapping[str, str]] = {}
    above: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.renamed = {"status": "provisioning_status", **cls.renamed}

    def object_of(self, thing: Wire) -> Wire:
        """Return a thing with the fields of its kind."""
        found = super().object_of(thing)
        for field, kind in self.above.items():
            listed = thing.get(KINDS_LISTED.get(kind, "")) or ()
            if listed and not found.get(field):
                found[field] = listed[0]["id"]
        operating = found.get("operating_status")
        if operating:
            found["operating_status"] = operating.lower()
        if found.get("status") == "error":
            found["fault"] = f"provisioning_status ERROR, operating_status {operating}"
        return found

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        """Return the fields that the service takes, with ids for names."""
        known = self.cloud.collections
        named = {
            name: known[self.links[name]].id_of(value) if self.links.get(name) in known else value
            for name, value in spec.items()
        }
        # Only names and descriptions may be empty.
        return {
            name: value if value != "" or name in ("name", "description") else None
            for name, value in super().body_of(named).items()
        }

    # -- turns ---------------------------------------------------------------------------------------------------

    def balancer_of(self, fields: Mapping[str, Any]) -> str:
        """Return the load balancer of a thing with these fields of its kind.

        Raises:
            Missing: What they name does not exist.
            Terminal: They name nothing.
        """
        for name, kind in self.above.items():
            if fields.get(name):
                parent = cast(BalancingCollection, self.cloud.collections[kind])
                return parent.balancer(str(parent.id_of(fields[name])))
        raise Terminal(f"{self.kind}: set {' or '.join(self.above)}")

    def balancer(self, handle: str) -> str:
        """Return the load balancer of an existing thing, which never changes.

        Raises:
            Missing: The thing does not exist.
        """
        return (
            self.cloud.known(
                f"balancer of {self.kind}", handle, lambda: self.balancer_of(self.object_of(self.get(handle)))
            )
            or handle
        )

    def turn(self, balancer: str, deletes: bool = False) -> AbstractContextManager[None]:
        """Let the body send one change, if the load balancer takes changes now.

        Args:
            balancer: Id of the load balancer.
            deletes: The change is the deletion of the load balancer, which may be in ERROR then.

        Raises:
            Missing: There is no such load balancer.
            Transient: It is being changed, or is in ERROR.
        """
        balancers = cast(LoadBalancers, self.cloud.collections["load_balancer"])
        return balancers.turns.turn(balancer, lambda: balancers.is_busy(balancer, deletes))

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        with self.turn(self.balancer_of(spec)):
            return super().create(token, {name: value for name, value in spec.items() if value not in (None, "")})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        # The repair of a thing in ERROR names all its fields.
        mutable = [each for each in changed if each in KINDS[self.kind].mutable]
        if not mutable:
            return self.get(handle)
        with self.turn(self.balancer(handle)):
            return super().update(handle, spec, mutable)

    def delete(self, handle: str) -> Wire | None:
        with self.turn(self.balancer(handle), self.kind == "load_balancer"):
            super().delete(handle)
        return self.going(handle)

    def going(self, handle: str) -> Wire:
        """Return a thing that is being deleted."""
        return {"id": handle, "provisioning_status": "deleting"}


KINDS_LISTED = {"load_balancer": "loadbalancers", "pool": "pools"}
"""Kind -> field of a part that lists what it belongs to."""


class LoadBalancers(BalancingCollection):
    kind = "load_balancer"
    path, key, keys = "/lbaas/loadbalancers", "loadbalancer", "loadbalancers"
    renamed = {
        "vip_subnet": "vip_subnet_id",
        "vip_network": "vip_network_id",
        "flavor": "flavor_id",
        "tenant_id": "project_id",
    }
    links = {
        "vip_subnet": "subnet",
        "vip_network": "network",
        "flavor": "load_balancer_flavor",
        "tenant_id": "project",
    }

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self.turns = ThingLocks("load balancer")

    def balancer(self, handle: str) -> str:
        return handle

    def is_busy(self, id: str, deletes: bool) -> bool:
        """Return whether a load balancer is being changed.

        Raises:
            Missing: It does not exist.
            Transient: It is in ERROR.
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
        # Those of external networks, which all projects see, are for floating addresses.
        inside = {"router:external": "false", "fields": "id"}
        networks = {each["id"] for each in network.list("/networks", "networks", **inside)}
        subnets = network.list("/subnets", "subnets", fields=["id", "network_id"])
        found = [each for each in subnets if each["network_id"] in networks]
        if len(found) != 1:
            raise Terminal(f"choose a subnet for the address: set vip_subnet, since the project sees {len(found)}")
        return str(found[0]["id"])

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {"start": self._fail_over, DELETE_WITH_PARTS: self._delete_with_parts}

    def _delete_with_parts(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Delete a load balancer in one request with all its parts; one in ERROR takes no other.

        Octavia does not ask whose the parts are, so they are looked at first. While this turn lasts the service sends
        no other change; a part that another client adds between look and deletion goes with the rest.

        Raises:
            Terminal: It has parts that are not listed.
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
            yield from (("pool_member", each["id"]) for each in pool.get("members") or ())
            if pool.get("healthmonitor_id"):
                yield "health_monitor", pool["healthmonitor_id"]
        policies = set()
        for listener in self._below(balancer, "listeners"):
            yield "listener", listener["id"]
            policies |= {each["id"] for each in listener.get("l7policies") or ()}
        yield from (("l7_policy", each) for each in sorted(policies))
        for policy in self.api.list("/lbaas/l7policies", "l7policies") if policies else ():
            if policy["id"] in policies:
                yield from (("l7_rule", each["id"]) for each in policy.get("rules") or ())

    def _below(self, balancer: Wire, keys: str) -> Sequence[Wire]:
        """Return the listeners or the pools of a load balancer.

        Raises:
            Transient: The list lacks some that the load balancer names itself.
        """
        # An Octavia that does not filter (allow_filtering) lists those of others, too.
        reference = {"id": balancer["id"]}
        listed = self.api.list(f"/lbaas/{keys}", keys, loadbalancer_id=balancer["id"])
        found = [each for each in listed if reference in (each.get("loadbalancers") or [reference])]
        missed = {each["id"] for each in balancer.get(keys) or ()} - {each["id"] for each in found}
        if missed:
            raise Transient(f"load balancer {balancer['id']} has {keys} that are not listed: {', '.join(missed)}")
        return found

    def _fail_over(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Bring a load balancer in ERROR back, with new machines behind the same address."""
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
    links = {"loadbalancer": "load_balancer", "default_pool": "pool", "tenant_id": "project"}
    above = {"loadbalancer": "load_balancer"}


class Pools(BalancingCollection):
    kind = "pool"
    path, key, keys = "/lbaas/pools", "pool", "pools"
    renamed = {"loadbalancer": "loadbalancer_id", "listener": "listener_id"}
    links = {"loadbalancer": "load_balancer", "listener": "listener"}
    above = {"loadbalancer": "load_balancer", "listener": "listener"}


class HealthMonitors(BalancingCollection):
    kind = "health_monitor"
    path, key, keys = "/lbaas/healthmonitors", "healthmonitor", "healthmonitors"
    renamed = {"pool": "pool_id", "tenant_id": "project_id"}
    links = {"pool": "pool", "tenant_id": "project"}
    above = {"pool": "pool"}


class L7Policies(BalancingCollection):
    kind = "l7_policy"
    path, key, keys = "/lbaas/l7policies", "l7policy", "l7policies"
    renamed = {"listener": "listener_id", "redirect_pool": "redirect_pool_id"}
    links = {"listener": "listener", "redirect_pool": "pool"}
    above = {"listener": "listener"}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
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
