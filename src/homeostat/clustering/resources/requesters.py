"""The requester of a resource: the user on whose behalf the cloud adapter acts."""

from homeostat.clock import Entropy
from homeostat.clustering.resources.records import Requester
from homeostat.identity.descent import depth_of
from homeostat.store.builtin import stored_trusts
from homeostat.store.builtin.records import Owner
from homeostat.store.database import Transaction
from homeostat.store.stacks import stacks


def requester_of(tx: Transaction, project: str, owner: Owner | None) -> Requester:
    """Return the requester for a resource: the owner of its root stack."""
    root_id = _root_of(tx, owner)
    root = stacks.get(tx, root_id) if root_id else None
    if root is None or owner is None:
        return Requester(project)
    trust = stored_trusts.current(tx, root_id)
    return Requester(project, root.owner, trust.user_id if trust is not None else "", depth_of(tx, owner))


def share_trust(tx: Transaction, owner: Owner | None, stack_id: str, entropy: Entropy, now: float) -> None:
    """Share the trust of a resource's root stack with the stack of its cluster."""
    root_id = _root_of(tx, owner)
    trust = stored_trusts.current(tx, root_id) if root_id else None
    if trust is not None and trust.state == stored_trusts.GOOD:
        stored_trusts.share(tx, trust, stack_id, entropy.stack_id(), now)


def _root_of(tx: Transaction, owner: Owner | None) -> str:
    stack = stacks.get(tx, owner.stack_id) if owner is not None else None
    return str(stack.root_id) if stack is not None else ""
