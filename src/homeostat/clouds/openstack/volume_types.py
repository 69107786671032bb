"""Volume types, for operators: with their encryption and quality of service."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import InText, Joined
from homeostat.model.errors import Terminal

PUBLIC = "os-volume-type-access:is_public"


class VolumeTypes(Collection):
    kind = "volume_type"
    service = "block-storage"
    path, key, keys = "/types", "volume_type", "volume_types"
    further_looks = "one for each that is not public"
    token = InText("description")
    # Only administrators may filter by name.
    filtered_by_name = False
    renamed = {"metadata": "extra_specs"}

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Without this filter administrators see public types only; Cinder ignores it for other users.
        return super().list(is_public="None", **filters)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        wanted = {name: value for name, value in spec.items() if name not in ("projects", "is_public")}
        if wanted.get("metadata"):
            wanted["metadata"] = {name: str(value) for name, value in wanted["metadata"].items()}
        thing = super().create(token, {**wanted, PUBLIC: spec.get("is_public", True)})
        if not spec.get("projects"):
            return thing
        return self.finish_creation(thing, lambda: self._let(thing, spec["projects"]))

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = super().update(handle, spec, [name for name in changed if name not in ("metadata", "projects")])
        if "metadata" in changed:
            self._specify(thing, spec.get("metadata") or {})
        if "projects" in changed:
            self._let(thing, spec.get("projects") or ())
        return self.get(handle)

    def _specify(self, thing: Wire, metadata: Mapping[str, Any]) -> None:
        path, handle, present = f"{self.path_of(thing['id'])}/extra_specs", thing["id"], thing.get("extra_specs") or {}
        new = {name: str(value) for name, value in metadata.items() if present.get(name) != str(value)}
        if new:
            self.api.request("POST", path, {"extra_specs": new}, of=handle)
        for name in present.keys() - metadata.keys():
            self.api.request("DELETE", f"{path}/{quote(name, safe='')}", of=handle)

    def _let(self, thing: Wire, names: Sequence[str]) -> None:
        """Restrict a type to exactly these projects."""
        wanted, before = {self.reference("project", name) for name in names}, set(self._projects(thing))
        for verb, projects in (("addProjectAccess", wanted - before), ("removeProjectAccess", before - wanted)):
            for project in sorted(projects):
                path = f"{self.path_of(thing['id'])}/action"
                self.api.request("POST", path, {verb: {"project": project}}, of=thing["id"])

    def _projects(self, thing: Wire) -> Sequence[str]:
        """Return the projects that may use a private type; none for a public type, which has no such list."""
        if thing["is_public"]:
            return []
        answer = self.api.get(f"{self.path_of(thing['id'])}/os-volume-type-access")
        return sorted(entry["project_id"] for entry in answer["volume_type_access"])

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        private = [name for name, thing in things.items() if not thing["is_public"]]
        projects = self.cloud.side_by_side(lambda name: self._projects(things[name]), private) if private else []
        return {**things, **{name: {**things[name], "projects": p} for name, p in zip(private, projects, strict=True)}}


class VolumeTypeEncryptions(Collection):
    """Encryptions of volume types, known by the id of the type, which has at most one."""

    kind = "volume_type_encryption"
    service = "block-storage"
    path, key = "/types", "encryption"
    further_looks = "one for each, since there is no list"
    token = Joined()

    def path_of(self, handle: str) -> str:
        return f"{super().path_of(handle)}/encryption"

    def get(self, handle: str) -> Wire:
        encryption = self.api.get(self.path_of(handle))
        if not encryption.get("encryption_id"):
            raise Missing(f"the volume type {handle} is not encrypted")
        return {**encryption, "id": handle}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(())

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        body = {name: value for name, value in spec.items() if name != "volume_type"}
        type_id = str(self.reference("volume_type", spec["volume_type"]))
        try:
            self.api.request("POST", self.path_of(type_id), self._wrapped(body), of=token)
        except Terminal as error:
            # A type has one encryption: perhaps that of an earlier request, whose answer was lost.
            if "already exists" not in str(error):
                raise
        return self.get(type_id)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        path = f"{self.path_of(handle)}/{self.get(handle)['encryption_id']}"
        self.api.request("PUT", path, self._wrapped({name: spec.get(name) for name in changed}), of=handle)
        return self.get(handle)

    def delete(self, handle: str) -> None:
        self.api.request("DELETE", f"{self.path_of(handle)}/{self.get(handle)['encryption_id']}", of=handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "volume_type": thing["id"]}


class VolumeQosSpecs(Collection):
    """QoS specifications. The token is in the name, which never changes: storage drivers refuse unknown keys."""

    kind = "volume_qos_specs"
    service = "block-storage"
    path, key, keys = "/qos-specs", "qos_specs", "qos_specs"
    token = InText("name")

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        limits = {name: str(value) for name, value in (spec.get("specs") or {}).items()}
        return {**{name: value for name, value in spec.items() if name != "specs"}, **limits}

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        present, wanted = _specs(self.get(handle)), self.body_of({"specs": spec.get("specs")})
        new = {name: value for name, value in wanted.items() if present.get(name) != value}
        surplus = sorted(present.keys() - wanted.keys() - {"consumer"})
        if new:
            self.api.request("PUT", self.path_of(handle), self._wrapped(new), of=handle)
        if surplus:
            self.api.request("PUT", f"{self.path_of(handle)}/delete_keys", {"keys": surplus}, of=handle)
        return self.get(handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "specs": _specs(thing)}


def _specs(thing: Wire) -> Wire:
    """Return all keys that `specs` may have in a specification of the kind."""
    return {**(thing.get("specs") or {}), "consumer": thing.get("consumer")}


class VolumeQosAssociations(Collection):
    """The types associated with a QoS specification, known by the specification's id."""

    kind = "volume_qos_association"
    service = "block-storage"
    path = "/qos-specs"
    token = Joined()

    def get(self, handle: str) -> Wire:
        types = [entry["id"] for entry in self._joined(handle)]
        if not types:
            raise Missing(f"the QoS specification {handle} is for no volume type")
        return {"id": handle, "volume_types": sorted(types)}

    def _joined(self, handle: str) -> Sequence[Wire]:
        types: Sequence[Wire] = self.api.get(f"{self.path_of(handle)}/associations")["qos_associations"]
        return types

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        by_specs: dict[str, set[str]] = {}
        for volume_type in self.cloud.collections["volume_type"].list():
            by_specs.setdefault(volume_type.get("qos_specs_id") or "", set()).add(volume_type["id"])
        return ({"id": handle, "volume_types": sorted(types)} for handle, types in by_specs.items() if handle)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        handle = str(self.reference("volume_qos_specs", spec["qos_specs"]))
        return self._join(handle, spec["volume_types"], token)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        self.get(handle)
        return self._join(handle, spec["volume_types"], handle)

    def _join(self, handle: str, names: Sequence[str], of: str) -> Wire:
        """Associate the specification with exactly these types. Cinder's requests for this are GET."""
        wanted = {str(self.reference("volume_type", name)) for name in names}
        before = {entry["id"] for entry in self._joined(handle)}
        for verb, types in (("associate", wanted - before), ("disassociate", before - wanted)):
            for type_id in sorted(types):
                self.api.request("GET", f"{self.path_of(handle)}/{verb}", of=of, params={"vol_type_id": type_id})
        return self.get(handle)

    def delete(self, handle: str) -> None:
        self.get(handle)
        self.api.request("GET", f"{self.path_of(handle)}/disassociate_all", of=handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "qos_specs": thing["id"]}
