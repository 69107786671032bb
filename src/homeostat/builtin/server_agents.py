"""User data and metadata access for servers, added in front of the cloud that makes them.

A server that reads software configs has a key, and so has a member of a group with a launch configuration: with that
its cfn-hup reads the metadata of the group as they are meant for it.

Convergence sees a cloud. The spec of a server is completed here before the cloud itself gets it: with user data in its
format, and with a key by which the server reads its metadata. The key is stored before the server is created
(invariant 3, CONTRIBUTING.md), and deleted with it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

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
from homeostat.store.database import Database

SERVER = "server"
POLL_CFN = "POLL_SERVER_CFN"
"""How a member of a group with a launch configuration reads its metadata."""
AGENT = "server_agent"
"""Kind of the record with the key of a server. The server that carries its token is its link."""
FORM, TRANSPORT = "user_data_format", "software_config_transport"
OWN = (FORM, TRANSPORT)
"""Fields of a server's spec that are for this module, and are not passed on to the cloud."""
CONFIGURING = {TRANSPORT, "user_data"}
"""Fields that say how a server is configured."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
Fields = dict[str, Any]


class ServerAgents:
    """A cloud whose servers can be configured; things of other kinds pass through unchanged."""

    def __init__(self, cloud: Cloud, own: Records, db: Database, project: str) -> None:
        self._cloud = cloud
        self._own = own
        self._db = db
        self._project = project
        self.name = cloud.name
        self.kinds = cloud.kinds
        self.listing_lag_s = cloud.listing_lag_s
        self.look_max_s = look_max_s(cloud)

    # -- asking ------------------------------------------------------------------------------------------------------

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind != SERVER or not any(_has_more_to_get(intent.spec) for intent in intents):
            return self._cloud.create(kind, intents)
        self._own.ensure_users([intent.token for intent in intents if needed(intent.spec)])
        keys = {intent.token: records.key_of(intent.token) for intent in intents}
        # Only servers that read their metadata need a record with a key, and so a write transaction.
        members = self._members(intents)
        read = bool(members) or any(intent.spec.get(FORM) == SOFTWARE_CONFIG for intent in intents)
        with self._db.write() if read else self._db.read() as tx:
            session = self._own.session(tx, self._project)
            owners = records.owners(tx, list(keys.values()))
            specs = [
                self._spec(session, each.spec, each.token, owners.get(keys[each.token]), each.token in members)
                for each in intents
            ]
        requests = [Creation(intent.token, spec) for intent, spec in zip(intents, specs, strict=True)]
        answers = one_each(self._cloud, "create", kind, len(requests), self._cloud.create(kind, requests))
        if read:
            self._link({each.token: answer for each, answer in zip(intents, answers, strict=True)})
        return self._shown(answers)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        if kind != SERVER:
            return self._cloud.update(kind, changes)
        requests = self._changes(changes)
        # Where only fields of this module have changed, the cloud has nothing to do: the server is merely observed.
        sent = [each for each in requests if each.changed]
        answers: dict[str, Answer] = {}
        if sent:
            updated = one_each(self._cloud, "update", kind, len(sent), self._cloud.update(kind, sent))
            answers |= zip([each.handle for each in sent], updated, strict=True)
        quiet = [each.handle for each in requests if not each.changed]
        if quiet:
            looks = one_each(self._cloud, "observe", kind, len(quiet), self._cloud.observe(kind, quiet))
            answers |= zip(quiet, looks, strict=True)
        return self._shown([answers[each.handle] for each in changes])

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        answers = one_each(self._cloud, "delete", kind, len(handles), self._cloud.delete(kind, handles))
        if kind == SERVER:
            gone = [handle for handle, answer in zip(handles, answers, strict=True) if _absent(answer)]
            self._forget(gone)
        return answers

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        answers = self._cloud.operate(kind, operations)
        return self._shown(answers) if kind == SERVER else answers

    # -- looking -----------------------------------------------------------------------------------------------------

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        looks = self._cloud.observe(kind, handles)
        if kind != SERVER:
            return looks
        self._forget([look.handle for look in looks if look.presence is Presence.ABSENT and look.handle])
        return self._decorated(looks)

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        looks = self._cloud.find(kind, tokens)
        if kind != SERVER:
            return looks
        # What is missing or too much is the caller's to judge.
        if len(looks) <= len(tokens):
            self._link(dict(zip(tokens, looks, strict=False)))
        return self._decorated(looks)

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        return self._cloud.resolve(kind, names)

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return self._cloud.watch(stop)

    def close(self) -> None:
        """Do nothing: the cloud behind is closed by its owner."""

    # -- user data ---------------------------------------------------------------------------------------------------

    def _spec(
        self, session: RecordSession, wanted: Mapping[str, Any], token: str, owner: Owner | None, is_member: bool
    ) -> Fields:
        """Return a spec as the cloud gets it; for `is_member` see `_members`."""
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
        found = user_data.document(form, data, metadata, f"{session.url}/v1/", key)
        if found:
            spec["user_data"] = found
        return spec

    def _members(self, intents: Sequence[Creation]) -> set[str]:
        """Return the tokens of the servers that are to be members of groups with a launch configuration.

        Servers behind load balancers are, too: each is in the nested stack that is the member.
        """
        keys = {records.key_of(each.token): each.token for each in intents if each.spec.get(FORM) == CFNTOOLS}
        if not keys:
            return set()
        launched: dict[str, bool] = {}
        with self._db.read() as tx:
            owners = records.owners(tx, list(keys))
            for each in owners.values():
                if each.parent_key is not None and each.parent_key not in launched:
                    around = groups_around(tx, each, each.parent_key)
                    launched[each.parent_key] = any(isinstance(type_of(one.type), InstanceGroup) for one, _ in around)
        return {keys[key] for key, each in owners.items() if launched.get(each.parent_key or "")}

    def _changes(self, changes: Sequence[Change]) -> list[Change]:
        """Return changes as the cloud gets them."""
        if not any(CONFIGURING & set(each.changed) for each in changes):
            return [replace(each, spec=_without_own(each.spec)) for each in changes]
        with self._db.read() as tx:
            agents = agents_of(tx, [each.handle for each in changes if needed(each.spec)])
        self._own.ensure_users([each.token for each in agents.values()])
        with self._db.write() as tx:
            session = self._own.session(tx, self._project)
            return [self._change(session, each) for each in changes]

    def _change(self, session: RecordSession, change: Change) -> Change:
        """Return one change as the cloud gets it, and store a new transport with the server's key."""
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
        """Link keys to the servers that carry their tokens; remove keys of servers that were never made.

        Args:
            answers: Token -> answer to a creation, or observation.
        """
        there = {token: answer.handle for token, answer in answers.items() if not isinstance(answer, HomeostatError)}
        if not there:
            return
        with self._db.read() as tx:
            stored = records.of_tokens(tx, AGENT, there)
        if not stored:
            return
        with self._db.write() as tx:
            now = self._db.now_of(tx)
            for token, agent in sorted(stored.items()):
                if _absent(answers[token]):
                    _remove(tx, [agent])
                elif agent.link != there[token]:
                    agent.link = there[token]
                    records.save(tx, agent, now)

    def _forget(self, handles: Sequence[str]) -> None:
        """Remove the keys of servers that are gone."""
        if not handles:
            return
        with self._db.read() as tx:
            agents = records.linked(tx, handles, AGENT)
        if agents:
            with self._db.write() as tx:
                _remove(tx, agents)

    def _shown(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return answers with their observations completed; errors stay as they are."""
        looks = iter(self._decorated([each for each in answers if isinstance(each, Observation)]))
        return [next(looks) if isinstance(each, Observation) else each for each in answers]

    def _decorated(self, looks: Sequence[Observation]) -> list[Observation]:
        """Return observations with the settings of the agent, and without user data that holds a key."""
        if not looks:
            return []
        with self._db.read() as tx:
            agents = agents_of(tx, [look.handle for look in looks if look.present])
        return [_decorated(look, agents.get(look.handle)) for look in looks]


def _remove(tx: Connection, agents: Sequence[Record]) -> None:
    """Remove keys, and have the users of their servers deleted in the identity service."""
    records.remove(tx, [each.id for each in agents])
    for each in agents:
        if needed(each.object):
            stack_users.mark_departed(tx, each.token)


def _has_more_to_get(spec: Mapping[str, Any]) -> bool:
    """Whether a server's spec has to be completed: by a format of its user data, or a config that it names."""
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


def agents_of(tx: Connection, handles: Sequence[str]) -> dict[str, Record]:
    """Return the records with the keys of these servers by handle, for those that have one."""
    found: dict[str, Record] = {}
    for start in range(0, len(handles), 500):
        found.update({each.link: each for each in records.linked(tx, handles[start : start + 500], AGENT)})
    return found


def _agent(session: RecordSession, token: str, owner: Owner, transport: str, *, is_member: bool = False) -> Record:
    """Return the record with the key of the server that will carry this token; it is made on the first call."""
    there = records.of_tokens(session.tx, AGENT, [token]).get(token)
    if there is not None:
        return there
    made = session.record(AGENT, token, {}, secret=session.secret())
    made.object = _agent_object(session, made, owner, transport) | ({"member": True} if is_member else {})
    records.add(session.db, session.tx, [made])
    return made


def _agent_object(session: RecordSession, agent: Record, owner: Owner, transport: str) -> Fields:
    return {"transport": transport, "collect": session.collect_config(agent, owner, transport, in_cloud=True)}


def _content(session: RecordSession, form: str, data: str) -> str:
    """Return user data; the id of a software config is replaced by the content of that."""
    if form not in (RAW, SOFTWARE_CONFIG) or not UUID.match(data):
        return data
    found = records.get(session.tx, data, CONFIG, session.project)
    return str(found.object["config"]) if found is not None else data


def _absent(answer: Answer) -> bool:
    return isinstance(answer, Observation) and answer.presence is Presence.ABSENT
