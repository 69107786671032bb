"""Access keys that the service has given out: whose they are, and what may be read with them (cfn-api.md section 4).

A server's own key reads that server. The key of an `AWS::IAM::User` reads what the policies of the user allow, in the
stack of the key.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from homeostat.builtin.cloud import id_of
from homeostat.builtin.server_agents import AGENT
from homeostat.resources.families.access import DEPLOYED, KEY, USER, AccessPolicy, User, allowed
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner
from homeostat.store.builtin.stack_users import STACK_USER
from homeostat.store.stacks import views

KINDS = (AGENT, DEPLOYED, KEY)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who has a key. name — for people; owner — the resource that it was made for: a server, or an
    `AWS::IAM::AccessKey`; user_id — of the record of the user, "" where there is none."""

    name: str
    owner: Owner
    is_server: bool
    user_id: str = ""
    secret: str = field(default="", repr=False)


def holder_of(tx: Connection, access_key: str) -> KeyHolder | None:
    """None for a key that is none of ours, and for one whose resource is gone."""
    id = id_of(access_key)
    record = records.get(tx, id) if id else None
    if record is None or record.kind not in KINDS:
        return None
    key = records.key_of(record.token)
    owner = records.owners(tx, [key]).get(key)
    secret = (record.secret or {}).get("key", "")
    if owner is None or not secret:
        return None
    if record.kind == KEY:
        return KeyHolder(str(record.object["user"]), owner, False, record.link, secret)
    return KeyHolder(owner.name, owner, True, secret=secret)


def holder_of_user(tx: Connection, user_id: str) -> KeyHolder | None:
    """Whom the identity service's user of that id was made for; None when it was made for none of our resources.

    The record of such a user has the kind `STACK_USER`, the user's id as its link, and a token of its resource's row.
    """
    for record in records.linked(tx, [user_id], STACK_USER) if user_id else ():
        key = records.key_of(record.token)
        owner = records.owners(tx, [key]).get(key)
        if owner is not None:
            of_itself = owner.type != User.name
            return KeyHolder(owner.name, owner, of_itself, user_id="" if of_itself else owner.handle)
    return None


def may_read(tx: Connection, holder: KeyHolder, stack_id: str, resource: str) -> bool:
    """May the holder describe this resource?"""
    if stack_id != holder.owner.stack_id:
        return False
    if holder.is_server:
        return resource == holder.owner.name
    user = records.get(tx, holder.user_id, USER) if holder.user_id else None
    if user is None:
        return False
    # A policy that is written out in its place is none of ours: as upstream, it limits nothing.
    names = [each for each in user.object.get("policies") or () if isinstance(each, str)]
    rows, _ = views.resources(tx, stack_id, names)
    policies = {row.name: row.properties for row in rows.values() if row.type == AccessPolicy.name}
    among = allowed(policies)
    return not set(names) - policies.keys() and (among is None or resource in among)
