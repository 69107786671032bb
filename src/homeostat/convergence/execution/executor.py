"""Turns steps into batched calls of a cloud, and returns an answer for each step. Decides nothing itself."""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from homeostat.clock import Clock, Entropy
from homeostat.clouds.counting import one_each
from homeostat.clouds.port import Answer, Change, Cloud, Clouds, Creation
from homeostat.convergence.execution.encrypted_operations import Keys, no_keys, operate
from homeostat.convergence.execution.model_servers import model_settings, names_model
from homeostat.convergence.execution.recovery_calls import RecoveryCalls
from homeostat.convergence.nested_stacks.execution import NestedStacks
from homeostat.convergence.ownership import ShardOwnership
from homeostat.desired.redaction import Redact, redacted
from homeostat.model.errors import HomeostatError, Superseded, Terminal, Uncertain
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.plan import Create, DeleteWithParts, Step, Update, Verb
from homeostat.model.status import Status
from homeostat.model.world import Resource, World
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about, fields, named
from homeostat.planner.scope import thing_of
from homeostat.resources.nested import STACK
from homeostat.resources.registry import type_of

LOG = logging.getLogger(__name__)


class StepExecutor:
    """Executor of steps, against clouds, nested stacks and resources that live in the service alone."""

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
        """Keep the means of execution.

        Args:
            nested_stacks: Executes steps on nested stacks.
            clock: Clock of the observations that are made here.
            entropy: Randomness for generated values.
            pool: Runs the batches concurrently; None runs one after the other.
            keys: Returns the keys for encrypted arguments of operations.
            calls: Calls the workflows and webhooks of health policies; None without policies.
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
            steps: Steps, whose intents are stored if they need that.
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
            batches[step.act.verb, type_of(step.row.type).kind].append(step)

        # Threads of the pool start without the log fields and the trace of the caller's thread.
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

        # A single batch runs in this thread: another one would only add a switch of threads.
        outside = self._pool is not None and len(batches) > 1
        results = self._pool.map(run, batches.items()) if outside and self._pool else map(run, batches.items())
        return [pair for batch in results for pair in batch]

    def _answers(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        try:
            if kind == "":
                return [self._execute_builtin(world, verb, step, redact) for step in steps]
            if kind == STACK:
                deleted: Mapping[str, Answer] = {}
                if verb is Verb.DELETE and len(steps) > 1:
                    deleted = self._nested_stacks.delete_many(world, steps, ownership)
                return [
                    deleted.get(step.row.key) or self._execute_nested(world, step, ownership, redact) for step in steps
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
            # A value that the adapter refuses fails its step for good. A failed batch does not show which step has that
            # value, so its halves are executed separately.
            if _is_value_refused(error) and len(steps) > 1:
                return self._halved(world, verb, kind, steps, ownership, redact)
            if _is_value_refused(error):
                return [self._refused(world, kind, steps[0], Terminal(f"{verb} of {kind}: {error}"))]
            # A broken adapter may have sent its request all the same.
            return [Uncertain(f"{verb} of {kind}: {error!r}")] * len(steps)

    def _halved(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        """Execute the halves of a batch that failed; return an answer for each step.

        The failed call may have created some of the things. They are looked for by token first, since not every cloud
        recognizes a repeated token.
        """
        answers: dict[str, Answer] = {}
        if verb is Verb.CREATE:
            lag_s = self._clouds(world.stack.project).listing_lag_s
            looks = self._answers(world, Verb.FIND, kind, steps, ownership, redact)
            for step, look in zip(steps, looks, strict=True):
                answer = _of_creation(look, f"{verb} of {kind} failed in a batch", lag_s)
                answers |= {step.row.key: answer} if answer is not None else {}
        left = [step for step in steps if step.row.key not in answers]
        middle = (len(left) + 1) // 2
        for half in filter(None, (left[:middle], left[middle:])):
            done = self._answers(world, verb, kind, half, ownership, redact)
            answers |= {step.row.key: answer for step, answer in zip(half, done, strict=True)}
        return [answers[step.row.key] for step in steps]

    def _refused(self, world: World, kind: str, step: Step, refusal: Terminal) -> Answer:
        """Return the answer to a step with a value that the adapter refuses.

        An adapter may refuse only after it has sent the creation. So the cloud is asked for the token first: a FAILED
        row without the handle of its created thing would leak the thing.
        """
        if not isinstance(step.act, Create) or not kind or kind == STACK:
            return refusal
        try:
            cloud = self._clouds(world.stack.project)
            (look,) = cloud.find(kind, [step.row.token])
        except (HomeostatError, ValueError, OSError) as error:
            return Uncertain(f"{refusal}; and whether it was made is not known: {error!r}")
        return _of_creation(look, str(refusal), cloud.listing_lag_s) or refusal

    def _execute_nested(self, world: World, step: Step, ownership: ShardOwnership, redact: Redact) -> Answer:
        """Execute a step on one nested stack; its error is the answer, and does not affect the rest of the batch."""
        try:
            return self._nested_stacks.execute(world, self._with_model(world, step), ownership)
        except Superseded:
            raise
        except HomeostatError as error:
            return _redacted(error, redact)

    def _call_redacted(
        self, world: World, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership, redact: Redact
    ) -> Sequence[Answer]:
        """Return the cloud's answers, redacted; an exception of the call is redacted as well."""
        try:
            cloud = self._clouds(world.stack.project)
            answers = one_each(cloud, verb, kind, len(steps), self._call(world, cloud, verb, kind, steps, ownership))
        except Exception as error:
            hidden_error = redacted(error, redact)
            if hidden_error is error:
                raise
            raise hidden_error from None
        return [_redacted(answer, redact) for answer in answers]

    def _with_model(self, world: World, step: Step) -> Step:
        """Return a creation with the settings of its model server, any other step unchanged."""
        if not isinstance(step.act, Create) or not names_model(step.row):
            return step
        taken = model_settings(self._clouds(world.stack.project), step.row)
        return replace(step, act=replace(step.act, model=taken))

    def _with_parts_inside(self, world: World, step: Step) -> Step:
        """Return a deletion with the thing's parts that nested stacks are deleting, any other step unchanged."""
        if not isinstance(step.act, DeleteWithParts) or not step.act.inside:
            return step
        parts = {kind: list(handles) for kind, handles in step.act.parts.items()}
        for kind, handles in self._nested_stacks.parts_inside(world, step.row).items():
            parts.setdefault(kind, []).extend(handles)
        return replace(step, act=replace(step.act, parts=parts))

    def _execute_builtin(self, world: World, verb: Verb, step: Step, redact: Redact) -> Answer:
        """Execute a step on a resource that lives in the service alone, such as a random string.

        Such a resource is only a row, so it exists once the answer is stored. An adopted resource keeps the id and the
        data of its document.
        """
        now = self._clock.now()
        row, kind = step.row, type_of(step.row.type)
        # A creation whose outcome was not stored has left nothing behind.
        if verb is Verb.FIND:
            return Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.DELETE:
            # Some deletions last a while, judged by the time of their begin.
            row.acted_at = now
            thing = thing_of(world, row, kind)
            lingers = kind.judge(thing, now).condition is Condition.PENDING
            return thing.seen if lingers else Observation(Presence.ABSENT, row.handle, seen_at=now)
        if verb is Verb.OBSERVE:
            return Observation(Presence.PRESENT, row.handle, {}, now)
        try:
            act = self._with_model(world, step).act
        except HomeostatError as error:
            return _redacted(error, redact)
        model, adopted = (act.model or {}, act.adopted or {}) if isinstance(act, Create) else ({}, {})
        body = {**kind.build_object(kind.complete(row.properties), row.token, self._entropy.read), **model}
        body |= {name: value for name, value in adopted.get("data", {}).items() if name in body}
        return Observation(Presence.PRESENT, adopted.get("id") or row.handle or row.key, body, now)

    def _call(
        self, world: World, cloud: Cloud, verb: Verb, kind: str, steps: list[Step], ownership: ShardOwnership
    ) -> Sequence[Answer]:
        if verb is Verb.FIND:
            return cloud.find(kind, [step.row.token for step in steps])
        if verb is Verb.OBSERVE:
            return _observe_by_handle_and_token(cloud, kind, [step.row for step in steps])
        if verb is Verb.OPERATE:
            steps = [self._with_parts_inside(world, step) for step in steps]
        # Everything above only reads, which is harmless even if another worker owns the shard by now.
        ownership.check()
        if verb is Verb.CREATE:
            return cloud.create(
                kind, [Creation(it.row.token, it.act.spec) for it in steps if isinstance(it.act, Create)]
            )
        if verb is Verb.UPDATE:
            changes = [(it.row.handle, it.act) for it in steps if isinstance(it.act, Update)]
            return cloud.update(kind, [Change(handle, act.spec, act.changed) for handle, act in changes])
        if verb is Verb.OPERATE:
            return self._operate(world, cloud, kind, steps)
        return cloud.delete(kind, [step.row.handle for step in steps])

    def _operate(self, world: World, cloud: Cloud, kind: str, steps: Sequence[Step]) -> Sequence[Answer]:
        """Have the cloud carry out operations; call workflows and webhooks."""
        calls = self._calls.answers(world, cloud, kind, steps) if self._calls is not None else {}
        others = [step for step in steps if step.row.key not in calls]
        done = operate(cloud, kind, others, self._keys()) if others else []
        answers = {**calls, **{step.row.key: answer for step, answer in zip(others, done, strict=True)}}
        return [answers[step.row.key] for step in steps]


def _observe_by_handle_and_token(cloud: Cloud, kind: str, rows: Sequence[Resource]) -> list[Answer]:
    """Look for things by handle, and again by token if not found.

    Either listing may omit what the other shows (ADR 0046), and an absent thing is about to be replaced. Adopted and
    external things carry no token.
    """
    looks = one_each(cloud, Verb.OBSERVE, kind, len(rows), cloud.observe(kind, [row.handle for row in rows]))
    missed = [place for place, look in enumerate(looks) if _is_absent(look) and rows[place].token]
    if not missed:
        return looks
    answers = cloud.find(kind, [rows[place].token for place in missed])
    for place, look in zip(missed, one_each(cloud, Verb.FIND, kind, len(missed), answers), strict=True):
        # The token may belong to another thing, created by a late request: that is not the row's thing.
        if isinstance(look, HomeostatError) or (look.handle == rows[place].handle and not _is_absent(look)):
            looks[place] = look
    return looks


def _is_absent(look: Answer) -> bool:
    return isinstance(look, Observation) and look.presence is Presence.ABSENT


def _of_creation(look: Answer, failure: str, lag_s: float) -> Answer | None:
    """Return the answer to a failed creation, from a look for its token; None if nothing was created.

    If the cloud lists late, ABSENT proves nothing yet: the step is tried again, and looks again.
    """
    if isinstance(look, HomeostatError):
        return Uncertain(f"{failure}; and whether it was made is not known: {look}")
    if look.presence is Presence.ABSENT and not lag_s:
        return None
    return look if look.present else Uncertain(failure)


def _is_value_refused(error: Exception) -> bool:
    """Return whether the adapter refused the value it was given.

    Such an error is permanent, unlike a malformed response, whose decoding errors are ValueErrors, too.
    """
    return isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError)


def _redacted(answer: Answer, redact: Redact) -> Answer:
    result = redacted(answer, redact) if isinstance(answer, HomeostatError) else answer
    assert isinstance(result, Observation | HomeostatError)
    return result
