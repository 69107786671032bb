"""Access keys issued by the service: their holders, and the resources that a holder may read.

The key of a server reads that server. The key of an `AWS::IAM::User` reads what the policies of the user allow, in the
stack of the key.
"""

from dataclasses import dataclass, field

from homeostat.builtin.group_metadata import INSTANCES, VirtualLocation, groups_around, location
from homeostat.builtin.server_agents import AGENT
from homeostat.resources.families.access import DEPLOYED, KEY, USER, AccessPolicy, User, allowed
from homeostat.resources.signing import id_of
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner
from homeostat.store.builtin.stack_users import STACK_USER
from homeostat.store.database import Transaction
from homeostat.store.stacks import views

KINDS = (AGENT, DEPLOYED, KEY)
"""Kinds of records whose ids are access keys."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of an access key.

    Attributes:
        name: Name to show: of the user, or of the server's resource.
        owner: Resource of the key: a server, or an `AWS::IAM::AccessKey`.
        is_server: Whether the key belongs to a resource that reads only itself.
        user_id: Id of the record of the `AWS::IAM::User`, or "".
        secret: The secret key; "" if the holder was not found by an access key.
    """

    name: str
    owner: Owner
    is_server: bool
    user_id: str = ""
    secret: str = field(default="", repr=False)


def holder_of(tx: Transaction, access_key: str) -> KeyHolder | None:
    """Return the holder of a key; None if the service has not issued the key, or its resource is gone."""
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


def holder_of_user(tx: Transaction, user_id: str) -> KeyHolder | None:
    """Return the resource of a Keystone user that the service has created, as a holder; None for any other user.

    The record of such a user has the kind `STACK_USER`, the user's id as link, and a token of the resource's row.
    """
    for record in records.linked(tx, [user_id], STACK_USER) if user_id else ():
        key = records.key_of(record.token)
        owner = records.owners(tx, [key]).get(key)
        if owner is not None:
            of_itself = owner.type != User.name
            return KeyHolder(owner.name, owner, of_itself, user_id="" if of_itself else owner.handle)
    return None


def virtual_location(tx: Transaction, holder: KeyHolder, stack_id: str, resource: str) -> VirtualLocation | None:
    """Return the virtual location of a server if `resource` is its group or its location there; otherwise None."""
    for group, instance in groups_around(tx, holder.owner, holder.owner.parent_key):
        # A server with load balancers is nested in the member, and knows only its own id.
        places = {f"{group.name}{INSTANCES}{identity}" for identity in (instance, holder.owner.handle)}
        if group.stack_id == stack_id and resource in {group.name, *places}:
            return VirtualLocation(group.name, instance)
    return None


def location_of(tx: Transaction, holder: KeyHolder | None, stack_id: str, resource: str) -> VirtualLocation | None:
    """Return the virtual location that the holder of a key means by a resource; None for the resource itself.

    A server that names its group means its own place there: agents know only the name of the group.
    """
    if holder is not None and holder.is_server and (stack_id, resource) != (holder.owner.stack_id, holder.owner.name):
        return virtual_location(tx, holder, stack_id, resource)
    return location(resource)


def may_read(tx: Transaction, holder: KeyHolder, stack_id: str, resource: str) -> bool:
    """Whether the holder may describe this resource."""
    if holder.is_server:
        is_own = (stack_id, resource) == (holder.owner.stack_id, holder.owner.name)
        return is_own or virtual_location(tx, holder, stack_id, resource) is not None
    if stack_id != holder.owner.stack_id:
        return False
    user = records.get(tx, holder.user_id, USER) if holder.user_id else None
    if user is None:
        return False
    # Only names refer to access policies of the stack. As in Heat, an inline policy limits nothing.
    names = [name for name in user.object.get("policies") or () if isinstance(name, str)]
    rows, _ = views.resources(tx, stack_id, names)
    policies = {row.name: row.properties for row in rows.values() if row.type == AccessPolicy.name}
    among = allowed(policies)
    # A missing policy must not widen access: then nothing may be read.
    return not set(names) - policies.keys() and (among is None or resource in among)
