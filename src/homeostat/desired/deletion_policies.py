"""Deletion policies of nested stacks, by the newest files of their root stack (ADR 0048).

A user may send new templates for a stack that is being deleted, to change its deletion. A nested stack reads its new
policies from those files.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from homeostat.desired.compiling import compile_desired, template_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.model.world import StackFacts
from homeostat.resources.nested import FromTemplate
from homeostat.resources.registry import type_of
from homeostat.store.database import Transaction
from homeostat.store.shards import brakes
from homeostat.store.stacks import deletion, revisions, views
from homeostat.store.stacks.contents import Content


def policies_of(content: Content, identity: Identity) -> dict[str, str]:
    """Return the deletion policy of each resource by its name."""
    compiled = compile_desired(content, identity, strict=False)
    return {name: definition.deletion_policy for name, definition in compiled.definitions.items()}


def inherited(tx: Transaction, stack: StackFacts) -> Mapping[str, str]:
    """Return the changed policies of a nested stack that is being deleted; {} if none were changed since."""
    if stack.action != Action.DELETE or stack.parent_key is None:
        return {}
    number = deletion.newest_policies(tx, stack.root_id, stack.id)
    if number is None:
        return {}
    return inside(tx, stack, lambda name: deletion.file_of(tx, stack.root_id, number, name))


def inside(tx: Transaction, stack: StackFacts, file: Callable[[str], str | None]) -> Mapping[str, str]:
    """Return the policies of a nested stack by the text of its template among new files.

    Args:
        tx: A consistent read.
        stack: The nested stack.
        file: Returns the text of a file by its name; None if absent.

    Returns:
        Policies by name of the resource; {} if the stack is not made from a file, or if the file is unchanged or does
        not compile any more.
    """
    owner = brakes.owner_of(tx, stack.parent_key) if stack.parent_key is not None else None
    kind = type_of(owner.type) if owner is not None else None
    source = kind.source(owner.properties) if owner is not None and isinstance(kind, FromTemplate) else None
    text = file(source) if isinstance(source, str) else None
    if source is None or text is None:
        return {}
    content = revisions.content_of(tx, stack.id, views.described_revision(tx, stack.id))
    template = template_of(source, {source: text})
    if template == content.template:
        return {}
    try:
        return policies_of(replace(content, template=template), Identity(stack.id, stack.name, stack.project))
    except Rejected:
        return {}
