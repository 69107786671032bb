"""Load balancing: load balancers and their parts.

A load balancer takes one change at a time, of itself or of any of its parts: meanwhile it is PENDING_UPDATE, and the
service answers 409. So each change takes its turn, and looks at the load balancer before it is sent. Members that are
created together take one turn for all of each pool.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, cast

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.quiet_parents import QuietParents
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InTags
from homeostat.clouds.openstack.turns import Turns
from homeostat.clouds.port import Creation
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain
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
    renamed = {"vip_subnet": "vip_subnet_id", "flavor": "flavor_id", "tenant_id": "project_id"}
    links = {"vip_subnet": "subnet", "flavor": "load_balancer_flavor", "tenant_id": "project"}

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self.turns = Turns("load balancer")

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
        chosen = spec if spec.get("vip_subnet") else {**spec, "vip_subnet": self._only_subnet()}
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
        mine = {"id": balancer["id"]}
        listed = self.api.list(f"/lbaas/{keys}", keys, loadbalancer_id=balancer["id"])
        found = [each for each in listed if mine in (each.get("loadbalancers") or [mine])]
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


class NestedCollection(BalancingCollection):
    """The things of all parents of a kind, each below its parent. Their handle is `<parent>/<id>`.

    Each parent lists the ids of its things; the things themselves are listed for one parent at a time. Any change of
    them changes `updated_at` of the parent, so those of a quiet parent are remembered.

    Attributes:
        parent: Field that names the parent.
    """

    parent: ClassVar[str]
    further_looks = "one for each that these belong to, where it has changed, and in any case every ten minutes"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.renamed = {**cls.renamed, cls.parent: ""}

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._quiet = QuietParents(self.of)

    @property
    def parents(self) -> Collection:
        """The collection of the parents."""
        return self.cloud.collections[self.above[self.parent]]

    def list(self, **filters: Any) -> Iterator[Wire]:
        full = [each["id"] for each in self.parents.list() if each.get(self.keys)]
        for found in self.cloud.side_by_side(lambda parent: self.of(parent, **filters), full) if full else ():
            yield from found

    def of(self, parent: str, **filters: Any) -> Sequence[Wire]:
        """Return the things of one parent; none if there is no such parent."""
        try:
            return [{**each, "parent": parent} for each in self.api.list(self.path_under(parent), self.keys, **filters)]
        except Missing:
            return []

    def path_under(self, parent: str) -> str:
        """Return the path of the things of one parent."""
        return f"{self.parents.path}/{parent}/{self.keys}"

    def path_of(self, handle: str) -> str:
        parent, id = self._split(handle)
        return f"{self.path_under(parent)}/{id}"

    def _split(self, handle: str) -> tuple[str, str]:
        """Return the parent and the id; of an id alone, as other services know such things, the parent is looked for.

        Raises:
            Missing: No parent has it.
        """
        parent, slash, id = handle.rpartition("/")
        if slash:
            return parent, id
        for each in self.parents.list():
            if any(part["id"] == handle for part in each.get(self.keys) or ()):
                return str(each["id"]), handle
        raise Missing(f"no {self.parents.kind} has {handle}")

    def get(self, handle: str) -> Wire:
        parent, id = self._split(handle)
        return {**super().get(f"{parent}/{id}"), "parent": parent}

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> thing, for those that exist.

        One is asked for by itself. Several cost the list of parents, and one request for each parent that was changed.
        """
        by_parent: dict[str, set[str]] = defaultdict(set)
        for handle in handles:
            by_parent[handle.rpartition("/")[0]].add(handle)
        alone = by_parent.pop("", set()) if len(set(handles)) > 1 else set(handles)
        if alone == set(handles):
            return self._each(alone)
        entries = {str(each["id"]): each for each in self.parents.list() if each["id"] in by_parent}
        looks = self.cloud.side_by_side(lambda entry: self._quiet.of(str(entry["id"]), entry), list(entries.values()))
        listed = {self.handle_of(each): each for look in looks for each in look}
        found = {handle: listed[handle] for handle in handles if handle in listed}
        # Only an answer about the thing shows that it is absent.
        return found | self._each(set(handles) - found.keys())

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['parent']}/{thing['id']}"

    def object_of(self, thing: Wire) -> Wire:
        found = super().object_of(thing)
        parent = found.pop("parent")
        return {**found, self.parent: parent}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return {name: value for name, value in super().body_of(spec).items() if name}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        parent = str(self.parents.id_of(spec.get(self.parent)))
        body = self.token.write(self.body_of(spec), token)
        with self.turn(self.balancer_of(spec)):
            made = self.api.request("POST", self.path_under(parent), self._wrapped(body), of=token)
        return {**self._thing(made), "parent": parent}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        return {**super().update(handle, spec, changed), "parent": self._split(handle)[0]}

    def going(self, handle: str) -> Wire:
        parent, id = self._split(handle)
        return {**super().going(id), "parent": parent}

    def resolve(self, name: str) -> str | None:
        try:
            return self.handle_of(self.get(name))
        except Missing:
            return None


class PoolMembers(NestedCollection):
    kind = "pool_member"
    path, key, keys = "", "member", "members"
    renamed = {"subnet": "subnet_id"}
    links = {"subnet": "subnet"}
    above = {"pool": "pool"}
    parent = "pool"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        server = body.pop("server", None)
        return {**body, "address": self._address_of(server)} if server else body

    def _address_of(self, server: str) -> str:
        """Return the first address of a server.

        Raises:
            Missing: There is no such server.
            Terminal: It has none.
        """
        networks = self.cloud.service("compute").get(f"/servers/{server}")["server"].get("addresses") or {}
        found = next((each["addr"] for addresses in networks.values() for each in addresses), None)
        if found is None:
            raise Terminal(f"server {server} has no address that a pool could lead to")
        return str(found)

    def together(self, intents: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Make the members of each pool with one change of its load balancer."""
        by_pool: dict[str, list[Creation]] = defaultdict(list)
        for intent in intents:
            by_pool[str(intent.spec.get("pool"))].append(intent)
        several = [group for group in by_pool.values() if len(group) > 1]
        answers = self.cloud.side_by_side(self._make, several) if several else ()
        return {token: answer for group in answers for token, answer in group.items()}

    def _make(self, group: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Make the members of one pool; whatever is left out of the answer has to be made by itself."""
        try:
            pool = str(self.parents.id_of(group[0].spec["pool"]))
            bodies = {each.token: self.token.write(self.body_of(each.spec), each.token) for each in group}
            with self.turn(self.parents_balancer(pool)):
                return self._add(pool, bodies)
        except (Transient, Uncertain) as error:
            return {each.token: error for each in group}
        except HomeostatError:
            # One of them is wrong, and by itself it will be seen which.
            return {}

    def parents_balancer(self, pool: str) -> str:
        """Return the load balancer of a pool."""
        return cast(BalancingCollection, self.parents).balancer(pool)

    def _add(self, pool: str, bodies: Mapping[str, Wire]) -> Mapping[str, Wire | HomeostatError]:
        # The request would change a member that has the address already, so such a one is left out.
        taken = {(each["address"], each["protocol_port"]) for each in self.of(pool)}
        fresh: dict[tuple[Any, Any], str] = {}
        for token, body in bodies.items():
            place = (body.get("address"), body.get("protocol_port"))
            if place not in taken:
                fresh.setdefault(place, token)
        if not fresh:
            return {}
        asked = {"members": [bodies[token] for token in fresh.values()]}
        token = next(iter(fresh.values()))
        self.api.request("PUT", self.path_under(pool), asked, of=token, params={"additive_only": "true"})
        try:
            made = {self.token.read(each): each for each in self.of(pool)}
        except Transient as error:
            made, missed = {}, str(error)
        else:
            missed = f"pool {pool} does not list it"
        return {token: made.get(token) or Uncertain(missed) for token in fresh.values()}


class L7Rules(NestedCollection):
    kind = "l7_rule"
    path, key, keys = "", "rule", "rules"
    above = {"l7policy": "l7_policy"}
    parent = "l7policy"


COLLECTIONS: tuple[type[Collection], ...] = (
    LoadBalancers,
    Listeners,
    Pools,
    PoolMembers,
    HealthMonitors,
    L7Policies,
    L7Rules,
)
