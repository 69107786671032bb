"""The next content of a nested stack, as the properties of its resource describe it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.convergence.nested_stacks.group_revisions import check_time, check_weight, group_revision
from homeostat.convergence.nested_stacks.overtaken_revisions import OvertakenRevisions
from homeostat.convergence.nested_stacks.template_stacks import environment_inside, from_template
from homeostat.desired.members import MEMBERS_PER_SHARD, chain_content, group_content, named_content
from homeostat.desired.redaction import Redactions
from homeostat.model.intent import stamp_of
from homeostat.model.plan import Create, Step
from homeostat.model.world import Resource, World
from homeostat.resources import groups
from homeostat.resources.composite import Composed
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.nested import NestedStack, TemplateResource
from homeostat.resources.registry import type_of
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions
from homeostat.store.stacks.contents import EMPTY, Content
from homeostat.templates import environments


class NestedRevisions:
    """Builder of the revisions of nested stacks. Safe to share between threads."""

    def __init__(self) -> None:
        self._redactions = Redactions()
        self._overtaken = OvertakenRevisions()
        self._parent: tuple[tuple[str, int], Content] = (("", 0), EMPTY)

    def next_content(
        self,
        tx: Transaction,
        world: World,
        step: Step,
        nested: StackRow | None,
        nested_id: str,
        before: Content,
        time_left_s: float,
        now: float,
    ) -> Content:
        """Return the content of the next revision of the nested stack.

        Args:
            tx: A consistent read.
            world: World of the parent's shard.
            step: Creation or update of the resource.
            nested: Row of the nested stack; None if it does not exist yet.
            nested_id: Id of the nested stack, existing or new.
            before: Content of the newest revision of the nested stack; `EMPTY` if there is none.
            time_left_s: Seconds that an action of the nested stack may take.

        Raises:
            Rejected, Terminal: The nested stack cannot be as its resource describes it.
        """
        row, parent = step.row, self._parent_of(tx, world)
        kind = type_of(row.type)
        contents = kind.contents if isinstance(kind, NestedStack) else ""
        inside = environment_inside(parent, row.name, row.shown_type) | self._hidden_inside(tx, world, row)
        if contents == "template":
            return from_template(row, parent, inside)
        if isinstance(kind, Composed):
            template = kind.template(kind.complete(row.properties))
            files = parent.files if kind.needs_files else {}
            return Content("template", template, environment=inside, files=files)
        if contents == "chain":
            chain = chain_content(kind.complete(row.properties))
            check_weight(row, chain.template["resource_properties"], len(chain.template["resources"]))
            return replace(chain, environment=inside, files=parent.files)
        if isinstance(kind, SoftwareDeploymentGroup):
            named = named_content(kind, kind.complete(row.properties), new=nested is None)
            return replace(named, environment=inside, files=parent.files)
        requests = self._overtaken.requests_of(tx, world, row)
        adopts, model = document_of(step) is not None, step.act.model if isinstance(step.act, Create) else None
        group = group_revision(tx, world, row, nested, nested_id, before, now, requests, model, adopts=adopts)
        check_weight(row, group.resource_def, min(groups.size_of(group), MEMBERS_PER_SHARD))
        # Only when the series of batches begins: a repeated step has less time left for the rest of the series.
        if nested is None or revisions.intent_of(tx, nested.id, nested.revision) != intent_of(row):
            check_time(group, time_left_s)
        return group_content(group, inside, parent.files)

    def _hidden_inside(self, tx: Transaction, world: World, row: Resource) -> dict[str, Any]:
        """Return the hidden values that reach the nested stack, as a section of its environment."""
        by_name = isinstance(type_of(row.type), TemplateResource)
        texts = self._redactions.over(tx, world.stack).inside(row.name, row.properties, by_name=by_name).texts
        return {environments.INHERITED: sorted(texts)} if texts else {}

    def _parent_of(self, tx: Transaction, world: World) -> Content:
        """Return the parent's revision, read once for consecutive steps on its nested stacks."""
        wanted = (world.stack.id, world.stack.revision)
        name, content = self._parent
        if name != wanted:
            content = revisions.content_of(tx, *wanted)
            # One assignment of a pair: another thread reads either the former pair or this one.
            self._parent = (wanted, content)
        return content


def document_of(step: Step) -> Mapping[str, Any] | None:
    """Return the document that a new nested stack adopts, if any."""
    return (step.act.adopted or {}).get("document") if isinstance(step.act, Create) else None


def intent_of(row: Resource) -> str:
    """Return a text that identifies the current act on a row in progress."""
    return f"{row.token}/{row.revision}/{stamp_of(row.intent)}"
