"""Turns steps into batched calls of a cloud, and returns an answer for each step. It decides nothing itself."""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from homeostat.clock import Clock, Entropy
from homeostat.clouds.counting import one_each
from homeostat.clouds.port import Answer, Change, Cloud, Clouds, Creation
from homeostat.convergence.encrypted_operations import Keys, no_keys, operate
from homeostat.convergence.model_servers import names_model, with_model
from homeostat.convergence.nested_stacks.execution import NestedStacks
from homeostat.convergence.ownership import ShardOwnership
from homeostat.convergence.recovery_calls import RecoveryCalls
from homeostat.desired.redaction import Redact, redacted
from homeostat.model.errors import HomeostatError, Superseded, Terminal, Uncertain
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about, fields, named
from homeostat.planner.scope import thing_of
from homeostat.resources.families.launch_configurations import MODEL
from homeostat.resources.nested import STACK
from homeostat.resources.registry import type_of

LOG = logging.getLogger(__name__)


class StepExecutor:
    """Executor of steps, against clouds, nested stacks and what lives in the service alone."""

    def __init__(
        self,
        clouds: Clouds,
        nested_stacks: NestedStacks,
        clock: Clock,
        entropy: Entropy,
        pool: Executor | None = None,
        keys: Keys = no_keys,
        calls: RecoveryCalls | None = None,
    ) -> None:
        """Remember what steps are executed with.

        Args:
            clouds: The cloud as each project sees it.
            nested_stacks: Executes steps on nested stacks.
            clock: Clock of the observations that are made here.
            entropy: Randomness for generated values.
            pool: Runs the batches side by side; None runs them one after the other.
            keys: Returns the keys that open what is encrypted in the arguments of operations.
            calls: Calls the workflows and webhooks of health policies; None where no policy holds.
        """
        self._clouds = clouds
        self._nested_stacks = nested_stacks
        self._clock = clock
        self._entropy = entropy
        self._pool = pool
        self._keys = keys
        self._calls = calls

    def execute(
        self, world: World, steps: Sequence[Step], ownership: ShardOwnership, redact: Redact = str
    ) -> list[tuple[Step, Answer]]:
        """Execute steps: one call for all steps of the same verb and kind of thing.

        Args:
            world: World of the shard that the steps belong to.
            steps: Steps whose intents are stored, where they need that.
            ownership: Ownership of the shard, checked right before each call that acts.
            redact: Redacts the text of an error.

        Returns:
            Each step with its answer, in the order of the batches. Errors of a cloud are answers; they are not raised.

        Raises:
            Superseded: A newer owner has the shard.
        """
        if not steps:
            return []
        batches: dict[tuple[Verb, str], list[Step]] = defaultdict(list)
        for step in steps:
            batches[step.verb, type_of(step.row.type).kind].append(step)

        # Threads of the pool start without the log fields and the trace of this one.
        here, trace = fields(), tracing.here()
        healing = world.stack.status != Status.IN_PROGRESS

        def run(batch: tuple[tuple[Verb, str], list[Step]]) -> list[tuple[Step, Answer]]:
            (verb, kind), members = batch
            started = self._clock.monotonic()
            with about(**here), tracing.span("perform", trace, verb=verb, kind=kind, count=len(members)):
                answers = self._answers(world, verb, kind, members, ownership, redact)
                tracing.answered(answers)
            metrics.acted(verb, kind, answers, self._clock.monotonic() - started, healing=healing)
            return list(zip(members, answers, strict=True))

        outside = self._pool is not None and len(batches) > 1
        results = self._pool.map(run, batches.items()) if outside and self._pool else map(run, batches.items())
        return [each for batch in results for each in batch]

    def _answers(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        try:
            if kind == "":
                return [self._execute_builtin(world, verb, step, redact) for step in steps]
            if kind == STACK:
                gone: Mapping[str, Answer] = {}
                if verb is Verb.DELETE and len(steps) > 1:
                    gone = self._nested_stacks.delete_many(world, steps, ownership)
                return [
                    gone.get(step.row.key) or self._execute_nested(world, step, ownership, redact) for step in steps
                ]
            with tracing.span("call", verb=verb, kind=kind, count=len(steps), project=world.stack.project):
                return self._call_redacted(world, verb, kind, steps, ownership, redact)
        except Superseded:
            raise
        except HomeostatError as error:
            return [error] * len(steps)
        except Exception as error:
            with about(resource=named(step.row.name for step in steps)):
                LOG.exception("%s of %d %s: the adapter failed", verb, len(steps), kind)
            # A value that the adapter cannot take fails its step for good. In a batch nothing says which value that
            # was, so each half is executed by itself.
            if _is_of_the_value(error) and len(steps) > 1:
                return self._halved(world, verb, kind, steps, ownership, redact)
            if _is_of_the_value(error):
                return [self._refused(world, kind, steps[0], Terminal(f"{verb} of {kind}: {error}"))]
            # An adapter that broke may have sent its request all the same.
            return [Uncertain(f"{verb} of {kind}: {error!r}")] * len(steps)

    def _halved(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        """Execute the halves of a batch that failed; return an answer for each step.

        What the failed call may have created is looked for first: not every cloud knows tokens.
        """
        answers: dict[str, Answer] = {}
        if verb is Verb.CREATE:
            lag_s = self._clouds(world.stack.project).listing_lag_s
            looks = self._answers(world, Verb.FIND, kind, steps, ownership, redact)
            for step, look in zip(steps, looks, strict=True):
                made = _of_creation(look, f"{verb} of {kind} failed in a batch", lag_s)
                answers |= {step.row.key: made} if made is not None else {}
        left = [step for step in steps if step.row.key not in answers]
        middle = (len(left) + 1) // 2
        for half in filter(None, (left[:middle], left[middle:])):
            done = self._answers(world, verb, kind, half, ownership, redact)
            answers |= {step.row.key: answer for step, answer in zip(half, done, strict=True)}
        return [answers[step.row.key] for step in steps]

    def _refused(self, world: World, kind: str, step: Step, refusal: Terminal) -> Answer:
        """Return the answer to a step with a value that the adapter cannot take.

        An adapter may notice that only after it has sent the creation. So the cloud is asked for the token first: a
        FAILED row with a thing in the cloud that it does not know of would leak the thing.
        """
        if step.verb is not Verb.CREATE or not kind or kind == STACK:
            return refusal
        try:
            cloud = self._clouds(world.stack.project)
            (look,) = cloud.find(kind, [step.row.token])
        except (HomeostatError, ValueError, OSError) as error:
            return Uncertain(f"{refusal}; and whether it was made is not known: {error!r}")
        return _of_creation(look, str(refusal), cloud.listing_lag_s) or refusal

    def _execute_nested(self, world: World, step: Step, ownership: ShardOwnership, redact: Redact) -> Answer:
        """Execute a step on one nested stack; its error is the answer, and does not spoil the rest of the batch."""
        try:
            return self._nested_stacks.execute(world, self._with_model(world, step), ownership)
        except Superseded:
            raise
        except HomeostatError as error:
            return _redacted(error, redact)

    def _call_redacted(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        """Return the cloud's answers, redacted; an error that the call raises is redacted as well."""
        try:
            cloud = self._clouds(world.stack.project)
            answers = one_each(cloud, verb, kind, len(steps), self._call(world, cloud, verb, kind, steps, ownership))
        except Exception as error:
            shown = redacted(error, redact)
            if shown is error:
                raise
            raise shown from None
        return [_redacted(each, redact) for each in answers]

    def _with_model(self, world: World, step: Step) -> Step:
        """Return a creation with what it takes over from the server that it names, any other step as it is."""
        return with_model(self._clouds(world.stack.project), step) if names_model(step) else step

    def _with_parts_inside(self, world: World, step: Step) -> Step:
        """Return a deletion that takes along what nested stacks are deleting of the thing, any other as it is."""
        if not step.inside:
            return step
        parts = {kind: list(handles) for kind, handles in step.arguments["parts"].items()}
        for kind, handles in self._nested_stacks.parts_inside(world, step.row).items():
            parts.setdefault(kind, []).extend(handles)
        return replace(step, arguments={**step.arguments, "parts": parts})

    def _execute_builtin(self, world: World, verb: Verb, step: Step, redact: Redact) -> Answer:
        """Execute a step on a resource that lives in the service alone, such as a random string.

        It is nothing but its row, so it exists once the answer is stored. An adopted one keeps the id and the data that
        its document gives it.
        """
        now = self._clock.now()
        row, kind = step.row, type_of(step.row.type)
        # A creation whose outcome was not stored has left nothing.
        if verb is Verb.FIND:
            return Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.DELETE:
            # Some take their time to go: their judgement depends on when the deletion began.
            row.acted_at = now
            thing = thing_of(world, row, kind)
            lingers = kind.judge(thing, now).condition is Condition.PENDING
            return thing.seen if lingers else Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.OBSERVE:
            return Observation(Presence.PRESENT, row.handle, {}, now)
        try:
            taken = self._with_model(world, step).arguments.get(MODEL, {})
        except HomeostatError as error:
            return _redacted(error, redact)
        body = {**kind.build_object(kind.complete(row.properties), row.token, self._entropy.read), **taken}
        body |= {name: value for name, value in step.arguments.get("data", {}).items() if name in body}
        return Observation(Presence.PRESENT, step.arguments.get("id") or row.handle or row.key, body, now)

    def _call(
        self, world: World, cloud: Cloud, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership
    ) -> Sequence[Answer]:
        if verb is Verb.FIND:
            return cloud.find(kind, [step.row.token for step in steps])
        if verb is Verb.OBSERVE:
            return _looked_at_both_ways(cloud, kind, [step.row for step in steps])
        if any(step.inside for step in steps):
            steps = [self._with_parts_inside(world, step) for step in steps]
        # Everything above only looks, which does no harm even where another worker owns the shard by now.
        ownership.check()
        if verb is Verb.CREATE:
            return cloud.create(kind, [Creation(step.row.token, step.spec) for step in steps])
        if verb is Verb.UPDATE:
            return cloud.update(kind, [Change(step.row.handle, step.spec, step.changed) for step in steps])
        if verb is Verb.OPERATE:
            return self._operate(world, cloud, kind, steps)
        return cloud.delete(kind, [step.row.handle for step in steps])

    def _operate(self, world: World, cloud: Cloud, kind: str, steps: Sequence[Step]) -> Sequence[Answer]:
        """Have the cloud carry out operations, and call who is to be called."""
        calls = self._calls.answers(world, cloud, kind, steps) if self._calls is not None else {}
        others = [step for step in steps if step.row.key not in calls]
        done = operate(cloud, kind, others, self._keys()) if others else []
        found = {**calls, **{step.row.key: answer for step, answer in zip(others, done, strict=True)}}
        return [found[step.row.key] for step in steps]


def _looked_at_both_ways(cloud: Cloud, kind: str, rows: Sequence[Resource]) -> list[Answer]:
    """Look for things by handle, and those not found once more by token.

    One of the two may leave out what the other finds (ADR 0046), and an absent thing is about to be replaced. A thing
    that was adopted, or that is managed elsewhere, carries no token.
    """
    looks = one_each(cloud, Verb.OBSERVE, kind, len(rows), cloud.observe(kind, [row.handle for row in rows]))
    missed = [place for place, look in enumerate(looks) if _is_absent(look) and rows[place].token]
    if not missed:
        return looks
    found = cloud.find(kind, [rows[place].token for place in missed])
    for place, look in zip(missed, one_each(cloud, Verb.FIND, kind, len(missed), found), strict=True):
        # A token may also find another thing, made by a late request: that is not the thing of this row.
        if isinstance(look, HomeostatError) or (look.handle == rows[place].handle and not _is_absent(look)):
            looks[place] = look
    return looks


def _is_absent(look: Answer) -> bool:
    return isinstance(look, Observation) and look.presence is Presence.ABSENT


def _of_creation(look: Answer, failure: str, lag_s: float) -> Answer | None:
    """Return the answer to a creation that failed, from a look for its token; None if it has made nothing.

    Where the cloud lists late, ABSENT proves nothing yet: the step is tried again, and looks again.
    """
    if isinstance(look, HomeostatError):
        return Uncertain(f"{failure}; and whether it was made is not known: {look}")
    if look.presence is Presence.ABSENT and not lag_s:
        return None
    return look if look.present else Uncertain(failure)


def _is_of_the_value(error: Exception) -> bool:
    """Whether the adapter could not take what it was given.

    Time does not mend that, unlike a malformed response, whose decoding errors are ValueErrors, too.
    """
    return isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError)


def _redacted(answer: Answer, redact: Redact) -> Answer:
    shown = redacted(answer, redact) if isinstance(answer, HomeostatError) else answer
    assert isinstance(shown, Observation | HomeostatError)
    return shown
