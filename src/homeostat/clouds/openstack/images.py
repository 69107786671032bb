"""Images downloaded by the cloud."""

from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from time import strptime, time
from typing import Any
from urllib.parse import quote

from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Wire
from homeostat.clouds.openstack.tokens import KEY, AsId
from homeostat.model.errors import HomeostatError, Transient, Uncertain

PATCH = "application/openstack-images-v2.1-json-patch"
BEGINS_S = 60
"""Seconds after its creation within which the download of an image is requested."""
FIELDS = ("name", "min_disk", "min_ram", "disk_format", "container_format", "protected", "visibility", "tags", "owner")
TEXTS = ("architecture", "kernel_id", "os_distro", "os_version", "ramdisk_id")
"""Image properties that are fields of the kind."""
OF_THE_SERVICE = (
    "id",
    "status",
    "size",
    "virtual_size",
    "checksum",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
)
OF_STORES = ("schema", "direct_url", "locations", "stores", "os_hidden", "os_hash_algo", "os_hash_value")
NO_PROPERTY = frozenset({*FIELDS, *TEXTS, *OF_THE_SERVICE, *OF_STORES, KEY, "members", "fault"})
IMPORT_TASK = "os_glance_import_task"


class InProperty(AsId):
    """The token is a property, from which the id is derived unless the user chose one."""

    words = f"the property `{KEY}`, and the id, which is derived from it unless you choose one"

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, KEY: token, "id": body.get("id") or self.id_of(token)}

    def read(self, thing: Wire) -> str:
        return str(thing.get(KEY) or "")

    def hide(self, thing: Wire) -> Wire:
        return {name: value for name, value in thing.items() if name != KEY}


class Images(Collection):
    """Images. A creation takes two requests: for the image, and for the download of its data.

    A crash of the worker may lose the second request: so an image that waits for its data, but is not being imported,
    is reported as failed, like a failed download, and replaced.
    """

    kind = "image"
    service = "image"
    path, keys = "/images", "images"
    further_looks = "one for each that is shared with projects"
    token = InProperty()

    # -- looking -----------------------------------------------------------------------------------------------------

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        things = super().find(tokens)
        left = [token for token in tokens if token not in things]

        # An image with a chosen id is only found by the property with its token.
        def look(token: str) -> Sequence[Wire]:
            return list(self.list(**{KEY: token}))

        looks = zip(left, self.cloud.side_by_side(look, left), strict=True) if left else ()
        return things | {token: images[0] for token, images in looks if images}

    def complete(self, things: Mapping[str, Wire]) -> Mapping[str, Wire]:
        """Add the projects that images are shared with, and the reasons of failures."""
        names = [name for name, thing in things.items() if thing["visibility"] == "shared" or _is_stuck(thing)]
        whole = self.cloud.side_by_side(lambda name: self._whole(things[name]), names) if names else []
        return {**things, **dict(zip(names, whole, strict=True))}

    def _whole(self, thing: Wire) -> Wire:
        if _is_stuck(thing):
            return {**thing, "status": "error", "fault": self._fault_of(thing)}
        try:
            return {**thing, "members": sorted(self._members(thing["id"]))}
        except HomeostatError:
            # Another project shares this image with ours: only its owner sees the members.
            return thing

    def _members(self, handle: str) -> Sequence[str]:
        return [member["member_id"] for member in self.api.get(f"{self.path_of(handle)}/members")["members"]]

    def _fault_of(self, thing: Wire) -> str:
        """Return the message of the last import."""
        tasks = self.api.get(f"{self.path_of(thing['id'])}/tasks").get("tasks") or ()
        newest: Wire = max(tasks, key=lambda task: str(task["created_at"]), default={})
        return str(newest.get("message") or "") or ("its import failed" if tasks else "its import was never begun")

    def object_of(self, thing: Wire) -> Wire:
        fields = super().object_of(thing)
        extra = {name: value for name, value in self.token.hide(thing).items() if not _is_of_the_service(name)}
        active = {"active": True, "deactivated": False}.get(fields["status"])
        return {**fields, "extra_properties": extra, "active": active}

    # -- acting ------------------------------------------------------------------------------------------------------

    def body_of(self, spec: Mapping[str, Any]) -> Wire:
        body = {name: spec[name] for name in (*FIELDS, *TEXTS, "id") if spec.get(name) is not None}
        return {**_texts(spec.get("extra_properties")), **body}

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        body = self.token.write(self.body_of(spec), token)
        try:
            image = self.api.request("POST", self.path, body, of=token)
        except HomeostatError:
            # The image may exist, created by an earlier request or by this one, whose answer was lost.
            before = self._made_before(body["id"], token)
            if before is None:
                raise
            image = before
        # An earlier attempt may have ended between the two requests.
        if image["status"] == "queued" and IMPORT_TASK not in image:
            self._import(image, str(spec.get("location") or ""), token)
        if not spec.get("members"):
            return image
        return self.finish_creation(image, lambda: self._share(image["id"], spec["members"]))

    def _made_before(self, handle: str, token: str) -> Wire | None:
        """Return the image with this id if it carries the token; None otherwise."""
        try:
            image = self.get(handle)
        except HomeostatError:
            return None
        return image if self.token.read(image) == token else None

    def _import(self, image: Wire, location: str, token: str) -> None:
        """Request the download of the data; if it is refused, the image is deleted again.

        Raises:
            Terminal: The service does not download from this location.
        """
        body = {"method": {"name": "web-download", "uri": location}}
        try:
            self.api.request("POST", f"{self.path_of(image['id'])}/import", body, of=token)
        except (Transient, Uncertain):
            raise
        except HomeostatError:
            self.api.request("DELETE", self.path_of(image["id"]), of=token)
            raise

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        thing = self.get(handle)
        patches = list(_patches(thing, spec, changed))
        if patches:
            headers = {"Content-Type": PATCH}
            self.api.request("PATCH", self.path_of(handle), patches, of=handle, headers=headers)
        if "active" in changed and spec.get("active") is not None:
            verb = "reactivate" if spec["active"] else "deactivate"
            if thing["status"] != {"reactivate": "active", "deactivate": "deactivated"}[verb]:
                self.api.request("POST", f"{self.path_of(handle)}/actions/{verb}", of=handle)
        if "members" in changed:
            self._share(handle, spec.get("members") or ())
        return self.get(handle)

    def _share(self, handle: str, names: Sequence[str]) -> None:
        """Share an image with exactly these projects."""
        wanted, before = {str(self.reference("project", name)) for name in names}, set(self._members(handle))
        path = f"{self.path_of(handle)}/members"
        for project in sorted(wanted - before):
            self.api.request("POST", path, {"member": project}, of=handle)
        for project in sorted(before - wanted):
            self.api.request("DELETE", f"{path}/{quote(project, safe='')}", of=handle)


def _patches(thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> Iterator[Wire]:
    """Yield the JSON Patch operations that turn the changed fields of an image into the specified ones."""
    wanted: Wire = {name: spec.get(name) for name in changed if name in (*FIELDS, *TEXTS)}
    if "extra_properties" in changed:
        present = {name: None for name in thing if not _is_of_the_service(name)}
        wanted = {**wanted, **present, **_texts(spec.get("extra_properties"))}
    for name, value in wanted.items():
        path = "/" + name.replace("~", "~0").replace("/", "~1")
        if value is None and name == "tags":
            yield {"op": "replace", "path": path, "value": []}
        elif value is None and name in thing and name not in FIELDS:
            yield {"op": "remove", "path": path}
        elif value is not None and thing.get(name) != value:
            yield {"op": "replace" if name in thing else "add", "path": path, "value": value}


def _is_stuck(thing: Wire) -> bool:
    """Return whether an image waits for data without a running import."""
    if thing["status"] != "queued" or thing.get(IMPORT_TASK):
        return False
    made_at = timegm(strptime(thing["created_at"], "%Y-%m-%dT%H:%M:%SZ"))
    return bool(thing.get("os_glance_failed_import")) or time() - made_at > BEGINS_S


def _is_of_the_service(name: str) -> bool:
    return name in NO_PROPERTY or name.startswith(("os_glance", "owner_specified."))


def _texts(properties: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in (properties or {}).items()}
