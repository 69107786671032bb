"""Shared file systems: shares, share networks, security services and share types."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from cachetools import TTLCache

from homeostat.clouds.openstack.collection import CloudOfCollections, Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import KEY, InMetadata, InText
from homeostat.model.errors import HomeostatError, Transient

LOCATIONS = "export_locations"
PUBLIC = "share_type_access:is_public"
RULES_CHANGED = "homeostat_rules_changed"
"""Metadata entry with the time when this service last changed a share's rules: other processes then read them anew."""
APART_MAX, APART_S = 10_000, 600.0
"""Seconds for which the rules and export locations of a share are cached: no list has them."""
LEAVING = ("queued_to_deny", "denying", "deleted")


class FileSystemCollection(Collection):
    service = "shared-file-system"
    cleared: ClassVar[Mapping[str, Any]] = {"description": ""}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        """Return the fields with a value; only a description may be "", which deletes it."""
        fields = super().body_of(spec).items()
        return {name: value for name, value in fields if value is not None and (value != "" or name == "description")}


class InShareMetadata(InMetadata):
    """The token of a share, next to the time of its last change of rules."""

    def hide(self, thing: Wire) -> Wire:
        metadata = {name: value for name, value in (thing.get("metadata") or {}).items() if name != RULES_CHANGED}
        return super().hide({**thing, "metadata": metadata})


class Shares(FileSystemCollection):
    """Shares. Access rules can be set only once the share is available, so an update adds them after the creation."""

    kind = "share"
    path, key, keys, detail = "/shares", "share", "shares", "/detail"
    further_looks = "two for each that has changed"
    token = InShareMetadata()
    statuses: ClassVar[Mapping[str, str]] = {
        "deferred_deleting": "deleting",
        "error_deferred_deleting": "error_deleting",
        "migrating_to": "migrating",
        "server_migrating": "migrating",
        "server_migrating_to": "migrating",
        "network_change": "migrating",
        "restoring": "reverting",
    }

    def __init__(self, cloud: CloudOfCollections) -> None:
        super().__init__(cloud)
        self._apart: TTLCache[tuple[str, str], Wire] = TTLCache(APART_MAX, APART_S)
        self._lock = threading.Lock()

    # -- looking -----------------------------------------------------------------------------------------------------

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the rules and export locations of shares, and the reasons of failures."""
        names = [name for name, thing in things.items() if not self._known(thing)]
        apart = self.cloud.side_by_side(lambda name: self._look(things[name]), names) if names else []
        looked = dict(zip(names, apart, strict=True))
        return {name: {**thing, **(looked.get(name) or self._known(thing) or {})} for name, thing in things.items()}

    def _known(self, thing: Wire) -> Wire | None:
        with self._lock:
            return self._apart.get(_state(thing))

    def _look(self, thing: Wire) -> Wire:
        handle = self.handle_of(thing)
        try:
            if thing["status"] == "available":
                paths = [
                    location["path"] for location in self.api.get(f"{self.path_of(handle)}/export_locations")[LOCATIONS]
                ]
                apart = {LOCATIONS: paths, "access_rules": self._rules(handle)}
                with self._lock:
                    self._apart[_state(thing)] = apart
                return apart
            return {"fault": self._fault(handle)} if thing["status"].startswith("error") else {}
        except HomeostatError:
            # The share may be deleted meanwhile. Missing fields do not count as drift.
            return {}

    def _rules(self, handle: str) -> list[Wire]:
        rules = self.api.get("/share-access-rules", share_id=handle)["access_list"]
        return [rule for rule in rules if rule["state"] not in LEAVING]

    def _fault(self, handle: str) -> str:
        """Return the service's last message to the user about a share."""
        messages = self.api.get("/messages", resource_id=handle)["messages"]
        newest: Wire = max(messages, key=lambda message: str(message["created_at"]), default={})
        return str(newest.get("user_message") or "the service does not say why")

    # -- acting ------------------------------------------------------------------------------------------------------

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        fields = {name: value for name, value in spec.items() if name not in ("access_rules", "metadata")}
        return super().body_of({**self.with_ids(fields), "metadata": _texts(spec.get("metadata"))})

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        fields = {"name": "display_name", "description": "display_description", "is_public": "is_public"}
        empty = {"is_public": False}
        body = {fields[name]: spec.get(name) or empty.get(name, "") for name in changed if name in fields}
        if body:
            self.api.request("PUT", self.path_of(handle), self._wrapped(body), of=handle)
        if "metadata" in changed:
            present = self.get(handle)["metadata"]
            own = {name: present[name] for name in (KEY, RULES_CHANGED) if name in present}
            self._label("PUT", handle, {**_texts(spec.get("metadata")), **own})
        if "access_rules" in changed:
            self._let(handle, spec.get("access_rules") or ())
        return self.get(handle)

    def _label(self, method: str, handle: str, metadata: Mapping[str, str]) -> None:
        self.api.request(method, f"{self.path_of(handle)}/metadata", {"metadata": metadata}, of=handle)

    def _let(self, handle: str, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Set the access rules of a share.

        Raises:
            Transient: A rule with another access level is still being removed.
        """
        present = {_rule(rule): rule["id"] for rule in self._rules(handle)}
        rules = {_rule(rule): rule for rule in wanted}
        if present.keys() == rules.keys():
            return
        for surplus in sorted(present.keys() - rules.keys()):
            self._act(handle, "deny_access", {"access_id": present[surplus]})
        for new in sorted(rules.keys() - present.keys()):
            named = {name: value for name, value in rules[new].items() if value}
            self._act(handle, "allow_access", named)
        self._label("POST", handle, {RULES_CHANGED: str(time.time())})

    def _act(self, handle: str, action: str, arguments: Wire) -> None:
        self.api.request("POST", f"{self.path_of(handle)}/action", {action: arguments}, of=handle)

    def delete(self, handle: str) -> Wire | None:
        try:
            super().delete(handle)
        except Transient:
            if "deleting" not in self.get(handle)["status"]:
                raise
        return {"id": handle, "status": "deleting"}


class ShareNetworks(FileSystemCollection):
    kind = "share_network"
    path, key, keys, detail = "/share-networks", "share_network", "share_networks", "/detail"
    token = InText("description")

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the security services of networks: a single list of the services names their networks."""
        if not things:
            return things
        services = list(self.cloud.collections["share_security_service"].list())
        return {name: {**thing, "security_services": _used_on(thing, services)} for name, thing in things.items()}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        apart = ("security_services", "nova_network")
        return super().body_of(self.with_ids({name: value for name, value in spec.items() if name not in apart}))

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        thing, services = super().create(token, spec), spec.get("security_services")
        return self.finish_creation(thing, lambda: self._secure(thing["id"], services)) if services else thing

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if "security_services" in changed:
            self._secure(handle, spec.get("security_services") or ())
        return super().update(handle, spec, [name for name in changed if name != "security_services"])

    def _secure(self, handle: str, names: Sequence[str]) -> None:
        services = self.cloud.collections["share_security_service"]
        wanted = {services.id_of(name) for name in names}
        present = set(_used_on({"id": handle}, list(services.list())))
        for action, ids in (("remove", present - wanted), ("add", wanted - present)):
            for service in sorted(ids):
                body = {f"{action}_security_service": {"security_service_id": service}}
                self.api.request("POST", f"{self.path_of(handle)}/action", body, of=handle)


class SecurityServices(FileSystemCollection):
    kind = "share_security_service"
    path, key, keys, detail = "/security-services", "security_service", "security_services", "/detail"
    token = InText("description")

    def object_of(self, thing: Wire) -> Wire:
        """Return the fields of the kind, without the password, which the service shows."""
        hidden = ("password", "status")
        return {name: value for name, value in super().object_of(thing).items() if name not in hidden}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        cleared = {name: None for name in changed if spec.get(name) in (None, "") and name != "description"}
        if cleared:
            self.api.request("PUT", self.path_of(handle), self._wrapped(cleared), of=handle)
        return super().update(handle, spec, [name for name in changed if name not in cleared])


class ShareTypes(FileSystemCollection):
    """Share types, for operators. Two of their extra specs are fields of the kind."""

    kind = "share_type"
    path, key, keys = "/types", "share_type", "share_types"
    token = InText("description")
    filtered_by_name = False
    promised: ClassVar[tuple[str, ...]] = ("driver_handles_share_servers", "snapshot_support")

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Without this filter administrators see public types only; Manila ignores it for other users.
        return super().list(is_public="all", **filters)

    def object_of(self, thing: Wire) -> Wire:
        specs = dict(thing.get("extra_specs") or {})
        promises = {name: str(specs.pop(name, False)).lower() == "true" for name in self.promised}
        return {**super().object_of(thing), **promises, "extra_specs": specs, "is_public": thing.get(PUBLIC)}

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        promises = {name: str(spec[name]) for name in self.promised if name in spec}
        body = super().body_of({"name": spec.get("name"), PUBLIC: spec.get("is_public", True)})
        return {**body, "extra_specs": {**_texts(spec.get("extra_specs")), **promises}}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        if "extra_specs" in changed:
            wanted, path = _texts(spec.get("extra_specs")), f"{self.path_of(handle)}/extra_specs"
            present = self.object_of(self.get(handle))["extra_specs"]
            new = {name: value for name, value in wanted.items() if present.get(name) != value}
            if new:
                self.api.request("POST", path, {"extra_specs": new}, of=handle)
            for name in sorted(present.keys() - wanted.keys()):
                self.api.request("DELETE", f"{path}/{quote(name, safe='')}", of=handle)
        return self.get(handle)


def _state(share: Wire) -> tuple[str, str]:
    """Return the cache key of a share's rules, which changes whenever this service changes the rules."""
    return str(share["id"]), str((share.get("metadata") or {}).get(RULES_CHANGED, ""))


def _rule(rule: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(rule["access_type"]), str(rule["access_to"]), str(rule.get("access_level") or "rw")


def _used_on(network: Wire, services: Sequence[Wire]) -> list[str]:
    """Return the ids of the security services of a network."""
    return sorted(str(service["id"]) for service in services if network["id"] in service.get("share_networks", ()))


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (values or {}).items()}


COLLECTIONS: tuple[type[Collection], ...] = (Shares, ShareNetworks, SecurityServices, ShareTypes)
