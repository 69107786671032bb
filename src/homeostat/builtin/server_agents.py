"""User data and metadata access for servers: a wrapper around the cloud that creates the servers.

The spec of a server is completed before it is passed to the cloud: with user data in its format, and with a key by
which the server reads its metadata. The key is stored before the server is created (invariant 3, CONTRIBUTING.md), and
deleted with the server.

Servers that read software configs have a key, and members of groups with a launch configuration: cfn-hup there reads
the member's view of the group's metadata.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.builtin.cloud import Records
from homeostat.builtin.group_metadata import groups_around
from homeostat.builtin.sessions import RecordSession
from homeostat.clouds.counting import one_each
from homeostat.clouds.port import Answer, Change, ChangeNotice, Cloud, Creation, Operation, look_max_s
from homeostat.identity.stack_users import needed
from homeostat.model.errors import HomeostatError
from homeostat.model.observed import Observation, Presence
from homeostat.resources import mime, user_data
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.scaling import InstanceGroup
from homeostat.resources.registry import type_of
from homeostat.resources.user_data import CFNTOOLS, RAW, SOFTWARE_CONFIG
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Database, Transaction

SERVER = "server"
POLL_CFN = "POLL_SERVER_CFN"
"""Transport of metadata to members of groups with a launch configuration."""
AGENT = "server_agent"
"""Kind of the record with the key of a server. Its link is the server with the same token."""
FORM, TRANSPORT = "user_data_format", "software_config_transport"
OWN = (FORM, TRANSPORT)
"""Fields of a server's spec for this module, not passed to the cloud."""
CONFIGURING = {TRANSPORT, "user_data"}
"""Fields about the configuration of a server."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
Fields = dict[str, Any]


class ServerAgents:
    """A cloud whose servers can be configured; requests for other kinds pass through unchanged."""

    def __init__(self, cloud: Cloud, own: Records, db: Database, project: str) -> None:
        self._cloud = cloud
        self._own = own
        self._db = db
        self._project = project
        self.name = cloud.name
        self.kinds = cloud.kinds
        self.listing_lag_s = cloud.listing_lag_s
        self.look_max_s = look_max_s(cloud)

    # -- changes ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind != SERVER or not any(_has_more_to_get(intent.spec) for intent in intents):
            return self._cloud.create(kind, intents)
        self._own.ensure_users([intent.token for intent in intents if needed(intent.spec)])
        keys = {intent.token: records.key_of(intent.token) for intent in intents}
        # Only servers that read their metadata need a record with a key, and hence a write transaction.
        members = self._members(intents)
        read = bool(members) or any(intent.spec.get(FORM) == SOFTWARE_CONFIG for intent in intents)
        with self._db.write() if read else self._db.read() as tx:
            session = self._own.session(tx, self._project)
            owners = records.owners(tx, list(keys.values()))
            specs = [
                self._spec(session, intent.spec, intent.token, owners.get(keys[intent.token]), intent.token in members)
                for intent in intents
            ]
        requests = [Creation(intent.token, spec) for intent, spec in zip(intents, specs, strict=True)]
        answers = one_each(self._cloud, "create", kind, len(requests), self._cloud.create(kind, requests))
        if read:
            self._link({intent.token: answer for intent, answer in zip(intents, answers, strict=True)})
        return self._shown(answers)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        if kind != SERVER:
            return self._cloud.update(kind, changes)
        requests = self._changes(changes)
        # If only fields of this module have changed, the cloud has nothing to update: the server is merely observed.
        sent = [change for change in requests if change.changed]
        answers: dict[str, Answer] = {}
        if sent:
            updated = one_each(self._cloud, "update", kind, len(sent), self._cloud.update(kind, sent))
            answers |= zip([change.handle for change in sent], updated, strict=True)
        quiet = [change.handle for change in requests if not change.changed]
        if quiet:
            looks = one_each(self._cloud, "observe", kind, len(quiet), self._cloud.observe(kind, quiet))
            answers |= zip(quiet, looks, strict=True)
        return self._shown([answers[change.handle] for change in changes])

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        answers = one_each(self._cloud, "delete", kind, len(handles), self._cloud.delete(kind, handles))
        if kind == SERVER:
            deleted = [handle for handle, answer in zip(handles, answers, strict=True) if _absent(answer)]
            self._forget(deleted)
        return answers

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        answers = self._cloud.operate(kind, operations)
        return self._shown(answers) if kind == SERVER else answers

    # -- observations ------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        observations = self._cloud.observe(kind, handles)
        if kind != SERVER:
            return observations
        self._forget(
            [
                observation.handle
                for observation in observations
                if observation.presence is Presence.ABSENT and observation.handle
            ]
        )
        return self._decorated(observations)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        observations = self._cloud.find(kind, tokens)
        if kind != SERVER:
            return observations
        # The caller handles missing or surplus observations.
        if len(observations) <= len(tokens):
            self._link(dict(zip(tokens, observations, strict=False)))
        return self._decorated(observations)

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        return self._cloud.resolve(kind, names)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return self._cloud.watch(stop)

    def close(self) -> None:
        """Do nothing: the owner of the wrapped cloud closes it."""

    # -- user data ---------------------------------------------------------------------------------------------------

    def _spec(
        self, session: RecordSession, wanted: Mapping[str, Any], token: str, owner: Owner | None, is_member: bool
    ) -> Fields:
        """Return the spec for the cloud; for `is_member` see `_members`."""
        form = wanted.get(FORM, RAW)
        spec = _without_own(wanted)
        metadata, key = dict((owner.metadata if owner is not None else None) or {}), ""
        if form == SOFTWARE_CONFIG and owner is not None:
            agent = _agent(session, token, owner, wanted.get(TRANSPORT, ""))
            metadata = {**metadata, "os-collect-config": agent.object["collect"], "deployments": []}
        elif is_member and owner is not None:
            agent = _agent(session, token, owner, POLL_CFN, is_member=True)
            metadata = {**metadata, "os-collect-config": agent.object["collect"]}
            key = user_data.credentials(agent.object["collect"])
        data = _content(session, form, str(wanted.get("user_data") or ""))
        document = user_data.document(form, data, metadata, f"{session.url}/v1/", key)
        if document:
            spec["user_data"] = document
        return spec

    def _members(self, intents: Sequence[Creation]) -> set[str]:
        """Return the tokens of the future members of groups with a launch configuration.

        A server with load balancers counts, too: it is in the nested stack that is the member.
        """
        keys = {records.key_of(intent.token): intent.token for intent in intents if intent.spec.get(FORM) == CFNTOOLS}
        if not keys:
            return set()
        launched: dict[str, bool] = {}
        with self._db.read() as tx:
            owners = records.owners(tx, list(keys))
            for owner in owners.values():
                if owner.parent_key is not None and owner.parent_key not in launched:
                    around = groups_around(tx, owner, owner.parent_key)
                    launched[owner.parent_key] = any(
                        isinstance(type_of(group.type), InstanceGroup) for group, _ in around
                    )
        return {keys[key] for key, owner in owners.items() if launched.get(owner.parent_key or "")}

    def _changes(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes for the cloud."""
        if not any(CONFIGURING & set(change.changed) for change in changes):
            return [replace(change, spec=_without_own(change.spec)) for change in changes]
        with self._db.read() as tx:
            agents = agents_of(tx, [change.handle for change in changes if needed(change.spec)])
        self._own.ensure_users([agent.token for agent in agents.values()])
        with self._db.write() as tx:
            session = self._own.session(tx, self._project)
            return [self._change(session, change) for change in changes]

    def _change(self, session: RecordSession, change: Change) -> Change:
        """Return a change for the cloud, and store a new transport with the server's key."""
        agents = records.linked(session.tx, [change.handle], AGENT)
        owner = next(iter(records.owners_of(session.tx, [change.handle])), None)
        transport = change.spec.get(TRANSPORT)
        for agent in agents:
            if owner is not None and transport and agent.object["transport"] != transport:
                agent.object = _agent_object(session, agent, owner, transport)
                records.save(session.tx, agent, session.now)
        token = agents[0].token if agents else ""
        is_member = bool(agents) and bool(agents[0].object.get("member"))
        spec = _without_own(change.spec)
        if "user_data" in change.changed:
            spec = self._spec(session, change.spec, token, owner, is_member)
            spec.setdefault("user_data", "")
        return replace(change, spec=spec, changed=tuple(name for name in change.changed if name not in OWN))

    # -- agents ------------------------------------------------------------------------------------------------------

    def _link(self, answers: Mapping[str, Answer]) -> None:
        """Link keys to the servers with the same tokens; remove keys of servers that were never created.

        Args:
            answers: Token -> answer to a creation, or observation.
        """
        handles = {token: answer.handle for token, answer in answers.items() if not isinstance(answer, HomeostatError)}
        if not handles:
            return
        with self._db.read() as tx:
            stored = records.of_tokens(tx, AGENT, handles)
        if not stored:
            return
        with self._db.write() as tx:
            now = tx.now()
            for token, agent in sorted(stored.items()):
                if _absent(answers[token]):
                    _remove(tx, [agent])
                elif agent.link != handles[token]:
                    agent.link = handles[token]
                    records.save(tx, agent, now)

    def _forget(self, handles: Sequence[str]) -> None:
        """Remove the keys of deleted servers."""
        if not handles:
            return
        with self._db.read() as tx:
            agents = records.linked(tx, handles, AGENT)
        if agents:
            with self._db.write() as tx:
                _remove(tx, agents)

    def _shown(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return answers with completed observations; errors stay unchanged."""
        observations = iter(self._decorated([answer for answer in answers if isinstance(answer, Observation)]))
        return [next(observations) if isinstance(answer, Observation) else answer for answer in answers]

    def _decorated(self, observations: Sequence[Observation]) -> list[Observation]:
        """Return observations with the settings of the agent, and without user data that has a key."""
        if not observations:
            return []
        with self._db.read() as tx:
            agents = agents_of(tx, [observation.handle for observation in observations if observation.present])
        return [_decorated(observation, agents.get(observation.handle)) for observation in observations]


def _remove(tx: Transaction, agents: Sequence[Record]) -> None:
    """Remove keys, and mark the Keystone users of their servers for deletion."""
    records.remove(tx, [agent.id for agent in agents])
    # Also of those that need no user any more, since the transport of a server may change.
    stack_users.mark_departed(tx, *(agent.token for agent in agents))


def _has_more_to_get(spec: Mapping[str, Any]) -> bool:
    """Whether a server's spec must be completed: user data with a format, or the id of a config as user data."""
    return FORM in spec or UUID.match(str(spec.get("user_data") or "")) is not None


def _without_own(spec: Mapping[str, Any]) -> Fields:
    return {name: value for name, value in spec.items() if name not in OWN}


def _decorated(look: Observation, agent: Record | None) -> Observation:
    properties = look.properties
    if mime.is_mime(str(properties.get("user_data") or "")):
        properties = {name: value for name, value in properties.items() if name != "user_data"}
    if agent is not None and look.present and not agent.object.get("member"):
        properties = {**properties, "os_collect_config": {"os-collect-config": agent.object["collect"]}}
    return look if properties is look.properties else replace(look, properties=properties)


def agents_of(tx: Transaction, handles: Sequence[str]) -> dict[str, Record]:
    """Return handle -> record with the key of the server; servers without a key are absent."""
    by_handle: dict[str, Record] = {}
    for start in range(0, len(handles), 500):
        by_handle.update({agent.link: agent for agent in records.linked(tx, handles[start : start + 500], AGENT)})
    return by_handle


def _agent(session: RecordSession, token: str, owner: Owner, transport: str, *, is_member: bool = False) -> Record:
    """Return the record with the key of the future server with this token; the first call creates the record."""
    existing = records.of_tokens(session.tx, AGENT, [token]).get(token)
    if existing is not None:
        return existing
    new = session.record(AGENT, token, {}, secret=session.secret())
    new.object = _agent_object(session, new, owner, transport) | ({"member": True} if is_member else {})
    records.add(session.tx, [new])
    return new


def _agent_object(session: RecordSession, agent: Record, owner: Owner, transport: str) -> Fields:
    return {"transport": transport, "collect": session.collect_config(agent, owner, transport, in_cloud=True)}


def _content(session: RecordSession, form: str, data: str) -> str:
    """Return user data; the id of a software config is replaced by the config's content."""
    if form not in (RAW, SOFTWARE_CONFIG) or not UUID.match(data):
        return data
    config = records.get(session.tx, data, CONFIG, session.project)
    return str(config.object["config"]) if config is not None else data


def _absent(answer: Answer) -> bool:
    return isinstance(answer, Observation) and answer.presence is Presence.ABSENT
