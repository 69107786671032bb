"""Compute: servers.

A server carries its token as a tag. Some of its ports are made by this service, see `server_ports`.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cachetools import TTLCache

from homeostat.clock import passed
from homeostat.clouds.openstack import late_subnets, server_body
from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import CloudOfCollections, Collection
from homeostat.clouds.openstack.lately import RecentIds
from homeostat.clouds.openstack.server_addresses import with_floating
from homeostat.clouds.openstack.server_fencing import ServerFence
from homeostat.clouds.openstack.server_hosts import HOST, ServerHosts
from homeostat.clouds.openstack.server_looks import ServerLooks
from homeostat.clouds.openstack.server_ports import AGAIN_S, ServerPorts, is_own, was_used
from homeostat.clouds.openstack.server_snapshots import ServerSnapshots
from homeostat.clouds.openstack.service import LATE_S, Wire
from homeostat.clouds.openstack.tokens import InTags
from homeostat.kinds.compute import fences_of
from homeostat.model.errors import HomeostatError, Terminal, Transient, Uncertain

EVACUATE = "2.70"
"""A microversion in which a server that was running is so where it is evacuated to."""
FILES = "2.56"
"""The last microversion in which a server can be made with files in it (`personality`)."""
PORTS_ONLY_PREFIX = "ports-of-"
"""Begin of the handle of a server that is nothing but the ports made for it."""
SNAPSHOTS = "homeostat-snapshots"
"""Tag of servers that have snapshots, so that others need not be asked for."""
RESIZE_S = 2.0
"""Seconds until a resize that goes on is looked at again."""
DELETE_S = 1.0
"""Seconds until a deletion that needs more than one request goes on."""
RESIZES_MAX, RESIZES_S = 10_000, 24 * 3600.0
LATE_MAX = MISSED_MAX = DELETED_MAX = 10_000
MISSED_S = 10.0
"""Seconds for which a server that was missed is expected to be missing in the next look as well."""
RESIZING = ("RESIZE", "REVERT_RESIZE", "MIGRATING")
NO_NETWORK = "Unable to automatically allocate a network"
Things = list[Wire]
ACTIONS: Mapping[str, tuple[str, str]] = {
    "start": ("os-start", "ACTIVE"),
    "stop": ("os-stop", "SHUTOFF"),
    "pause": ("pause", "PAUSED"),
    "unpause": ("unpause", "ACTIVE"),
    "suspend": ("suspend", "SUSPENDED"),
    "resume": ("resume", "ACTIVE"),
}
"""Operation -> Nova's action, and the status in which there is nothing to do."""


class Servers(Collection):
    """The servers of a project."""

    kind = "server"
    service = "compute"
    path, key, keys = "/servers", "server", "servers"
    detail = "/detail"
    token = InTags()

    def __init__(self, cloud: CloudOfCollections) -> None:
        super().__init__(cloud)
        self._ports = ServerPorts(cloud, self.reference)
        self._deleted = RecentIds(DELETED_MAX, AGAIN_S)
        self._looks = ServerLooks(self.list)
        self._hosts = ServerHosts(lambda: self.api.list("/os-services", "services", binary="nova-compute", limit=None))
        self._fence = ServerFence(cloud, super().get, self._act)
        self._resizes: TTLCache[str, str] = TTLCache(RESIZES_MAX, RESIZES_S)
        self._resizing = threading.Lock()
        # Tokens whose servers may still come: their ports are no remains yet.
        self._late = RecentIds(LATE_MAX, LATE_S)
        self._missed = RecentIds(MISSED_MAX, MISSED_S)
        self._changes = cloud.server_changes

    # -- looking -----------------------------------------------------------------------------------------------------

    def list(self, **filters: Any) -> Iterator[Wire]:
        # Nova reads a name as a regular expression.
        named = {"name": f"^{re.escape(filters['name'])}$"} if "name" in filters else {}
        return super().list(**{**filters, **named})

    def get(self, handle: str) -> Wire:
        at = passed()
        found = super().get(handle)
        if found["status"] == "DELETED":
            raise Missing(f"server {handle} is deleted")
        self._looks.learn(found, at)
        return self._completed([found])[0]

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> server, including deleted servers that have ports left."""
        left = {each.removeprefix(PORTS_ONLY_PREFIX) for each in handles if each.startswith(PORTS_ONLY_PREFIX)}
        wanted = {each for each in handles if not each.startswith(PORTS_ONLY_PREFIX)}
        known = self._looks.things(partial(self._changes.ages, wanted)) if len(wanted) > 1 else {}
        found = {each["id"]: each for each in self._completed([known[each] for each in wanted & known.keys()])}
        singles, gone = self._singles(wanted - found.keys())
        found |= singles | {handle: _ports_only(handle, ports) for handle, ports in gone.items()}
        tokens = self._ports.of_tokens(left)
        return found | {
            PORTS_ONLY_PREFIX + token: _ports_only(PORTS_ONLY_PREFIX + token, ports) for token, ports in tokens.items()
        }

    def _singles(self, handles: set[str]) -> tuple[dict[str, Wire], dict[str, Things]]:
        """Return those of these servers that exist, and what ports are left of each of the others.

        Before another server is made in the place of a missing one, it is looked for twice. The second time both are
        asked for side by side, since that is waited for.
        """
        if len(handles) == 1 and self._missed.among(handles):
            looks: Sequence[Callable[[], Any]] = (partial(self._each, handles), partial(self._ports.tagged, handles))
            there, left = self.cloud.side_by_side(lambda look: look(), looks)
            return there, {handle: ports for handle, ports in left.items() if handle not in there}
        there = self._each(handles)
        missing = handles - there.keys()
        self._missed.note(missing)
        return there, self._ports.tagged(missing)

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        """Return token -> server, including deleted servers that have ports left.

        Ports of an interrupted creation, which no server ever got, are deleted: the next attempt makes new ones.

        Raises:
            Transient: A port does not have the tag of its server yet.
        """
        # Side by side, for the same reason as in `_singles`.
        settled = set(tokens) - self._late.among(tokens)
        looks: Sequence[Callable[[], Any]] = (partial(super().find, tokens), partial(self._ports.of_tokens, tokens))
        listed, all_ports = self.cloud.side_by_side(lambda look: look(), looks)
        found = {token: each for token, each in listed.items() if each["status"] != "DELETED"}
        for token, each in found.items():
            self._ports.mark(all_ports.get(token, ()), str(each["id"]))
        ports_of = {token: ports for token, ports in all_ports.items() if token in settled}
        completed = dict(zip(found, self._completed([*found.values()]), strict=True))
        left = {token: ports for token, ports in ports_of.items() if token not in found}
        unused = {token: ports for token, ports in left.items() if not any(map(was_used, ports))}
        for token, ports in unused.items():
            self._ports.release(ports, token)
        used = {
            token: _ports_only(PORTS_ONLY_PREFIX + token, ports) for token, ports in left.items() if token not in unused
        }
        return completed | used

    def _completed(self, things: Sequence[Wire]) -> Things:
        """Return servers with what is known of them elsewhere: their ports, snapshots and hosts."""
        things = self._with_floating(self._ports.shown_on(things, self._owner))
        marked = {str(each["id"]) for each in things if SNAPSHOTS in each.get("tags", ())}
        snapshots = self._images.of_servers(marked) if marked else {}
        return [
            {**each, "_snapshots": snapshots.get(str(each["id"])), "_silence": self._hosts.silence_of(each)}
            for each in things
        ]

    def _with_floating(self, things: Things) -> Things:
        """Return servers with the floating addresses that they have, where these were changed lately."""
        lately = self._changes.readdressed([str(each["id"]) for each in things])
        ports = [port["id"] for each in things if each["id"] in lately for port in each.get("_ports", {}).values()]
        if not ports:
            return things
        floating = self._ports.leading_to(ports)
        return [with_floating(each, floating) if each["id"] in lately else each for each in things]

    @property
    def _images(self) -> ServerSnapshots:
        found = self.cloud.collections[ServerSnapshots.kind]
        assert isinstance(found, ServerSnapshots)
        return found

    def _owner(self, thing: Wire) -> str:
        """Return what the ports made for a server carry as their token."""
        return self.token.read(thing) or str(thing["id"])

    def object_of(self, thing: Wire) -> Wire:
        return server_body.object_of(thing)

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        own = any(map(is_own, spec.get("networks") or ()))
        try:
            made = self._made(token, spec)
        except Uncertain:
            self._late.note([token])
            raise
        except HomeostatError as error:
            if own:
                self._ports.give_up(token, error)
            raise late_subnets.meant(error, self._ports.api) from error
        if own:
            try:
                self._ports.mark(self._ports.of_tokens([token]).get(token, ()), made)
            except HomeostatError as error:
                raise Uncertain(f"server {made} is made, and its ports have no tag yet: {error}") from error
        return {"id": made, "status": "BUILD", "name": spec.get("name")}

    def _made(self, token: str, spec: Mapping[str, Any]) -> str:
        """Have Nova make a server, and return its id."""
        body = server_body.body_of(spec, self.reference, None)
        body["server"] = self.token.write(body["server"], token)
        body["server"]["networks"] = self._ports.for_creation(token, spec)
        older: dict[str, Any] = {"microversion": FILES} if spec.get("personality") else {}

        def post() -> str:
            return str(self.api.request("POST", self.path, body, of=token, **older)["server"]["id"])

        try:
            return post()
        except Terminal as error:
            # Without `networks` the user accepts a server without a network.
            if spec.get("networks") or NO_NETWORK not in str(error):
                raise
        body["server"]["networks"] = "none"
        return post()

    def delete(self, handle: str) -> Wire | None:
        """Begin to delete a server and its dependent objects.

        Raises:
            Missing: It does not exist.
            Transient: Another deletion is needed: for its ports, or while Nova still keeps the server.
        """
        if handle.startswith(PORTS_ONLY_PREFIX):
            return self._delete_remains(handle)
        thing = self._going(handle)
        if thing is None:
            self._ports.release(self._ports.tagged([handle]).get(handle, ()), handle)
            return None
        # Who deletes something deletes it for good: while Nova keeps it, it holds its addresses.
        soft_deleted, task = thing["status"] == "SOFT_DELETED", thing["OS-EXT-STS:task_state"]
        if soft_deleted and task is None:
            self._act(handle, "forceDelete")
        kept = soft_deleted or task == "soft-deleting"
        if kept or self._ports.of(handle, self._owner(thing)):
            self._deleted.note([handle])
            raise Transient(f"server {handle}: what belongs to it is deleted once it is gone", DELETE_S)
        return {**thing, "OS-EXT-STS:task_state": "deleting"}

    def _going(self, handle: str) -> Wire | None:
        """Request the deletion of a server, and return what is still there of it; None if only ports may be.

        Raises:
            Missing: There are none either.
        """
        try:
            if not self._deleted.among([handle]):
                super().delete(handle)
        except Missing:
            if handle not in self._ports.tagged([handle]):
                raise
            return None
        try:
            thing = super().get(handle)
        except Missing:
            return None
        return None if thing["status"] == "DELETED" else thing

    def _delete_remains(self, handle: str) -> Wire | None:
        """Delete the ports made for a server that was not made, and the server if it was made after all."""
        token = handle.removeprefix(PORTS_ONLY_PREFIX)
        server = super().find([token]).get(token)
        if server is not None:
            return self.delete(self.handle_of(server))
        ports = self._ports.of_tokens([token]).get(token)
        if ports is None:
            raise Missing("its ports are gone")
        self._ports.release(ports, token)
        return None

    # -- changes -----------------------------------------------------------------------------------------------------

    def update(self, handle: str, spec: Mapping[str, Any], changed: Sequence[str]) -> Wire:
        """Change a server in place, and return it; values that it already has are not requested.

        A resize takes several requests: until it is confirmed the answer is that the update has to be repeated.

        Raises:
            Missing: It does not exist.
            Transient: A resize goes on.
            Terminal: The resize failed.
        """
        thing = self._unlocked(handle)
        if "name" in changed and spec.get("name") not in (None, thing["name"]):
            self.api.request("PUT", self.path_of(handle), {"server": {"name": spec["name"]}}, of=handle)
        self._label(handle, thing, spec, changed)
        if "networks" in changed:
            self._changes.announce(handle)
            self._ports.plug(self.api, handle, self._owner(thing), spec)
        if "flavor" in changed and spec.get("flavor"):
            self._resize(handle, thing, spec["flavor"])
        self._renew(handle, thing, spec, changed)
        return self.get(handle)

    def _label(self, handle: str, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        """Set metadata and tags where they differ."""
        metadata, tags = dict(spec.get("metadata") or {}), set(spec.get("tags") or ())
        own_tags = {each for each in thing["tags"] if each.startswith(server_body.OWN_TAGS)}
        if "metadata" in changed and metadata != thing["metadata"]:
            self._changes.announce(handle)
            self.api.request("PUT", f"{self.path_of(handle)}/metadata", {"metadata": metadata}, of=handle)
        if "tags" in changed and tags | own_tags != set(thing["tags"]):
            self._changes.announce(handle)
            self.api.request("PUT", f"{self.path_of(handle)}/tags", {"tags": sorted(tags | own_tags)}, of=handle)

    def _renew(self, handle: str, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        """Rebuild a server with another image or other user data; else only set its password."""
        image = self.reference("image", spec.get("image")) if "image" in changed else None
        other = bool(image) and image != (thing["image"] or {}).get("id")
        data = "user_data" in changed and not spec.get("keeps_user_data")
        if (other or data) and thing["status"] != "REBUILD":
            names = ("admin_pass", "preserve_ephemeral", *(["user_data"] if data else []))
            self._rebuild(handle, {"image": image, **{name: spec[name] for name in names if name in spec}})
        elif "admin_pass" in changed and spec.get("admin_pass"):
            self._act(handle, "changePassword", {"adminPass": spec["admin_pass"]})

    def _resize(self, handle: str, thing: Wire, flavor: str) -> None:
        """Bring a resize one step further.

        Raises:
            Transient: It goes on.
            Terminal: It failed.
        """
        wanted = self.reference("flavor", flavor)
        name = self.api.get(f"/flavors/{wanted}")["flavor"]["name"]
        if thing["status"] in RESIZING or thing.get("OS-EXT-STS:task_state"):
            raise Transient(f"server {handle}: the resize goes on", RESIZE_S)
        if thing["status"] == "VERIFY_RESIZE":
            with contextlib.suppress(Transient):  # "has not been resized": for a moment it is not known, or confirmed
                self._act(handle, "confirmResize")
            raise Transient(f"server {handle}: the resize is being confirmed", RESIZE_S)
        with self._resizing:
            sent = self._resizes.pop(handle, "")
        if thing["flavor"]["original_name"] == name or thing["status"] == "ERROR":
            return
        if sent:
            raise Terminal(f"compute: server {handle} has not become {name}: {self._failure(handle, sent)}")
        request = self._act(handle, "resize", {"flavorRef": wanted})
        with self._resizing:
            self._resizes[handle] = request
        raise Transient(f"server {handle}: the resize has begun", RESIZE_S)

    def _failure(self, handle: str, request: str) -> str:
        """Return why an action of Nova, known by its request, came to nothing."""
        try:
            action = self.api.get(f"{self.path_of(handle)}/os-instance-actions/{request}")["instanceAction"]
        except Missing:
            return "Nova does not say why"
        failed = [each for each in action.get("events", ()) if each.get("result") == "Error"]
        said = next((each["details"] for each in failed if each.get("details")), "")
        return said or (f"{failed[-1]['event']} failed" if failed else "the resize was reverted")

    # -- operations --------------------------------------------------------------------------------------------------

    def operations(self) -> Mapping[str, Callable[[str, Mapping[str, Any]], None]]:
        return {
            **{verb: partial(self._switch, verb) for verb in ACTIONS},
            "lock": lambda handle, arguments: self._turn(handle, locked=True),
            "unlock": lambda handle, arguments: self._turn(handle, locked=False),
            "reboot": self._reboot,
            "rebuild": self._rebuild,
            "restore": self._restore,
            "evacuate": self._evacuate,
            "rescue": self._rescue,
            "unrescue": self._unrescue,
            "change_password": self._change_password,
            "unfence": lambda handle, arguments: self._fence.open(handle, fences_of(arguments)),
            "snapshot": self._snapshot,
            "adopt": lambda handle, arguments: self._ports.take_over(handle, arguments["ports"]),
        }

    def operate(self, handle: str, verb: str, arguments: Mapping[str, Any]) -> Wire:
        if verb != "fence":
            return super().operate(handle, verb, arguments)
        self._changes.announce(handle)
        told = self._fence.cut(handle, fences_of(arguments), host_down=bool(arguments.get("host_down")))
        return {**self.get(handle), **told}

    def _act(self, handle: str, action: str, arguments: Any = None, **more: Any) -> str:
        """Request an action, and return the id of the request."""
        answer = self.api.answer("POST", f"{self.path_of(handle)}/action", {action: arguments}, of=handle, **more)
        return str(answer.headers.get("x-openstack-request-id") or "")

    def _unlocked(self, handle: str) -> Wire:
        """Return a server that may be changed: Nova itself lets some changes of a locked one pass.

        Raises:
            Terminal: It is locked.
        """
        thing = super().get(handle)
        if thing["locked"]:
            raise Terminal(f"server {handle} is locked and cannot be changed: unlock it first")
        return thing

    def _switch(self, verb: str, handle: str, arguments: Mapping[str, Any]) -> None:
        action, done = ACTIONS[verb]
        status = self._unlocked(handle)["status"]
        if verb == "resume" and status == "SHUTOFF":
            action = "os-start"
        if status != done:
            self._act(handle, action)

    def _turn(self, handle: str, *, locked: bool) -> None:
        if super().get(handle)["locked"] != locked:
            self._act(handle, "lock" if locked else "unlock")

    def _reboot(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Reboot a server; softly, unless the arguments say otherwise or there is no guest that could be told."""
        thing = self._unlocked(handle)
        lost = server_body.object_of(thing)["status"] == "lost"
        wanted = "HARD" if lost else str(arguments.get("type") or "SOFT").upper()
        if thing["status"] not in ("HARD_REBOOT", *(("REBOOT",) if wanted == "SOFT" else ())):
            self._act(handle, "reboot", {"type": wanted})

    def _restore(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if self._unlocked(handle)["status"] == "SOFT_DELETED":
            self._act(handle, "restore")

    def _evacuate(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Have a server made anew on another host, from its image or its volume; what goes on is not begun again."""
        thing = self._unlocked(handle)
        host = str(thing.get(HOST) or "")
        left = host and (arguments.get("from") not in (None, host) or arguments.get("host") == host)
        if not left and thing["status"] != "REBUILD":
            wanted = {"host": arguments["host"]} if arguments.get("host") else {}
            self._act(handle, "evacuate", wanted, microversion=EVACUATE)

    def _rescue(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if self._unlocked(handle)["status"] == "RESCUE":
            return
        image = self.reference("image", arguments.get("image"))
        body = {"rescue_image_ref": image, "adminPass": arguments.get("admin_pass")}
        self._act(handle, "rescue", {name: value for name, value in body.items() if value})

    def _unrescue(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if self._unlocked(handle)["status"] == "RESCUE":
            self._act(handle, "unrescue")

    def _change_password(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if not arguments.get("admin_pass"):
            raise Terminal("a password is needed: admin_pass")
        self._unlocked(handle)
        self._act(handle, "changePassword", {"adminPass": arguments["admin_pass"]})

    def _rebuild(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Write an image to the server's disk; `arguments` may have the image and other fields of the kind."""
        thing = self._unlocked(handle)
        image = self.reference("image", arguments.get("image")) or (thing["image"] or {}).get("id")
        body: Wire = {name: arguments[name] for name in ("name", "metadata", "preserve_ephemeral") if name in arguments}
        if "user_data" in arguments:
            body["user_data"] = server_body.encoded(arguments["user_data"]) if arguments["user_data"] else None
        if arguments.get("admin_pass"):
            body["adminPass"] = arguments["admin_pass"]
        if not image:
            raise Terminal(f"server {handle} boots from a volume: it cannot be rebuilt from an image")
        if thing["status"] != "REBUILD":
            self._act(handle, "rebuild", {**body, "imageRef": image})

    def _snapshot(self, handle: str, arguments: Mapping[str, Any]) -> None:
        token = str(arguments.get("token") or "")
        if not token:
            raise Terminal("a snapshot needs a token")
        thing = super().get(handle)
        if SNAPSHOTS not in thing["tags"]:
            self._changes.announce(handle)
            self.api.request("PUT", f"{self.path_of(handle)}/tags/{SNAPSHOTS}", of=handle)
        if token not in self._images.find([token]):
            name = arguments.get("name") or thing["name"]
            self._act(handle, "createImage", {"name": name, "metadata": self._images.properties_of(token)})


def _ports_only(handle: str, ports: Sequence[Wire]) -> Wire:
    """Return the server of which only ports are there."""
    names = ", ".join(str(each["name"] or each["id"]) for each in ports)
    fault = {"message": f"there is no such server, only the ports that were made for it: {names}"}
    return {"id": handle, "status": "ERROR", "fault": fault}
