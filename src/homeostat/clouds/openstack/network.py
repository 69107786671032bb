"""Networking: networks, subnets and ports, and the base class of all collections of this service."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import FEW, Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import PREFIX, InDescription, Joined, TokenPlace
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Uncertain

LOG = logging.getLogger(__name__)
IDS_MAX = 40
"""Maximum number of ids in a query, to limit the length of the URL."""
_ID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")


class NetworkCollection(Collection):
    """A collection of the networking service.

    Its objects carry the token at the end of their description, the only text field that a creation can set.

    Attributes:
        extension: API extension with the collection; "" for the core.
        cleared: Field -> its value once a specification drops it; further fields then stay unchanged.
        separate: Fields that need separate requests, see `set_apart`.
        changed_apart: Fields that need separate requests in updates only.
        has_tags: Whether its objects have tags, even if specifications have no field for them.
        agents: Field with the agents that serve an object, path of its agents, path of an agent's objects, key of the
            id.
    """

    service = "network"
    token: ClassVar[TokenPlace] = InDescription()
    extension: ClassVar[str] = ""
    cleared: ClassVar[Mapping[str, Any]] = {"tags": ()}
    separate: ClassVar[tuple[str, ...]] = ("tags",)
    changed_apart: ClassVar[tuple[str, ...]] = ()
    has_tags: ClassVar[bool] = False
    agents: ClassVar[tuple[str, str, str, str] | None] = None

    # -- looking -----------------------------------------------------------------------------------------------------

    def list(self, **filters: Any) -> Iterator[Wire]:
        """Yield all things that match the filters; none if the cloud lacks the extension."""
        try:
            yield from super().list(**filters)
        except Missing:
            if not self._lacks_extension():
                raise

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        if len(handles) > IDS_MAX:
            return self.list()
        return self.list(id=sorted(handles))

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        things = super().find(tokens)
        return {token: self._with_agents(thing) for token, thing in things.items()} if self.agents else things

    def _with_agents(self, thing: Wire) -> Wire:
        """Add the agents, which no list shows, so that a lost second request of a creation shows as drift."""
        assert self.agents is not None
        # Only administrators may read agents; no one else can have chosen any.
        with suppress(HomeostatError):
            return {**thing, self.agents[0]: [*self._agents_of(self.handle_of(thing))]}
        return thing

    def resolve(self, name: str) -> str | None:
        """Return the handle of the object with this name or id; the project's own object if the name is ambiguous."""
        try:
            return super().resolve(name)
        except Rejected:
            own = [*self.list(**{self.names: name, "project_id": self.api.project_id})]
            if len(own) != 1:
                raise
            return self.handle_of(own[0])

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        if fields.get("tags"):
            fields["tags"] = [tag for tag in fields["tags"] if not tag.startswith(PREFIX)]
        return fields

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        return super().body_of(self.with_ids(spec))

    def placed(self, fixed: Mapping[str, Any]) -> Wire:
        """Return an entry of `fixed_ips` with the id of its subnet."""
        subnet = fixed.get("subnet_id")
        return {**fixed, "subnet_id": self.reference("subnet", subnet)} if subnet else {**fixed}

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        own = {name: value for name, value in spec.items() if name not in self.separate}
        try:
            thing = super().create(token, own)
        except Missing as error:
            # 404 for a referenced object and for the path of a missing extension look the same.
            if self._lacks_extension():
                raise Terminal(f"this cloud's networking lacks the extension {self.extension}") from error
            raise
        apart = {name: spec[name] for name in self.separate if spec.get(name)}
        return self.completed(thing, apart) if apart else thing

    def completed(self, thing: Wire, apart: Wire) -> Wire:
        """Set the fields that a creation cannot.

        Raises:
            Uncertain: A request failed. The incomplete object is found by its token later.
        """
        handle = self.handle_of(thing)
        try:
            return self.set_apart(handle, thing, apart)
        except HomeostatError as error:
            raise Uncertain(f"{self.kind} {handle} was made, but not completed: {error}") from error

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        part = {
            name: spec.get(name, self.cleared.get(name)) for name in changed if name in spec or name in self.cleared
        }
        separate = (*self.separate, *self.changed_apart)
        own = {name: value for name, value in part.items() if name not in separate}
        apart = {name: value for name, value in part.items() if name in separate}
        try:
            thing = super().update(handle, own, tuple(own))
            return self.set_apart(handle, thing, apart) if apart else thing
        except Missing as error:
            named = _ID.findall(str(error))
            # The 404 may concern an object that the update refers to.
            if named and not any(id in handle for id in named):
                raise Terminal(str(error)) from error
            raise

    def keep_token(self, handle: str, body: Wire, token: str) -> Wire:
        """Move the token into a tag, which a creation cannot set, to store the user's description unchanged."""
        if "tags" not in self.separate and not self.has_tags:
            return super().keep_token(handle, body, token)
        try:
            self.api.request("PUT", f"{self.path_of(handle)}/tags/{PREFIX}{token}", of=handle)
        except (Missing, Terminal) as error:
            LOG.info("%s %s gets no tag, so the token stays in its description: %s", self.kind, handle, error)
            return super().keep_token(handle, body, token)
        return body

    def set_apart(self, handle: str, thing: Wire, part: Wire) -> Wire:
        """Set fields that need separate requests, and return the object."""
        if "tags" in part:
            own = [tag for tag in thing.get("tags") or () if tag.startswith(PREFIX)]
            tags = {"tags": sorted({*(part["tags"] or ()), *own})}
            thing = {**thing, **self.api.request("PUT", f"{self.path_of(handle)}/tags", tags, of=handle)}
        if self.agents is not None and self.agents[0] in part:
            thing = {**thing, self.agents[0]: self._scheduled(handle, part[self.agents[0]] or ())}
        return thing

    def _agents_of(self, handle: str) -> Sequence[str]:
        assert self.agents is not None
        return tuple(agent["id"] for agent in self.api.get(f"{self.path_of(handle)}/{self.agents[1]}")["agents"])

    def _scheduled(self, handle: str, wanted: Sequence[str]) -> Sequence[str]:
        assert self.agents is not None
        _, _, path, key = self.agents
        present = self._agents_of(handle)
        # Removals first: most objects can be at one agent only.
        for agent in sorted(set(present) - set(wanted)):
            self.api.request("DELETE", f"/agents/{agent}/{path}/{handle}", of=handle)
        for agent in sorted(set(wanted) - set(present)):
            self.api.request("POST", f"/agents/{agent}/{path}", {key: handle}, of=handle)
        return [*wanted]

    def _lacks_extension(self) -> bool:
        if not self.extension:
            return False
        try:
            self.api.get(f"/extensions/{self.extension}")
        except Missing:
            return True
        return False


class Aspect(NetworkCollection):
    """Kinds that Neutron has no object for: each is a view on part of another object. Creating one twice has no effect.

    The handle is `<id of the object>:<identity within it>`.
    """

    token = Joined()
    separate = ()

    def view(self, of: Wire, rest: str) -> Wire | None:
        """Return the view on a part of an object; None if the object lacks this part.

        Args:
            of: The object, as the service shows it.
            rest: The handle without the id of `of`.
        """
        raise NotImplementedError

    def get(self, handle: str) -> Wire:
        id, _, rest = handle.partition(":")
        of = self._thing(self.api.get(self.path_of(id)))
        part = self.view(of, rest)
        if part is None:
            raise Missing(f"{id} has no {self.kind} {rest}")
        return {**part, "id": handle}

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        wanted = {handle: handle.partition(":") for handle in handles}
        if len(wanted) <= FEW:
            return self._read(set(wanted))
        owners = {thing["id"]: thing for thing in self.candidates({id for id, _, _ in wanted.values()})}
        views = {handle: self.view(owners[id], rest) for handle, (id, _, rest) in wanted.items() if id in owners}
        parts = {handle: {**view, "id": handle} for handle, view in views.items() if view is not None}
        return parts | self._read(wanted.keys() - parts.keys())


class Networks(NetworkCollection):
    kind = "network"
    path, key, keys = "/networks", "network", "networks"
    cleared = {"tags": (), "qos_policy_id": None, "dns_domain": "", "port_security_enabled": True, "dhcp_agent_ids": ()}
    separate = ("tags", "dhcp_agent_ids")
    agents = ("dhcp_agent_ids", "dhcp-agents", "dhcp-networks", "network_id")

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        # A text in Heat's templates, and a number in Neutron.
        number = fields.get("provider:segmentation_id")
        return {**fields, "provider:segmentation_id": str(number)} if number is not None else fields


class Subnets(NetworkCollection):
    kind = "subnet"
    path, key, keys = "/subnets", "subnet", "subnets"
    cleared = {"tags": (), "host_routes": [], "dns_nameservers": []}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change a subnet; a dropped gateway or dropped pools return to the defaults of a new subnet.

        Default pools are all addresses except the gateway's, so unspecified pools follow a change of the gateway.
        """
        moved = {"gateway_ip", "allocation_pools"}.intersection(changed)
        if moved and ("allocation_pools" not in spec or moved - spec.keys()):
            spec, changed = self._with_defaults(handle, spec, changed)
        return super().update(handle, spec, changed)

    def _with_defaults(
        self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        thing = self.get(handle)
        completed = dict(spec)
        if "gateway_ip" in changed:
            completed.setdefault("gateway_ip", gateway_of(thing["cidr"]))
        gateway = completed.get("gateway_ip", thing["gateway_ip"])
        completed.setdefault("allocation_pools", pools_of(thing["cidr"], gateway))
        return completed, tuple({*changed, "allocation_pools"})


def gateway_of(cidr: str) -> str:
    """Return the gateway that Networking chooses for a range: its first address."""
    network = ip_network(cidr)
    return str(network[1] if network.num_addresses > 1 else network[0])


def pools_of(cidr: str, gateway: str | None) -> list[dict[str, str]]:
    """Return the default allocation pools of Networking: all addresses but the gateway's."""
    network = ip_network(cidr)
    first, last = int(network.network_address), int(network.broadcast_address)
    if first != last:
        first, last = first + 1, last - (network.version == 4)
    kind = type(network.network_address)
    without = int(ip_address(gateway)) if gateway else None
    if without is None or not first <= without <= last:
        parts = [(first, last)]
    else:
        parts = [(first, without - 1), (without + 1, last)]
    return [{"start": str(kind(low)), "end": str(kind(high))} for low, high in parts if low <= high]


class Ports(NetworkCollection):
    kind = "port"
    path, key, keys = "/ports", "port", "ports"
    cleared = {
        "tags": (),
        "allowed_address_pairs": [],
        "qos_policy_id": None,
        "dns_name": "",
        "security_groups": ["default"],
    }

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = super().body_of(spec)
        if body.get("fixed_ips"):
            body["fixed_ips"] = [self.placed(fixed) for fixed in body["fixed_ips"]]
        if body.get("security_groups"):
            body["security_groups"] = [self.reference("security_group", group) for group in body["security_groups"]]
        return body

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        """Create a port; its default network is the network of its first subnet."""
        if not spec.get("network_id"):
            spec = {**spec, "network_id": self._network_of(spec)}
        return super().create(token, spec)

    def _network_of(self, spec: Mapping[str, Any]) -> str:
        for fixed in spec.get("fixed_ips") or ():
            if fixed.get("subnet_id"):
                subnets = self.cloud.collections["subnet"]
                return str(subnets.get(subnets.id_of(fixed["subnet_id"]))["network_id"])
        raise Terminal("a port needs a network, or a subnet in fixed_ips")
