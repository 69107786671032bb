"""Previews of adoptions: the resources taken over, and the planner's actions on them afterwards (ADR 0061)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeostat.desired.redaction import Redaction
from homeostat.model.world import Resource
from homeostat.planner.report.adoption import AdoptionPreviewer
from homeostat.planner.report.preview import Fate, ResourcePreview
from homeostat.resources.base import AdoptionTag
from homeostat.resources.registry import is_thing
from homeostat.services.adoption_looks import LookedStack, Obstacle
from homeostat.services.preview import NOT_STORED, Preview, Previewer
from homeostat.transfer import adoption

AS: Mapping[Obstacle, Fate] = {Obstacle.MISSING: Fate.ADDED, Obstacle.FAILING: Fate.UPDATED}
"""Fate of a resource that is not taken over, by the obstacle; other obstacles change nothing."""
MISSING = "the adoption would fail, and an update would make it"


@dataclass(frozen=True, slots=True)
class Finding:
    """A resource that an adoption would not take over, and why."""

    path: tuple[str, ...]
    name: str
    type: str
    handle: str
    obstacle: Obstacle
    reason: str


@dataclass(slots=True)
class AdoptionPreview:
    """Preview of an adoption.

    Attributes:
        preview: Effects on the resources after the adoption.
        findings: Resources that would not be taken over.
        tags: Tags that the adoption itself would write: (path, resource, tag).
    """

    preview: Preview
    findings: list[Finding] = field(default_factory=list)
    tags: list[tuple[tuple[str, ...], str, AdoptionTag]] = field(default_factory=list)


class AdoptedPreviewer(Previewer):
    """Previews the effects of an adoption, after a look at its things."""

    def of_adoption(self, root: LookedStack) -> AdoptionPreview:
        """Preview the adoption of a root stack."""
        self._refuse_conflicts(root)
        assert root.compiled is not None
        preview = AdoptionPreview(self._adopted(root, Redaction().of(root.compiled)))
        for stack in root.all():
            preview.tags += [(stack.path, name, tag) for name, tags in stack.tags.items() for tag in tags]
            for name, (obstacle, reason, row) in stack.obstacles.items():
                preview.findings.append(Finding(stack.path, name, row.shown_type, row.handle, obstacle, reason))
        return preview

    def _refuse_conflicts(self, root: LookedStack) -> None:
        """Give up resources whose things another stack owns, or that the document names twice."""
        stacks = {row.key: stack for stack in root.all() for row in _rows(stack)}
        # Resources without a thing are created again: no other stack can own them.
        rows = [row for stack in root.all() for row in _rows(stack) if is_thing(row.type)]
        for row, reason in list(adoption.conflicts(self._tx, root.world.stack.project, rows)):
            stack = stacks[row.key]
            if row.name in stack.current:
                stack.give_up(row, Obstacle.REFUSED, reason)
                stack.tags.pop(row.name, None)
            else:
                stack.obstacles[row.name] = (Obstacle.REFUSED, reason, row)

    def _adopted(self, stack: LookedStack, redaction: Redaction) -> Preview:
        facts = stack.world.stack
        if stack.compiled is not None:
            redaction = redaction.of(stack.compiled)
        preview = Preview(NOT_STORED, stack.name, facts.project, stack.path, redaction, stack.compiled)

        def inside(note: ResourcePreview) -> bool:
            nested = stack.inside.get(note.name)
            if nested is None:
                return self._inside(preview, stack.content, stack.world, note)
            preview.inside[note.name] = self._adopted(nested, preview.redaction)
            return preview.inside[note.name].changes_anything

        self._limits.check_client()
        preview.resources = AdoptionPreviewer(stack.world, stack.values, inside).preview(self._now)
        for note in preview.resources:
            if note.name in stack.obstacles:
                obstacle, reason, note.row = stack.obstacles[note.name]
                note.fate, note.changed = AS.get(obstacle, Fate.UNCHANGED), ()
                note.why = f"{reason}: {MISSING}" if obstacle is Obstacle.MISSING else reason
        for name, definition in stack.world.definitions.items():
            for required in definition.requires:
                preview.required_by.setdefault(required, []).append(name)
        return preview


def _rows(stack: LookedStack) -> list[Resource]:
    """Return all rows of a stack, also of resources that would not be taken over."""
    return [*stack.current.values(), *(row for _, _, row in stack.obstacles.values())]
