"""The simulated cloud. Its answers are determined by the calls, the time and its own seeded randomness."""

import copy
import itertools
import random
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from homeostat.clouds.port import Answer, Change, ChangeNotice, Creation, Operation
from homeostat.clouds.simulated import hosts, servers, services
from homeostat.clouds.simulated.behaviour import CloudBehaviour
from homeostat.clouds.simulated.effects import Effects
from homeostat.clouds.simulated.exclusive import Exclusive
from homeostat.clouds.simulated.objects import (
    BUILDING_STATUS,
    FIELDS,
    ID_FIELDS,
    PART_OF,
    READY_STATUS,
    SNAPSHOTS,
    creation_only_fields,
    fields_after,
    is_supported,
)
from homeostat.kinds.registry import CLOUD_KINDS
from homeostat.model.errors import Rejected, Terminal, Transient, Uncertain, ambiguous
from homeostat.model.observed import Observation, Presence, Remedy
from homeostat.model.plan import DELETE_WITH_PARTS

NAMED = frozenset({"network", "port"})
"""Kinds that servers refer to by id or name."""


@dataclass(slots=True)
class _Thing:
    kind: str
    token: str
    properties: dict[str, Any]
    created_at: float
    ready_at: float
    gone_at: float | None = None


@dataclass(slots=True)
class _Snapshot:
    id: str
    token: str
    name: str
    made_at: float
    ready_at: float
    fault: str = ""

    def as_object(self, now: float) -> dict[str, Any]:
        word = "error" if self.fault else "creating" if now < self.ready_at else "available"
        fields = {"id": self.id, "token": self.token, "name": self.name, "status": word, "created_at": self.made_at}
        return {**fields, "fault": self.fault} if self.fault else fields


UNLOCKED = frozenset({"adopt", "lock", "unlock", "snapshot", "fence", "unfence"})
"""Operations that a locked object accepts."""


class SimulatedCloud:
    """A cloud of plain data.

    Attributes:
        behaviour: Its behaviour.
        catalogue: Kind -> existing names besides the objects created here; for other kinds any name exists.
        messages: Name of a queue -> the messages posted to it.
        hosts: The hosts of servers, see `fail_host`.
        passwords: Handle of a server -> the last password set.
        doubled: (kind, token) of every creation while another object with this token existed. The service must keep it
            empty.
    """

    name = "simulated"
    kinds = frozenset(CLOUD_KINDS)

    def __init__(
        self,
        now: Callable[[], float],
        behaviour: CloudBehaviour | None = None,
        seed: int = 0,
        first_number: int = 1,
        kinds: frozenset[str] | None = None,
    ) -> None:
        """Make an empty cloud.

        Args:
            now: Clock, in seconds since the epoch.
            behaviour: Its behaviour; None for a perfect cloud.
            seed: Seed of its faults.
            first_number: Number of its first object, so that several clouds need not use the same handles.
            kinds: Kinds of the cloud; None for all.
        """
        self.kinds = self.kinds if kinds is None else kinds
        self.behaviour = behaviour or CloudBehaviour()
        self.listing_lag_s = self.behaviour.listing_lag_s
        self.look_max_s = self.behaviour.look_max_s
        self.catalogue: dict[str, Collection[str]] = {}
        self.doubled: list[tuple[str, str]] = []
        self.messages: dict[str, list[Mapping[str, Any]]] = {}
        self.hosts = hosts.Hosts()
        self.passwords: dict[str, str] = {}
        self._numbers = itertools.count(first_number)
        self._now = now
        self._random = random.Random(seed)
        self._projects: dict[str, SimulatedCloud] = {}
        self._things: dict[tuple[str, str], _Thing] = {}
        self._by_token: dict[tuple[str, str], str] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._effects = Effects()
        self._snapshots: dict[tuple[str, str], list[_Snapshot]] = {}
        self._notices: list[ChangeNotice] = []
        self._hidden: set[str] = set()
        self._pinned: dict[str, dict[str, Any]] = {}
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def of(self, project: str) -> "SimulatedCloud":
        """Return the cloud of a project; projects share only the behaviour, the numbers and the change notices."""
        with self._lock:
            if project not in self._projects:
                view = self._projects[project] = copy.copy(self)
                view._things, view._by_token, view._snapshots, view._names = {}, {}, {}, {}
                view.messages, view._effects = {}, Effects()
            return self._projects[project]

    # -- the port ----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        with self._lock:
            self._answering()
            return [self._look(kind, handle) for handle in handles]

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        with self._lock:
            self._answering()
            if kind in SNAPSHOTS:
                return [self._look_at_snapshot(kind, token=token) for token in tokens]
            return [self._look(kind, self._by_token.get((kind, token), "")) for token in tokens]

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        """Resolve existing objects and names of the catalogue; for kinds without a catalogue any name is its own id."""
        with self._lock:
            self._answering()
            return [self._resolve(kind, name) for name in names]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return self._items(kind, self._create, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._items(kind, self._update, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return self._items(kind, self._delete, handles)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return self._items(kind, self._operate, operations)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        while not stop():
            with self._changed:
                if not self._notices:
                    self._changed.wait(0.2)
                seen = list(self._notices)
                self._notices.clear()
            yield from seen

    def close(self) -> None:
        """Do nothing: there are no connections."""

    # -- acts from outside -------------------------------------------------------------------------------------------

    def things(self, kind: str | None = None) -> dict[str, dict[str, Any]]:
        """Return all existing objects, of a kind or of all: handle -> object."""
        with self._lock:
            objects = {}
            for (of, handle), _ in list(self._things.items()):
                if kind in (None, of):
                    look = self._true_look(of, handle)
                    if look.present:
                        objects[handle] = dict(look.properties)
            return objects

    def snapshots(self, handle: str) -> list[dict[str, Any]]:
        """Return the snapshots of an object, even a deleted one: `{id, token, name, status, created_at, fault?}`."""
        with self._lock:
            kept = [snapshot for key, group in self._snapshots.items() if key[1] == handle for snapshot in group]
            return [snapshot.as_object(self._now()) for snapshot in kept]

    def all_snapshots(self) -> list[dict[str, Any]]:
        """Return the snapshots of all objects, in the same form."""
        with self._lock:
            return [snapshot.as_object(self._now()) for group in self._snapshots.values() for snapshot in group]

    def lose_snapshots(self, handle: str) -> None:
        """Lose the snapshots of an object, as in a crash of their maker."""
        with self._lock:
            for key in [key for key in self._snapshots if key[1] == handle]:
                del self._snapshots[key]

    def vanish(self, handle: str) -> None:
        """Remove an object, as by hand."""
        with self._changed:
            for key in [key for key in self._things if key[1] == handle]:
                self._remove(key)
                self._notify(key[0], handle)

    def hide(self, handle: str) -> None:
        """Let the cloud answer, wrongly, that an existing object is absent, until `unhide`."""
        self._hidden.add(handle)

    def unhide(self, handle: str) -> None:
        """Undo `hide`, with a change notice."""
        with self._changed:
            self._hidden.discard(handle)
            for kind in [kind for kind, known in self._things if known == handle]:
                self._notify(kind, handle)

    def change(self, handle: str, **fields: Any) -> None:
        """Change an object, as by hand (a server stops, a rule is edited)."""
        with self._changed:
            for (kind, known), thing in self._things.items():
                if known == handle:
                    thing.properties.update(fields)
                    self._effects.note((kind, known), thing.properties)
                    self._notify(kind, handle)

    def pin(self, handle: str, **fields: Any) -> None:
        """Let the cloud accept any values for these fields of an object from now on, but keep these."""
        self._pinned[handle] = fields
        self.change(handle, **fields)

    def fail_host(self, name: str, *, back: bool = False) -> None:
        """Let a host fail, or come back, with a change notice of the host and of each of its servers."""
        with self._changed:
            (self.hosts.repair if back else self.hosts.fail)(name, self._now())
            self._notify(hosts.KIND, name)
            for view in (self, *self._projects.values()):
                for (kind, handle), thing in view._things.items():
                    if kind == "server" and thing.properties.get("host") == name:
                        self._notify(kind, handle)

    def _notify(self, kind: str, handle: str) -> None:
        self._notices.append(ChangeNotice(kind, handle))
        self._changed.notify_all()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _chance(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def _answering(self) -> None:
        if self._chance(self.behaviour.faults.unreachable):
            raise Transient("the cloud does not answer")

    def _items(self, kind: str, act: Callable[[str, Any], Answer], items: Sequence[Any]) -> list[Answer]:
        with self._lock:
            self._answering()
            if kind == hosts.KIND:
                return [hosts.READ_ONLY] * len(items)
            return [self._item(partial(act, kind, item)) for item in items]

    def _item(self, act: Callable[[], Answer]) -> Answer:
        faults = self.behaviour.faults
        if self._chance(faults.refused):
            return Transient("the cloud is busy", faults.retry_after_s)
        answer = act()
        if self._chance(faults.lost):
            return Uncertain("the answer was lost", faults.late_s)
        return answer

    def _look_at_snapshot(self, kind: str, handle: str = "", token: str = "") -> Observation:
        now = self._now()
        for (of, _), snapshots in self._snapshots.items():
            for snapshot in snapshots:
                if of == SNAPSHOTS[kind] and (snapshot.id == handle or snapshot.token == token):
                    return Observation(Presence.PRESENT, snapshot.id, snapshot.as_object(now), now)
        return self._missing(kind, handle)

    def _look(self, kind: str, handle: str) -> Observation:
        if kind == hosts.KIND:
            return self.hosts.look(handle, self._now())
        if kind in SNAPSHOTS:
            return self._look_at_snapshot(kind, handle)
        thing = self._things.get((kind, handle))
        if thing is not None and self._now() < thing.created_at + self.behaviour.listing_lag_s:
            return Observation(Presence.ABSENT, handle, seen_at=self._now(), reason="not listed yet")
        return self._observation(kind, handle)

    def _observation(self, kind: str, handle: str) -> Observation:
        """Return the answer to a call that names the object, without listing lag."""
        return self._missing(kind, handle) if handle in self._hidden else self._true_look(kind, handle)

    def _missing(self, kind: str, handle: str) -> Observation:
        return Observation(Presence.ABSENT, handle, seen_at=self._now(), reason=f"there is no such {kind}")

    def _true_look(self, kind: str, handle: str) -> Observation:
        now = self._now()
        thing = self._things.get((kind, handle))
        if thing is not None and thing.gone_at is not None and now >= thing.gone_at:
            self._remove((kind, handle))
            thing = None
        if thing is None:
            return self._missing(kind, handle)
        properties = self._effects.on(kind, thing.properties, self._things, now)
        if thing.gone_at is not None:
            properties["status"] = "deleting"
        elif now < thing.ready_at:
            properties["status"] = BUILDING_STATUS[kind]
        elif kind == "server" and self.hosts.is_down(properties["host"]) and properties["status"] == servers.READY:
            properties |= {"status": "unreachable", "fault": f"its host {properties['host']} does not answer"}
        if snapshots := self._snapshots.get((kind, handle)):
            properties["snapshots"] = [snapshot.as_object(now) for snapshot in snapshots]
        return Observation(Presence.PRESENT, handle, properties, now)

    def _remove(self, key: tuple[str, str]) -> None:
        thing = self._things.pop(key)
        self.messages.pop(key[1] if thing.kind == "queue" else "", None)
        self._effects.forget(key)
        left_at = self._now() if thing.gone_at is None else thing.gone_at
        for snapshot in self._snapshots.get(key, ()):
            if left_at < snapshot.ready_at:
                snapshot.fault = "its source went away before it was complete"
        self._by_token.pop((thing.kind, thing.token), None)

    def _create(self, kind: str, intent: Creation) -> Answer:
        existing = self._by_token.get((kind, intent.token))
        if existing is not None and self._true_look(kind, existing).present:
            if self.behaviour.idempotent:
                return self._true_look(kind, existing)
            self.doubled.append((kind, intent.token))
        quota = self.behaviour.quota
        if quota is not None and len(self._things) >= quota:
            return Terminal(f"Quota exceeded: {quota} things are allowed")
        number = next(self._numbers)
        handle = str(intent.spec.get(ID_FIELDS.get(kind, "")) or f"{kind}-{number}")
        if (kind, handle) in self._things:
            return Terminal(f"there is a {kind} named {handle} already")
        now = self._now()
        spec, holders = dict(intent.spec), self._holders()
        refused = holders.refusal(kind, spec)
        if refused is not None:
            return refused
        placed = {**spec, "networks": holders.on_networks(spec)} if kind == "server" else spec
        properties = {**spec, **(FIELDS[kind](placed, number) if kind in FIELDS else {}), "id": handle}
        if kind == "server":
            properties["host"] = self.hosts.place(properties["host"])
        if kind in READY_STATUS:
            broken = self._chance(self.behaviour.faults.error)
            properties["status"] = "error" if broken else READY_STATUS[kind]
        ready_at = now + self.behaviour.build_s if kind in BUILDING_STATUS else now
        self._things[kind, handle] = _Thing(kind, intent.token, properties, now, ready_at)
        self._by_token[kind, intent.token] = handle
        self._effects.note((kind, handle), properties)
        if kind in NAMED:
            self._names[kind, str(spec.get("name"))] = handle
        look = self._true_look(kind, handle)
        once = creation_only_fields(kind, spec, number)
        return replace(look, properties={**look.properties, **once}) if once else look

    def _holders(self) -> Exclusive:
        return Exclusive(self._things, self._names, lambda key: self._true_look(*key).present)

    def _resolve(self, kind: str, name: str) -> str | None:
        if kind == hosts.KIND:
            return name if self._look(kind, name).present else None
        if self._true_look(kind, name).present:
            return name
        handles = [
            handle
            for (of, handle), thing in list(self._things.items())
            if of == kind and thing.properties.get("name") == name and self._true_look(kind, handle).present
        ]
        if len(handles) > 1:
            raise ambiguous(name)
        listed = self.catalogue.get(kind)
        return handles[0] if handles else name if listed is None or name in listed else None

    def _present(self, kind: str, handle: str) -> _Thing | None:
        present = handle not in self._hidden and self._true_look(kind, handle).present
        return self._things[kind, handle] if present else None

    def _update(self, kind: str, change: Change) -> Answer:
        thing = self._present(kind, change.handle)
        if thing is not None:
            if thing.properties.get("locked"):
                return Rejected("Forbidden", f"{kind} {change.handle} is locked")
            wanted = {k: v for k, v in change.spec.items() if k not in ("id", "status")}
            refused = self._holders().change(kind, thing.properties, wanted)
            thing.properties.update(self._pinned.get(change.handle, {}))
            self._effects.note((kind, change.handle), thing.properties)
            if refused is not None:
                return refused
            # Some broken objects only need another request, as their kind defines.
            if CLOUD_KINDS[kind].statuses.broken.get(str(thing.properties.get("status"))) is Remedy.UPDATE:
                thing.properties["status"] = READY_STATUS[kind]
        return self._observation(kind, change.handle)

    def _delete(self, kind: str, handle: str) -> Answer:
        if kind in SNAPSHOTS:
            for kept in (group for (of, _), group in self._snapshots.items() if of == SNAPSHOTS[kind]):
                kept[:] = [snapshot for snapshot in kept if snapshot.id != handle]
            return self._look_at_snapshot(kind, handle)
        thing = self._present(kind, handle)
        if thing is not None and thing.gone_at is None:
            if thing.properties.get("locked"):
                return Rejected("Forbidden", f"{kind} {handle} is locked")
            refused = services.refusal(thing.properties)
            if refused:
                return Terminal(refused)
            parts = self._parts(kind, handle)
            if parts:
                return Transient(f"{kind} {handle} is in use by {_names(parts)}")
            thing.gone_at = self._now() + self.behaviour.delete_s
        return replace(self._observation(kind, handle), not_found=thing is None)

    def _operate(self, kind: str, operation: Operation) -> Answer:
        thing, verb = self._present(kind, operation.handle), operation.verb
        if thing is not None and thing.properties.get("locked") and verb not in UNLOCKED:
            return Rejected("Forbidden", f"{kind} {operation.handle} is locked")
        if not is_supported(kind, verb):
            return Rejected("NotSupported", f"{verb} of a {kind} is not supported.")
        if verb == DELETE_WITH_PARTS:
            return self._delete_with_parts(kind, operation)
        if thing is not None and verb == "snapshot":
            self._snapshot((kind, operation.handle), operation.arguments)
        elif verb == "post":
            if services.post(self.messages, operation, created=thing is not None) and thing is None:
                return Observation(Presence.PRESENT, operation.handle, {"name": operation.handle}, self._now())
        elif thing is not None and verb == "run":
            return services.run(thing.properties, operation.arguments) or self._observation(kind, operation.handle)
        elif thing is not None and kind == "server" and verb in servers.VERBS:
            return self._operate_server(thing, operation)
        elif thing is not None:
            thing.properties.update(fields_after(kind, verb))
        return self._observation(kind, operation.handle)

    def _is_unseen(self) -> bool:
        return self._chance(self.behaviour.faults.fence)

    def _operate_server(self, thing: _Thing, operation: Operation) -> Answer:
        of = servers.Servers(self._things, self._remove, self.hosts, self._is_unseen, self._now())
        try:
            once = of.operate(thing.properties, operation.verb, operation.arguments)
        except Terminal as error:
            return error
        if operation.verb in ("change_password", "rebuild") and operation.arguments.get("admin_pass"):
            self.passwords[operation.handle] = operation.arguments["admin_pass"]
        look = self._observation("server", operation.handle)
        return replace(look, properties={**look.properties, **once}) if once else look

    def _parts(self, kind: str, handle: str) -> dict[tuple[str, str], _Thing]:
        """Return the existing parts of an object, with their own parts."""
        of, parts, rest = CLOUD_KINDS[kind].parts, dict[tuple[str, str], _Thing](), [(kind, handle)]
        things = [(key, thing) for key, thing in list(self._things.items()) if key[0] in of]
        while rest:
            above, id = rest.pop()
            named = {id, self._things[above, id].properties.get("name")} - {None, ""}
            for key, thing in things:
                fields = (field for field, of_kind in PART_OF[key[0]].items() if of_kind == above)
                below = any(thing.properties.get(field) in named for field in fields)
                if below and key not in parts and self._true_look(*key).present:
                    parts[key] = thing
                    rest.append(key)
        return parts

    def _delete_with_parts(self, kind: str, operation: Operation) -> Answer:
        thing = self._present(kind, operation.handle)
        if thing is None:
            return replace(self._observation(kind, operation.handle), not_found=True)
        if thing.gone_at is None:
            allowed = {(of, handle) for of, handles in operation.arguments["parts"].items() for handle in handles}
            parts = self._parts(kind, operation.handle)
            others = [key for key, part in parts.items() if key not in allowed or part.properties.get("locked")]
            if others:
                return Terminal(f"{kind} {operation.handle} has parts that may not be deleted: {_names(others)}")
            gone_at = self._now() + self.behaviour.delete_s
            for part in (*parts.values(), thing):
                part.gone_at = part.gone_at or gone_at
        return self._observation(kind, operation.handle)

    def _snapshot(self, key: tuple[str, str], arguments: Mapping[str, Any]) -> None:
        snapshots, token = self._snapshots.setdefault(key, []), arguments["token"]
        if any(snapshot.token == token for snapshot in snapshots):
            return
        now = self._now()
        fault = "no room is left" if self._chance(self.behaviour.faults.snapshot) else ""
        ready_at = now + self.behaviour.snapshot_s
        id = f"snapshot-{next(self._numbers)}"
        snapshots.append(_Snapshot(id, token, arguments["name"], now, ready_at, fault))


def _names(things: Collection[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {handle}" for kind, handle in sorted(things))
