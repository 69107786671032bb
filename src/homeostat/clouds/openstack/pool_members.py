"""Objects of load balancing nested in a parent: the members of pools, and the rules of layer 7 policies."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, cast

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.child_list_cache import ChildListCache
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.load_balancing import BalancingCollection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.port import Creation
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain


class NestedCollection(BalancingCollection):
    """The objects of all parents, each nested in its parent. Their handle is `<parent>/<id>`.

    Each parent lists the ids of its children; the children themselves are listed per parent. Any change of a child
    changes `updated_at` of its parent, so the children of an unchanged parent are cached.

    Attributes:
        parent: Field that refers to the parent.
    """

    parent: ClassVar[str]
    further_looks = "one for each parent that has changed, and for each parent every ten minutes"

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self._quiet = ChildListCache(self.of)

    @property
    def parents(self) -> Collection:
        """The collection of the parents."""
        return self.cloud.collections[self.above[self.parent]]

    def list(self, **filters: Any) -> Iterator[Wire]:
        parents = [parent["id"] for parent in self.parents.list() if parent.get(self.keys)]
        for things in self.cloud.side_by_side(lambda id: self.of(id, **filters), parents) if parents else ():
            yield from things

    def of(self, parent: str, **filters: Any) -> Sequence[Wire]:
        """Return the children of a parent; none if the parent does not exist."""
        try:
            return [
                {**thing, "parent": parent} for thing in self.api.list(self.path_under(parent), self.keys, **filters)
            ]
        except Missing:
            return []

    def path_under(self, parent: str) -> str:
        """Return the path of the children of a parent."""
        return f"{self.parents.path}/{parent}/{self.keys}"

    def path_of(self, handle: str) -> str:
        parent, id = self._split(handle)
        return f"{self.path_under(parent)}/{id}"

    def _split(self, handle: str) -> tuple[str, str]:
        """Return parent and id; for an id alone, as known to other services, the parent is searched.

        Raises:
            Missing: No parent has such a child.
        """
        parent, slash, id = handle.rpartition("/")
        if slash:
            return parent, id
        for parent_entry in self.parents.list():
            if any(part["id"] == handle for part in parent_entry.get(self.keys) or ()):
                return str(parent_entry["id"]), handle
        raise Missing(f"no {self.parents.kind} has {handle}")

    def get(self, handle: str) -> Wire:
        parent, id = self._split(handle)
        return {**super().get(f"{parent}/{id}"), "parent": parent}

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> object, for the existing ones.

        A single object is read individually. Several cost the list of parents, and one request per changed parent.
        """
        by_parent: dict[str, set[str]] = defaultdict(set)
        for handle in handles:
            by_parent[handle.rpartition("/")[0]].add(handle)
        alone = by_parent.pop("", set()) if len(set(handles)) > 1 else set(handles)
        if alone == set(handles):
            return self._read(alone)
        entries = {str(entry["id"]): entry for entry in self.parents.list() if entry["id"] in by_parent}
        looks = self.cloud.side_by_side(lambda entry: self._quiet.of(str(entry["id"]), entry), list(entries.values()))
        listed = {self.handle_of(thing): thing for look in looks for thing in look}
        things = {handle: listed[handle] for handle in handles if handle in listed}
        # Only a 404 for the object itself proves its absence.
        return things | self._read(set(handles) - things.keys())

    def handle_of(self, thing: Wire) -> str:
        return f"{thing['parent']}/{thing['id']}"

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        parent = fields.pop("parent")
        return {**fields, self.parent: parent}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return super().body_of({name: value for name, value in spec.items() if name != self.parent})

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        parent = str(self.parents.id_of(spec.get(self.parent)))
        body = self.token.write(self.body_of(spec), token)
        with self.turn(self.balancer_of(spec)):
            answer = self.api.request("POST", self.path_under(parent), self._wrapped(body), of=token)
        return {**self._thing(answer), "parent": parent}

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
    above = {"pool": "pool"}
    parent = "pool"

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        server = body.pop("server", None)
        return {**body, "address": self._address_of(server, body.get("subnet_id"))} if server else body

    def _address_of(self, server: str, subnet: str | None) -> str:
        """Return the first address of a server, on the given subnet if any.

        Raises:
            Missing: The server or the subnet does not exist.
            Terminal: The server has no such address.
        """
        networks = self.cloud.service("compute").get(f"/servers/{server}")["server"].get("addresses") or {}
        listed = [str(entry["addr"]) for addresses in networks.values() for entry in addresses]
        where = ""
        if subnet:
            network = ip_network(self.cloud.service("network").get(f"/subnets/{subnet}")["subnet"]["cidr"])
            listed = [address for address in listed if ip_address(address) in network]
            where = f" on the subnet {subnet}"
        if not listed:
            raise Terminal(f"server {server} has no address{where} that a pool could lead to")
        return listed[0]

    def create_many(self, intents: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Create the members of each pool with a single change of its load balancer."""
        by_pool: dict[str, list[Creation]] = defaultdict(list)
        for intent in intents:
            by_pool[str(intent.spec.get("pool"))].append(intent)
        several = [group for group in by_pool.values() if len(group) > 1]
        answers = self.cloud.side_by_side(self._make, several) if several else ()
        return {token: answer for group in answers for token, answer in group.items()}

    def _make(self, group: Sequence[Creation]) -> Mapping[str, Wire | HomeostatError]:
        """Create the members of a pool; members missing in the answer have to be created individually."""
        try:
            pool = str(self.parents.id_of(group[0].spec["pool"]))
            bodies = {intent.token: self.token.write(self.body_of(intent.spec), intent.token) for intent in group}
            with self.turn(self.parents_balancer(pool)):
                return self._add(pool, bodies)
        except (Transient, Uncertain) as error:
            return {intent.token: error for intent in group}
        except HomeostatError:
            # Octavia refused the batch because of some member: single requests show which.
            return {}

    def parents_balancer(self, pool: str) -> str:
        """Return the load balancer of a pool."""
        return cast(BalancingCollection, self.parents).balancer(pool)

    def _add(self, pool: str, bodies: Mapping[str, Wire]) -> Mapping[str, Wire | HomeostatError]:
        # Even an additive request would change an existing member with the same address, so these are left out.
        taken = {(member["address"], member["protocol_port"]) for member in self.of(pool)}
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
            members = {self.token.read(member): member for member in self.of(pool)}
        except Transient as error:
            members, missed = {}, str(error)
        else:
            missed = f"pool {pool} does not list it"
        return {token: members.get(token) or Uncertain(missed) for token in fresh.values()}


class L7Rules(NestedCollection):
    kind = "l7_rule"
    path, key, keys = "", "rule", "rules"
    above = {"l7policy": "l7_policy"}
    parent = "l7policy"


COLLECTIONS: tuple[type[Collection], ...] = (PoolMembers, L7Rules)
