"""Signals from servers and users to wait conditions, deployments and handlers.

A transaction stores the signal, the observation of the changed record, and the wake-up of the waiting shard. The
wake-up carries no data: the shard reads the observation (invariant 1, CONTRIBUTING.md).
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeostat.builtin.group_metadata import inherited_metadata
from homeostat.builtin.inbox import Inbox, SignalOutcome, Untimely, check_awake, refused_during
from homeostat.builtin.kinds.deployments import deployed
from homeostat.builtin.reports import SIGNAL, Advance, Body, Check, Reports
from homeostat.builtin.server_agents import SERVER, agents_of
from homeostat.model.errors import Rejected
from homeostat.model.limits import HANDLER_SIGNALS
from homeostat.model.world import Resource
from homeostat.plugins.types import PLUGIN_KIND, takes_signals
from homeostat.resources import signals, signing
from homeostat.resources.families.access import DEPLOYED
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.scaling import ScalingGroup
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.resources.families.wait_conditions import HANDLE
from homeostat.resources.registry import kind_of, type_of
from homeostat.store import events
from homeostat.store.builtin import plugin_records, records, signal_tallies
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import look_schedule
from homeostat.store.stacks import locks, scaling

Scale = Callable[[str, Body], "SignalOutcome"]
"""Scale a group by a signal to the policy whose record has this id; raise Rejected."""


class Signals:
    """Receiver of signals for the resources of all projects."""

    def __init__(self, db: Database, scale: Scale, advance: Advance) -> None:
        self._db = db
        self._scale = scale
        self._reports = Reports(db, advance)
        self.inbox = Inbox(db)

    def signed(self, method: str, path: str, query: Mapping[str, str], body: Body) -> SignalOutcome:
        """Take a signal at a signed URL.

        Args:
            path: Path of the URL, not percent-encoded.

        Raises:
            Rejected: Forbidden, unless the URL is signed with the key of a record.
        """
        id = signing.id_of(query.get(signing.ACCESS_KEY, ""))

        def check(record: Record | None) -> Record:
            return _checked(record, method, path, query)

        return self._take(id, body, check, query.get(signing.PART, ""))

    def native(self, project: str, kind: str, handle: str, body: Body) -> SignalOutcome:
        """Take a signal from an authorised user.

        Args:
            project: Project of the stack.
            kind: Kind of the resource.
            handle: Handle of the resource.

        Raises:
            Rejected: ResourceActionNotSupported: resources of the kind take no signals; ResourceNotAvailable: the
                resource does not exist yet; NotSupported in suspended stacks.
        """
        if kind.startswith(PLUGIN_KIND):
            return self._noting(lambda: self._for_handler(project, kind, handle, body))
        if kind not in (HANDLE, DEPLOYMENT, POLICY_KIND):
            raise Rejected("ResourceActionNotSupported", "Signal resource is not supported for this type of resource.")

        def check(record: Record | None) -> Record:
            if record is None or (record.kind, record.project) != (kind, project):
                raise Rejected("ResourceNotAvailable", "The resource is not available: it has not been made yet.")
            return record

        return self._take(handle, body, check)

    def _take(self, id: str, body: Body, check: Check, part: str = "") -> SignalOutcome:
        """Take a signal for the record of this id, which is locked unless the signal is a report to a rollout."""
        return self._noting(lambda: self._taken(id, body, check, part))

    def _noting(self, take: Callable[[], SignalOutcome]) -> SignalOutcome:
        """Take a signal; an untimely signal is refused and leaves an event."""
        try:
            return take()
        except Untimely as error:
            with self._db.write() as tx:
                event = error.owner.event(error.owner.action, refused_during(error.action))
                events.append(tx, error.owner.stack_id, [event], tx.now())
            raise

    def _taken(self, id: str, body: Body, check: Check, part: str) -> SignalOutcome:
        if not id:
            check(None)
        record, is_report = self._reports.take(id, body, check)
        if is_report:
            return SignalOutcome("", {})
        if record.kind == POLICY_KIND:
            return self._scale(record.id, body)
        with self._db.write() as tx:
            locked = records.for_update(tx, record.id)
            if locked is None:
                raise Rejected("ResourceNotAvailable", "The resource is not available: it is not there any more.")
            return self.inbox.take(tx, locked, body, part)

    def _for_handler(self, project: str, kind: str, handle: str, body: Body) -> SignalOutcome:
        """Store a signal for a plug-in type, and request an observation, which passes the signal to the handler."""
        if not takes_signals(kind.removeprefix(PLUGIN_KIND)):
            raise Rejected("ResourceActionNotSupported", "Signal resource is not supported for this type of resource.")
        with self._db.write() as tx:
            record = plugin_records.by_handle(tx, kind, project, [handle]).get(handle)
            owner = records.owners(tx, [records.key_of(record.token)]) if record is not None else {}
            if record is None or not owner:
                raise Rejected("ResourceNotAvailable", "The resource is not available: it has not been made yet.")
            now = tx.now()
            (target,) = owner.values()
            if self._ignored(tx, target, now):
                return SignalOutcome(target.name, {})
            signal = dict(body or {})
            HANDLER_SIGNALS.check(*plugin_records.waiting(tx, record.id), signal_tallies.size_of(signal))
            records.add_signal(tx, record.id, records.Signal(signal, now))
            look_schedule.request_look(tx, [target.stack_id], now, [target.shard])
        return SignalOutcome(target.name, {})

    def _ignored(self, tx: Transaction, owner: Owner, now: float) -> bool:
        """Return whether a lock of the stack suppresses a signal (LK2), and record an event then.

        Raises:
            Rejected: NotSupported, in a suspended stack.
        """
        check_awake(owner)
        if owner.lock is None:
            return False
        reason = f"Signal ignored: the stack is locked{locks.describe(owner.lock)}"
        events.append(tx, owner.stack_id, [owner.event(SIGNAL, reason)], now)
        return True

    def token(self, token: str, project: str, path: Sequence[str]) -> bool:
        """Whether a token is a handle's, and used for the handle's own URL; `path` has the parts after the version."""
        key, _, secret = token.partition(".")
        with self._db.read() as tx:
            record = records.get(tx, signing.id_of(key), HANDLE, project) if signing.id_of(key) else None
        if record is None or not signing.same(record.object.get("token", ""), f"{key}.{secret}"):
            return False
        return str(record.object.get("endpoint", "")).split("/v1/", 1)[-1] == "/".join(path)

    def metadata(self, method: str, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the metadata of the server whose key has signed this URL.

        Raises:
            Rejected: Forbidden: a wrong signature; EntityNotFound: the server is gone.
        """
        with self._db.read() as tx:
            id = signing.id_of(query.get(signing.ACCESS_KEY, ""))
            record = _checked(records.get(tx, id) if id else None, method, path, query)
            key = records.key_of(record.token)
            owner = records.owners(tx, [key]).get(key)
            if owner is None:
                raise Rejected("EntityNotFound", "The server of this address is not there any more.")
            return metadata_of(tx, record.project, owner, owner.parent_key)


def _checked(record: Record | None, method: str, path: str, query: Mapping[str, str]) -> Record:
    """Return the record, and check that its key has signed the URL.

    Raises:
        Rejected: Forbidden.
    """
    secret = (record.secret if record is not None else None) or {}
    if record is None or not signing.fits(secret.get("key", ""), method, secret.get("host", ""), path, query):
        raise Rejected("Forbidden", "You are not authorized to use this address: its signature does not fit.")
    return record


def wire_config(record: Record) -> dict[str, Any]:
    """Return a config in the format for servers."""
    names = ("name", "group", "config", "inputs", "outputs", "options")
    made_at = datetime.datetime.fromtimestamp(record.created_at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"id": record.id, "creation_time": made_at, **{name: record.object[name] for name in names}}


def handle_metadata(tx: Transaction, record: Record) -> dict[str, Any]:
    """Return the signals of a handle as its metadata; {} for a record of another kind."""
    if record.kind != HANDLE:
        return {}
    received = records.signals_of(tx, [record.id]).get(record.id, [])
    return signals.as_metadata(record.object["form"], [signal.object for signal in received])


def metadata_of(tx: Transaction, project: str, row: Resource | Owner, parent_key: str | None) -> dict[str, Any]:
    """Return the metadata of a resource: from the template, with additions of the service.

    Additions are the signals of a handle, the cooldown of a scaling group, the configs and the agent's settings of a
    server that reads configs, and metadata inherited from groups (`inherited_metadata`).

    Args:
        project: Project of the stack.
        row: The resource.
        parent_key: `parent_key` of its stack; None for a root stack, where nothing is inherited.
    """
    metadata = {**inherited_metadata(tx, row, parent_key), **(row.metadata or {})}
    kind = kind_of(row.type)
    if kind == HANDLE:
        record = records.get(tx, row.handle, HANDLE, project)
        return {**metadata, **(handle_metadata(tx, record) if record is not None else {})}
    if isinstance(type_of(row.type), ScalingGroup):
        cooldown = scaling.cooldown_in(tx, row.key)
        return {**metadata, **(cooldown.as_metadata() if cooldown is not None else {})}
    agent = None
    if row.handle and kind == SERVER:
        agent = agents_of(tx, [row.handle]).get(row.handle)
    elif row.handle and kind == DEPLOYED:
        agent = records.get(tx, row.handle, DEPLOYED, project)
    if agent is None:
        return metadata
    configs = [wire_config(config) for config in deployed(tx, project, row.handle)]
    return {**metadata, "os-collect-config": agent.object["collect"], "deployments": configs}
