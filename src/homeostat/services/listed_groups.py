"""Updates of a group's own stack: from a template that lists the members to the next revision (ADR 0096)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.convergence.nested_stacks.group_revisions import listed_group
from homeostat.desired.members import group_content, shard_count
from homeostat.desired.texts import GENERATED, group_text, size_of
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, invalid
from homeostat.model.group import GroupDefinition
from homeostat.resources import groups
from homeostat.resources.listed_members import Listed, plain, unredacted
from homeostat.services.pipeline.checked import Checked
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks
from homeostat.store.stacks.contents import Content
from homeostat.store.stacks.revisions import NewRevision
from homeostat.templates import environments

FROM_AROUND = (
    "The {what} of a group's stack are those of the stack that the group is in: update that. A template that lists the "
    "members can be changed here."
)


def base_of(before: Content) -> Content:
    """Return a base revision to check a template of a group's stack: environment and files as its members have them."""
    return Content("template", GENERATED, environment=before.environment, files=before.files)


def request_of(before: Content, request: StackRequest) -> StackRequest:
    """Return an update of a group's stack without its environment and files, which must not differ from the stack's.

    Raises:
        Rejected: Environment or files differ; or the request has no template.
    """
    if any(before.files.get(name) != text for name, text in request.files.items()):
        raise Rejected("NotSupported", FROM_AROUND.format(what="files"))
    environment = request.environment
    if any(
        value and value != before.environment.get(name) for name, value in environment.items() if name != "parameters"
    ):
        raise Rejected("NotSupported", FROM_AROUND.format(what="environment"))
    if request.template is None:
        # Without a template the generated one counts, which has no parameters.
        for name in {**environment.get("parameters", {}), **request.parameters}:
            raise Rejected("UnknownUserParameter", f"The Parameter ({name}) was not defined in template.")
        raise Rejected("HTTPBadRequest", "No template specified")
    own = {"parameters": environment["parameters"]} if environment.get("parameters") else {}
    # A generated template that the user edits and sends back has the service's internal type names.
    types = {definition["type"] for definition in _definitions(_group_of(before))}
    return replace(request, files={}, environment=own, internal_types=types)


def _group_of(before: Content) -> GroupDefinition:
    group = before.group
    if group is None:
        raise LookupError(f"a {before.kind} is no group")
    return group


def _definitions(group: GroupDefinition) -> list[Mapping[str, Any]]:
    return [definition for _, _, definition in groups.runs_with_own(group)] + [group.resource_def]


def listed_in(checked: Checked, before: Content) -> Listed:
    """Return the members that a checked template lists, each with its definition.

    Raises:
        Rejected: The template has more than a group can hold; the error names the place.
    """
    compiled = checked.compiled
    for name, parameter in compiled.parameters.items():
        if parameter.schema.hidden:
            message = "A group keeps the values that its members have, not parameters: hidden ones cannot be kept"
            raise invalid(message, "parameters", name)
    for name in compiled.outputs:
        raise invalid("The outputs of a group's stack are the attributes of the group", "outputs", name)
    listed = {name: _listed(definition) for name, definition in compiled.definitions.items()}
    hidden = environments.inherited(before.environment)
    if not hidden.texts:
        return listed
    known = {name: plain(member) for name, member in group_text(_group_of(before)) if name in listed}
    return {
        name: unredacted(member, hidden.plain(known[name]), known[name]) if name in known else member
        for name, member in listed.items()
    }


def _listed(definition: Definition) -> dict[str, Any]:
    """Return the definition of a member as a group holds it. Raise Rejected if no group can hold it."""
    if definition.requires or not definition.static:
        raise invalid(
            "A member of a group stands alone: it cannot refer to or depend on others", "resources", definition.name
        )
    if definition.external_id is not None or definition.creation_policy:
        raise invalid("A member of a group has neither external_id nor CreationPolicy", "resources", definition.name)
    return plain(
        {
            "type": definition.shown_type,
            "properties": dict(definition.properties),
            "metadata": definition.metadata,
            "deletion_policy": definition.deletion_policy,
            "update_policy": dict(definition.update_policy),
            "description": definition.description,
        }
    )


def revision_of(
    tx: Transaction, nested: StackRow, before: Content, listed: Listed, *, intent: str, secret: bool | None, now: float
) -> NewRevision:
    """Return the next revision of a group's stack.

    An update of the group that is in progress continues, with the members that the user has listed now.

    Args:
        tx: A consistent read.
        nested: Row of the group's stack.
        before: Newest revision of the stack.
        listed: See `listed_in`.
        intent: Operation of the parent stack that caused that revision.
        secret: Whether the template holds secrets.
        now: The agreed time.

    Raises:
        Rejected: The group cannot have these members.
    """
    rows, _ = shard_state.load_where(tx, schema.resource.c.key == nested.parent_key)
    row = rows.get(nested.parent_key or "")
    if row is None:
        raise Rejected("NotSupported", "The group of this stack is not there any more.")
    group = listed_group(tx, row, nested, _group_of(before), listed, now)
    content = group_content(group, before.environment, before.files)
    return revisions.encode(
        tx.database, content, intent=intent, shards=shard_count(group), secret=secret, size=size_of(content)
    )


def check_room(tx: Transaction, nested: StackRow, revision: NewRevision, resources_max: int) -> None:
    """Raise Rejected (RequestLimitExceeded) if the tree of stacks has no room for more members.

    Stacks nested in the members are counted at their creation.
    """
    more = (revision.size or 0) - nested.size
    if more > 0 and stacks.size_of_tree(tx, nested.root_id) + more > resources_max:
        message = (
            f"with these members the stack and all that is nested in it would have more than {resources_max} resources"
        )
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
