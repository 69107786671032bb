"""Types of volumes, for operators: their encryption, and their quality of service."""

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
    further_looks = "one for each that not all projects may use"
    token = InText("description")
    # Only administrators may.
    filtered_by_name = False
    renamed = {"metadata": "extra_specs"}

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Else an administrator sees the public ones only; for others this means nothing.
        return super().list(is_public="None", **filters)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        wanted = {name: value for name, value in spec.items() if name not in ("projects", "is_public")}
        if wanted.get("metadata"):
            wanted["metadata"] = {name: str(value) for name, value in wanted["metadata"].items()}
        made = super().create(token, {**wanted, PUBLIC: spec.get("is_public", True)})
        if not spec.get("projects"):
            return made
        return self.afterwards(made, lambda: self._let(made, spec["projects"]))

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = super().update(handle, spec, [each for each in changed if each not in ("metadata", "projects")])
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
        """Let these projects alone use a type."""
        wanted, before = {self.reference("project", each) for each in names}, set(self._projects(thing))
        for verb, projects in (("addProjectAccess", wanted - before), ("removeProjectAccess", before - wanted)):
            for each in sorted(projects):
                path = f"{self.path_of(thing['id'])}/action"
                self.api.request("POST", path, {verb: {"project": each}}, of=thing["id"])

    def _projects(self, thing: Wire) -> Sequence[str]:
        """Return the projects that may use a type; none of a public one, which all may use."""
        if thing["is_public"]:
            return []
        found = self.api.get(f"{self.path_of(thing['id'])}/os-volume-type-access")
        return sorted(each["project_id"] for each in found["volume_type_access"])

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        private = [name for name, thing in things.items() if not thing["is_public"]]
        found = self.cloud.side_by_side(lambda name: self._projects(things[name]), private) if private else []
        return {**things, **{name: {**things[name], "projects": p} for name, p in zip(private, found, strict=True)}}


class VolumeTypeEncryptions(Collection):
    """Encryption of types of volumes, known by the id of the type, which has one at most."""

    kind = "volume_type_encryption"
    service = "block-storage"
    path, key = "/types", "encryption"
    further_looks = "one for each instead of a list, which there is none of"
    token = Joined()

    def path_of(self, handle: str) -> str:
        return f"{super().path_of(handle)}/encryption"

    def get(self, handle: str) -> Wire:
        found = self.api.get(self.path_of(handle))
        if not found.get("encryption_id"):
            raise Missing(f"the volume type {handle} is not encrypted")
        return {**found, "id": handle}

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        return iter(())

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        body = {name: value for name, value in spec.items() if name != "volume_type"}
        type_id = str(self.reference("volume_type", spec["volume_type"]))
        try:
            self.api.request("POST", self.path_of(type_id), self._wrapped(body), of=token)
        except Terminal as error:
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
    """QoS specifications. The token is in the name, which never changes: storages refuse keys that they do not know."""

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
        gone = sorted(present.keys() - wanted.keys() - {"consumer"})
        if new:
            self.api.request("PUT", self.path_of(handle), self._wrapped(new), of=handle)
        if gone:
            self.api.request("PUT", f"{self.path_of(handle)}/delete_keys", {"keys": gone}, of=handle)
        return self.get(handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "specs": _specs(thing)}


def _specs(thing: Wire) -> Wire:
    """Return all that a specification of the kind may have in `specs`."""
    return {**(thing.get("specs") or {}), "consumer": thing.get("consumer")}


class VolumeQosAssociations(Collection):
    """The types that a QoS specification is for, known by its id."""

    kind = "volume_qos_association"
    service = "block-storage"
    path = "/qos-specs"
    token = Joined()

    def get(self, handle: str) -> Wire:
        found = [each["id"] for each in self._joined(handle)]
        if not found:
            raise Missing(f"the QoS specification {handle} is for no volume type")
        return {"id": handle, "volume_types": sorted(found)}

    def _joined(self, handle: str) -> Sequence[Wire]:
        found: Sequence[Wire] = self.api.get(f"{self.path_of(handle)}/associations")["qos_associations"]
        return found

    def candidates(self, handles: set[str]) -> Iterator[Wire]:
        by_specs: dict[str, set[str]] = {}
        for each in self.cloud.collections["volume_type"].list():
            by_specs.setdefault(each.get("qos_specs_id") or "", set()).add(each["id"])
        return ({"id": handle, "volume_types": sorted(types)} for handle, types in by_specs.items() if handle)

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        handle = str(self.reference("volume_qos_specs", spec["qos_specs"]))
        return self._join(handle, spec["volume_types"], token)

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        self.get(handle)
        return self._join(handle, spec["volume_types"], handle)

    def _join(self, handle: str, names: Sequence[str], of: str) -> Wire:
        """Make the specification one for these types alone. The service changes these with GET."""
        wanted = {str(self.reference("volume_type", each)) for each in names}
        before = {each["id"] for each in self._joined(handle)}
        for verb, types in (("associate", wanted - before), ("disassociate", before - wanted)):
            for each in sorted(types):
                self.api.request("GET", f"{self.path_of(handle)}/{verb}", of=of, params={"vol_type_id": each})
        return self.get(handle)

    def delete(self, handle: str) -> None:
        self.get(handle)
        self.api.request("GET", f"{self.path_of(handle)}/disassociate_all", of=handle)

    def object_of(self, thing: Wire) -> Wire:
        return {**super().object_of(thing), "qos_specs": thing["id"]}
