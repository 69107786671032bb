"""Compute: servers.

A server carries its token as a tag. This service creates some of its ports itself, see `server_ports`.
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
from homeostat.clouds.openstack.recent_ids import RecentIds
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
"""Microversion of evacuations: up to 2.94 Nova starts the evacuated server if it was running; 2.95 leaves it stopped.
"""
FILES = "2.56"
"""The last microversion that accepts files for a new server (`personality`)."""
PORTS_ONLY_PREFIX = "ports-of-"
"""Prefix of the handle of a server that never existed or is deleted, but has ports left."""
SNAPSHOTS = "homeostat-snapshots"
"""Tag of servers with snapshots: only these need a search for snapshots."""
RESIZE_S = 2.0
"""Seconds between looks at a running resize."""
DELETE_S = 1.0
"""Seconds between the requests of a deletion that needs several."""
RESIZES_MAX, RESIZES_S = 10_000, 24 * 3600.0
LATE_MAX = MISSED_MAX = DELETED_MAX = 10_000
MISSED_S = 10.0
"""Seconds for which a server that was just missed is expected to be missing in the next look, too."""
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
"""Operation -> Nova's action, and the status in which the operation has no effect."""


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
        # Tokens of creations without an answer: the server may still appear, so its ports are no leftovers yet.
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
        thing = super().get(handle)
        if thing["status"] == "DELETED":
            raise Missing(f"server {handle} is deleted")
        self._looks.learn(thing, at)
        return self._completed([thing])[0]

    def observe(self, handles: Sequence[str]) -> dict[str, Wire]:
        """Return handle -> server, including deleted servers with ports left."""
        tokens = {name.removeprefix(PORTS_ONLY_PREFIX) for name in handles if name.startswith(PORTS_ONLY_PREFIX)}
        wanted = {name for name in handles if not name.startswith(PORTS_ONLY_PREFIX)}
        known = self._looks.things(partial(self._changes.ages, wanted)) if len(wanted) > 1 else {}
        servers = {thing["id"]: thing for thing in self._completed([known[name] for name in wanted & known.keys()])}
        singles, leftovers = self._singles(wanted - servers.keys())
        servers |= singles | {handle: _ports_only(handle, ports) for handle, ports in leftovers.items()}
        return servers | {
            PORTS_ONLY_PREFIX + token: _ports_only(PORTS_ONLY_PREFIX + token, ports)
            for token, ports in self._ports.of_tokens(tokens).items()
        }

    def _singles(self, handles: set[str]) -> tuple[dict[str, Wire], dict[str, Things]]:
        """Read servers individually; return the existing servers, and the leftover ports of the missing ones."""
        if len(handles) == 1 and self._missed.recent(handles):
            # A missing server is looked for twice before its replacement. The second look runs both queries
            # concurrently: healing waits for their result.
            looks: Sequence[Callable[[], Any]] = (partial(self._read, handles), partial(self._ports.tagged, handles))
            servers, leftovers = self.cloud.side_by_side(lambda look: look(), looks)
            return servers, {handle: ports for handle, ports in leftovers.items() if handle not in servers}
        servers = self._read(handles)
        missing = handles - servers.keys()
        self._missed.note(missing)
        return servers, self._ports.tagged(missing)

    def find(self, tokens: Sequence[str]) -> dict[str, Wire]:
        """Return token -> server, including deleted servers with ports left.

        Ports of an interrupted creation that no server ever used are deleted: the next attempt creates new ports.

        Raises:
            Transient: A port does not have the tag of its server yet.
        """
        # Read before the queries: while a token is late, a server may appear after the list was read.
        settled = set(tokens) - self._late.recent(tokens)
        # Concurrently, for the same reason as in `_singles`.
        looks: Sequence[Callable[[], Any]] = (partial(super().find, tokens), partial(self._ports.of_tokens, tokens))
        listed, all_ports = self.cloud.side_by_side(lambda look: look(), looks)
        servers = {token: thing for token, thing in listed.items() if thing["status"] != "DELETED"}
        for token, thing in servers.items():
            self._ports.mark(all_ports.get(token, ()), str(thing["id"]))
        ports_of = {token: ports for token, ports in all_ports.items() if token in settled}
        completed = dict(zip(servers, self._completed([*servers.values()]), strict=True))
        left = {token: ports for token, ports in ports_of.items() if token not in servers}
        unused = {token: ports for token, ports in left.items() if not any(map(was_used, ports))}
        for token, ports in unused.items():
            self._ports.release(ports, token)
        used = {
            token: _ports_only(PORTS_ONLY_PREFIX + token, ports) for token, ports in left.items() if token not in unused
        }
        return completed | used

    def _completed(self, things: Sequence[Wire]) -> Things:
        """Add the ports, snapshots and host state of servers."""
        things = self._with_floating(self._ports.shown_on(things, self._owner))
        marked = {str(thing["id"]) for thing in things if SNAPSHOTS in thing.get("tags", ())}
        snapshots = self._images.of_servers(marked) if marked else {}
        return [
            {**thing, "_snapshots": snapshots.get(str(thing["id"])), "_silence": self._hosts.silence_of(thing)}
            for thing in things
        ]

    def _with_floating(self, things: Things) -> Things:
        """Replace the floating addresses of servers that changed lately: Nova's copy lags behind Neutron."""
        lately = self._changes.readdressed([str(thing["id"]) for thing in things])
        ports = [port["id"] for thing in things if thing["id"] in lately for port in thing.get("_ports", {}).values()]
        if not ports:
            return things
        floating = self._ports.leading_to(ports)
        return [with_floating(thing, floating) if thing["id"] in lately else thing for thing in things]

    @property
    def _images(self) -> ServerSnapshots:
        snapshots = self.cloud.collections[ServerSnapshots.kind]
        assert isinstance(snapshots, ServerSnapshots)
        return snapshots

    def _owner(self, thing: Wire) -> str:
        """Return the token of a server's ports: the server's own, or the id of an adopted server without a token."""
        return self.token.read(thing) or str(thing["id"])

    def object_of(self, thing: Wire) -> Wire:
        return server_body.object_of(thing)

    # -- acting ------------------------------------------------------------------------------------------------------

    def create(self, token: str, spec: Mapping[str, Any]) -> Wire:
        own = any(map(is_own, spec.get("networks") or ()))
        try:
            handle = self._post(token, spec)
        except Uncertain:
            self._late.note([token])
            raise
        except HomeostatError as error:
            if own:
                self._ports.give_up(token, error)
            raise late_subnets.error_of(error, self._ports.api) from error
        if own:
            try:
                self._ports.mark(self._ports.of_tokens([token]).get(token, ()), handle)
            except HomeostatError as error:
                raise Uncertain(f"server {handle} is made, and its ports have no tag yet: {error}") from error
        return {"id": handle, "status": "BUILD", "name": spec.get("name")}

    def _post(self, token: str, spec: Mapping[str, Any]) -> str:
        """Request a new server from Nova, and return its id."""
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
        """Start to delete a server and its dependent objects.

        Raises:
            Missing: The server does not exist.
            Transient: The deletion has to be repeated, for its ports or while Nova still keeps the server.
        """
        if handle.startswith(PORTS_ONLY_PREFIX):
            return self._delete_remains(handle)
        thing = self._request_deletion(handle)
        if thing is None:
            self._ports.release(self._ports.tagged([handle]).get(handle, ()), handle)
            return None
        # With a reclaim interval, Nova soft-deletes: the server keeps its addresses, so force its deletion.
        soft_deleted, task = thing["status"] == "SOFT_DELETED", thing["OS-EXT-STS:task_state"]
        if soft_deleted and task is None:
            self._act(handle, "forceDelete")
        kept = soft_deleted or task == "soft-deleting"
        if kept or self._ports.of(handle, self._owner(thing)):
            # Nova answers before it starts: the next attempt only waits, without a second request.
            self._deleted.note([handle])
            raise Transient(f"server {handle}: what belongs to it is deleted once it is gone", DELETE_S)
        return {**thing, "OS-EXT-STS:task_state": "deleting"}

    def _request_deletion(self, handle: str) -> Wire | None:
        """Request the deletion of a server, and return its present state; None if only its ports may be left.

        Raises:
            Missing: Neither the server nor its ports exist.
        """
        try:
            if not self._deleted.recent([handle]):
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
        """Delete the ports of a server that was not created; or the server, if its creation succeeded after all."""
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
        """Change a server in place, and return it; values unchanged in Nova are not requested.

        A resize takes several requests: until it is confirmed, the update raises `Transient`, to be repeated.

        Raises:
            Missing: The server does not exist.
            Transient: A resize is running.
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
        """Update metadata and tags, if they differ."""
        metadata, tags = dict(spec.get("metadata") or {}), set(spec.get("tags") or ())
        own_tags = {tag for tag in thing["tags"] if tag.startswith(server_body.OWN_TAGS)}
        if "metadata" in changed and metadata != thing["metadata"]:
            self._changes.announce(handle)
            self.api.request("PUT", f"{self.path_of(handle)}/metadata", {"metadata": metadata}, of=handle)
        if "tags" in changed and tags | own_tags != set(thing["tags"]):
            self._changes.announce(handle)
            self.api.request("PUT", f"{self.path_of(handle)}/tags", {"tags": sorted(tags | own_tags)}, of=handle)

    def _renew(self, handle: str, thing: Wire, spec: Mapping[str, Any], changed: Sequence[str]) -> None:
        """Rebuild a server with a new image or new user data; otherwise only set its password."""
        image = self.reference("image", spec.get("image")) if "image" in changed else None
        other = bool(image) and image != (thing["image"] or {}).get("id")
        data = "user_data" in changed and not spec.get("keeps_user_data")
        if (other or data) and thing["status"] != "REBUILD":
            names = ("admin_pass", "preserve_ephemeral", *(["user_data"] if data else []))
            self._rebuild(handle, {"image": image, **{name: spec[name] for name in names if name in spec}})
        elif "admin_pass" in changed and spec.get("admin_pass"):
            self._act(handle, "changePassword", {"adminPass": spec["admin_pass"]})

    def _resize(self, handle: str, thing: Wire, flavor: str) -> None:
        """Take the next step of a resize.

        Raises:
            Transient: The resize is running.
            Terminal: The resize failed.
        """
        wanted = self.reference("flavor", flavor)
        name = self.api.get(f"/flavors/{wanted}")["flavor"]["name"]
        if thing["status"] in RESIZING or thing.get("OS-EXT-STS:task_state"):
            raise Transient(f"server {handle}: the resize goes on", RESIZE_S)
        if thing["status"] == "VERIFY_RESIZE":
            with contextlib.suppress(Transient):  # "has not been resized": Nova is already confirming
                self._act(handle, "confirmResize")
            raise Transient(f"server {handle}: the resize is being confirmed", RESIZE_S)
        with self._resizing:
            sent = self._resizes.pop(handle, "")
        if thing["flavor"]["original_name"] == name or thing["status"] == "ERROR":
            return
        if sent:
            # Nova reports a failed resize nowhere but in the record of the request: the server is just as before.
            raise Terminal(f"compute: server {handle} has not become {name}: {self._failure(handle, sent)}")
        request = self._act(handle, "resize", {"flavorRef": wanted})
        with self._resizing:
            self._resizes[handle] = request
        raise Transient(f"server {handle}: the resize has begun", RESIZE_S)

    def _failure(self, handle: str, request: str) -> str:
        """Return why a requested action failed, from Nova's record of the request."""
        try:
            action = self.api.get(f"{self.path_of(handle)}/os-instance-actions/{request}")["instanceAction"]
        except Missing:
            return "Nova does not say why"
        failed = [event for event in action.get("events", ()) if event.get("result") == "Error"]
        details = next((event["details"] for event in failed if event.get("details")), "")
        return details or (f"{failed[-1]['event']} failed" if failed else "the resize was reverted")

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
        outcome = self._fence.cut(handle, fences_of(arguments), host_down=bool(arguments.get("host_down")))
        return {**self.get(handle), **outcome}

    def _act(self, handle: str, action: str, arguments: Any = None, **more: Any) -> str:
        """Request an action, and return the id of the request."""
        answer = self.api.answer("POST", f"{self.path_of(handle)}/action", {action: arguments}, of=handle, **more)
        return str(answer.headers.get("x-openstack-request-id") or "")

    def _unlocked(self, handle: str) -> Wire:
        """Return a server that may be changed: Nova itself lets some changes of a locked server pass.

        Raises:
            Terminal: The server is locked.
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
        """Reboot a server: softly, unless the arguments ask for a hard reboot or the hypervisor lost the guest."""
        thing = self._unlocked(handle)
        lost = server_body.object_of(thing)["status"] == "lost"
        wanted = "HARD" if lost else str(arguments.get("type") or "SOFT").upper()
        if thing["status"] not in ("HARD_REBOOT", *(("REBOOT",) if wanted == "SOFT" else ())):
            self._act(handle, "reboot", {"type": wanted})

    def _restore(self, handle: str, arguments: Mapping[str, Any]) -> None:
        if self._unlocked(handle)["status"] == "SOFT_DELETED":
            self._act(handle, "restore")

    def _evacuate(self, handle: str, arguments: Mapping[str, Any]) -> None:
        """Have Nova recreate a server on another host, from its image or volume, unless this is already running."""
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
        """Write an image to the server's disk; `arguments` may have the image and more fields of the kind."""
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
    """Return a server in ERROR that stands for its leftover ports."""
    names = ", ".join(str(port["name"] or port["id"]) for port in ports)
    fault = {"message": f"there is no such server, only the ports that were made for it: {names}"}
    return {"id": handle, "status": "ERROR", "fault": fault}
