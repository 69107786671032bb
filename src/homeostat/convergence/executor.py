"""Steps become calls of a cloud, in batches; what comes back is an answer for each step. No choices are made here."""

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor

from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Answer, Change, Cloud, Clouds, Creation, Operation
from homeostat.convergence.nested_stacks import STACK, NestedStacks, ShardGuard
from homeostat.desired.redaction import Told, veiled
from homeostat.model.errors import HomeostatError, Superseded, Terminal, Uncertain
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about, fields, named
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import type_of

LOG = logging.getLogger(__name__)


class StepExecutor:
    """Carries out steps. executor — where batches run side by side; None runs them one after the other."""

    def __init__(
        self,
        clouds: Clouds,
        children: NestedStacks,
        clock: Clock,
        entropy: Entropy,
        executor: Executor | None = None,
    ) -> None:
        self._clouds = clouds
        self._children = children
        self._clock = clock
        self._entropy = entropy
        self._executor = executor

    def perform(
        self, world: World, steps: Sequence[Step], guard: ShardGuard, told: Told = str
    ) -> list[tuple[Step, Answer]]:
        """One answer a step; never raises for what a cloud does wrong. told — what may be told of an error.

        Fails: Superseded when `guard` says so; it is asked right before each call that acts.
        """
        if not steps:
            return []
        batches: dict[tuple[Verb, str], list[Step]] = defaultdict(list)
        for step in steps:
            batches[step.verb, type_of(step.row.type).kind].append(step)

        here, trace = fields(), tracing.here()
        healing = world.stack.status != Status.IN_PROGRESS

        def run(batch: tuple[tuple[Verb, str], list[Step]]) -> list[tuple[Step, Answer]]:
            (verb, kind), members = batch
            started = self._clock.monotonic()
            with about(**here), tracing.span("perform", trace, verb=verb, kind=kind, count=len(members)):
                answers = self._answers(world, verb, kind, members, guard, told)
                tracing.answered(answers)
            metrics.acted(verb, kind, answers, self._clock.monotonic() - started, healing=healing)
            return list(zip(members, answers, strict=True))

        outside = self._executor is not None and len(batches) > 1
        results = self._executor.map(run, batches.items()) if outside and self._executor else map(run, batches.items())
        return [each for batch in results for each in batch]

    def _answers(
        self, world: World, verb: Verb, kind: str, steps: list[Step], guard: ShardGuard, told: Told
    ) -> Sequence[Answer]:
        try:
            if kind == "":
                return [self._embodied(world, verb, step) for step in steps]
            if kind == STACK:
                return [self._child(world, step, guard, told) for step in steps]
            with tracing.span("call", verb=verb, kind=kind, count=len(steps), project=world.stack.project):
                return self._called(world, verb, kind, steps, guard, told)
        except Superseded:
            raise
        except HomeostatError as error:
            return [error] * len(steps)
        except Exception as error:
            with about(resource=named(step.row.name for step in steps)):
                LOG.exception("%s of %d %s: the adapter failed", verb, len(steps), kind)
            if len(steps) == 1 and _is_of_the_value(error):
                return [self._refused(world, kind, steps[0], Terminal(f"{verb} of {kind}: {error}"))]
            return [Uncertain(f"{verb} of {kind}: {error!r}")] * len(steps)

    def _refused(self, world: World, kind: str, step: Step, refusal: Terminal) -> Answer:
        """The answer to a step with a value that the adapter cannot take: what was made before it noticed counts."""
        if step.verb is not Verb.CREATE or not kind or kind == STACK:
            return refusal
        try:
            cloud = self._clouds(world.stack.project)
            (look,) = cloud.find(kind, [step.row.token])
        except (HomeostatError, ValueError, OSError) as error:
            return Uncertain(f"{refusal}; and whether it was made cannot be told: {error!r}")
        if look.presence is Presence.ABSENT and not cloud.listing_lag_s:
            return refusal
        return look if look.present else Uncertain(str(refusal))

    def _child(self, world: World, step: Step, guard: ShardGuard, told: Told) -> Answer:
        """One child stack that cannot be had does not spoil the others."""
        try:
            return self._children.perform(world, step, guard)
        except Superseded:
            raise
        except HomeostatError as error:
            return _told(error, told)

    def _called(
        self, world: World, verb: Verb, kind: str, steps: list[Step], guard: ShardGuard, told: Told
    ) -> Sequence[Answer]:
        """What the cloud answers, without what must not be told. Fails: whatever it raises, told as carefully."""
        try:
            answers = self._call(self._clouds(world.stack.project), verb, kind, steps, guard)
        except Exception as error:
            shown = veiled(error, told)
            if shown is error:
                raise
            raise shown from None
        return [_told(each, told) for each in answers]

    def _embodied(self, world: World, verb: Verb, step: Step) -> Answer:
        """Things that live in the service alone. They may have ids that somebody else has given them."""
        now = self._clock.now()
        row, kind = step.row, type_of(step.row.type)
        if verb is Verb.FIND:
            return Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.DELETE:
            row.acted_at = now
            thing = thing_of(world, row, kind)
            lingers = kind.judge(thing, now).condition is Condition.PENDING
            return thing.seen if lingers else Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.OBSERVE:
            return Observation(Presence.PRESENT, row.handle, {}, now)
        body = kind.embody(kind.complete(row.properties), row.token, self._entropy.read)
        body |= {name: value for name, value in step.arguments.get("data", {}).items() if name in body}
        return Observation(Presence.PRESENT, step.arguments.get("id") or row.handle or row.key, body, now)

    def _call(self, cloud: Cloud, verb: Verb, kind: str, steps: list[Step], guard: ShardGuard) -> Sequence[Answer]:
        if verb is Verb.FIND:
            return cloud.find(kind, [step.row.token for step in steps])
        if verb is Verb.OBSERVE:
            return _looked_at_both_ways(cloud, kind, [step.row for step in steps])
        guard.check()
        if verb is Verb.CREATE:
            return cloud.create(kind, [Creation(step.row.token, step.spec) for step in steps])
        if verb is Verb.UPDATE:
            return cloud.update(kind, [Change(step.row.handle, step.spec, step.changed) for step in steps])
        if verb is Verb.OPERATE:
            return cloud.operate(kind, [Operation(step.row.handle, step.operation, step.arguments) for step in steps])
        return cloud.delete(kind, [step.row.handle for step in steps])


def _looked_at_both_ways(cloud: Cloud, kind: str, rows: Sequence[Resource]) -> list[Answer]:
    """What is there by its handle, or, where nothing is, by its token: one of the two may leave out what the other
    finds (ADR 0046). What was given or adopted carries no token of ours."""
    looks: list[Answer] = list(cloud.observe(kind, [row.handle for row in rows]))
    missed = [place for place, look in enumerate(looks) if _is_absent(look) and rows[place].token]
    found = cloud.find(kind, [rows[place].token for place in missed]) if missed else []
    for place, look in zip(missed, found, strict=True):
        if not _is_absent(look) and look.handle == rows[place].handle:
            looks[place] = look
    return looks


def _is_absent(look: Answer) -> bool:
    return isinstance(look, Observation) and look.presence is Presence.ABSENT


def _is_of_the_value(error: Exception) -> bool:
    """Could the adapter not take what it was given? Time does not mend that; it may mend an answer out of shape."""
    return isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError)


def _told(answer: Answer, told: Told) -> Answer:
    shown = veiled(answer, told) if isinstance(answer, HomeostatError) else answer
    assert isinstance(shown, Observation | HomeostatError)
    return shown
