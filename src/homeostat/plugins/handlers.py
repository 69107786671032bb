"""Runs the handlers of one thing, and stores what came of each before anything else is done.

What a handler returns or raises becomes a status of the thing: the planner decides what is done about it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from homeostat.model.errors import Superseded, Transient
from homeostat.plugins import exception
from homeostat.plugins.properties import Properties
from homeostat.plugins.resource import Context, Definition, Resource, Stack, TemplateDiff
from homeostat.plugins.scheduler import TaskRunner
from homeostat.plugins.things import BEGUN, DONE, GONE, POLLED, Inner, Made, Turn
from homeostat.plugins.translation import TranslationRule, resolved
from homeostat.plugins.types import AGAIN, COMPLETE, FAILED, REPLACE, SPOILT
from homeostat.resources import comparison
from homeostat.store.builtin.records import Owner
from homeostat.store.schema import as_stored

LOG = logging.getLogger(__name__)
LATER = (Transient, ConnectionError, TimeoutError, exception.UpdateInProgress)
"""Errors that time mends."""
RETRY_S, RETRY_MAX_S = 2.0, 60.0
CHECK = "CHECK"
FAULT_MAX = 1000
"""Characters that are kept of why an attribute cannot be told."""
NOTHING = object()
"""There is nothing to be done: the handler is not called, and its thing is as it should be."""
ASKED_ANEW = {"handle_delete": "asked anew"}
"""Kept instead of a task, which cannot be."""
INTERRUPTED = "its {action} was interrupted: nobody knows how far it came"
Resolve = Callable[[TranslationRule, Any], Any]
Peers = Callable[[str], Mapping[str, Resource]]


class Handlers:
    """The handlers of one class. resolve — (rule, name) -> id, for translation; peers — stack's id -> the resources of
    it whose types have handlers, by name."""

    def __init__(
        self, handled: type[Resource], type_name: str, project: str, resolve: Resolve, peers: Peers | None = None
    ) -> None:
        self._class = handled
        self._type_name = type_name
        self._project = project
        self._resolve = resolve
        self._peers: Peers = peers or (lambda _stack_id: {})

    # -- actions -----------------------------------------------------------------------------------------------------

    def create(self, turn: Turn) -> None:
        def call(each: Resource) -> Any:
            return self._call(each, "handle_create")

        self._act(turn, call)

    def update(self, turn: Turn) -> None:
        """Bring it to `wanted`. The handler sees the old properties, and what differs in the new ones."""
        inner = turn.made.inner
        schema = self._class.properties_schema

        def call(each: Resource) -> Any:
            self._cancelled(each, turn)
            new = self._translated(each, inner.wanted or {})
            snippet = Definition(inner.name, self._type_name, new, each.metadata_get())
            diff = _difference(each.properties, snippet.properties(schema), turn.made.seen.get("live") or {})
            if not diff:
                return NOTHING
            return each.handle_update(snippet, TemplateDiff(Properties=bool(diff)), diff)

        self._act(turn, call)

    def delete(self, turn: Turn, before: tuple[str, str] | None = None) -> None:
        """before — the state that it had, for a deletion with a snapshot."""

        def call(each: Resource) -> Any:
            self._cancelled(each, turn)
            if before is not None and turn.made.seen.get("snapshots"):
                return self._call(each, "handle_snapshot_delete", before)
            return each.handle_delete()

        self._act(turn, call)

    def operate(self, turn: Turn, verb: str, arguments: Mapping[str, Any]) -> None:
        self._act(turn, lambda each: self._call(each, f"handle_{verb}", *arguments.values()))

    def can(self, verb: str) -> bool:
        return callable(getattr(self._class, f"handle_{verb}", None))

    def poll(self, turn: Turn) -> None:
        """Ask whether what goes on is complete."""
        try:
            each, progress = self._instance(turn), turn.made.inner.progress
            if progress == ASKED_ANEW:
                progress = each.handle_delete()
            self._check(turn, each, progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def signal(self, turn: Turn, signals: Sequence[Any]) -> None:
        """Hand over what it was told, one after the other. What fails is told, and not handed over again."""
        for each in signals:
            try:
                said = self._call(self._instance(turn), "handle_signal", each.object)
            except exception.NoActionRequired:
                said = ""
            except Exception as error:
                LOG.warning("%s did not take a signal", turn.made.handle, exc_info=True)
                said = f"failed: {_fault(error)}"
            else:
                said = "" if said is None else f"Signal: {said}"
            turn.things.took(turn, each.seq, each.at, said)
        turn.finish(lambda made: None)

    def refresh(self, turn: Turn) -> None:
        """Look at a thing at rest: is it there and well, what does it say of itself?"""
        try:
            each = self._instance(turn)
            seen = self._looked(each)
        except (exception.EntityNotFound, exception.NotFound) as error:
            gone = str(error)
            turn.finish(lambda made: made.tell(GONE, gone))
        except LATER as error:
            LOG.warning("cannot look at %s: %s", turn.made.handle, error)
            turn.finish(lambda made: None)
        except Exception as error:
            LOG.warning("%s is not well", turn.made.handle, exc_info=True)
            fault = _fault(error)
            turn.finish(lambda made: _unwell(made, fault))
        else:
            before = turn.made.seen.get("attribute_faults") or {}
            answers = self._answers(each, turn.made, at_rest=True)

            def looked(made: Made) -> None:
                made.tell(COMPLETE)
                made.seen |= {**seen, **answers}

            if turn.finish(looked):
                self._tell_faults(turn, before)

    # -- one action --------------------------------------------------------------------------------------------------

    def _act(self, turn: Turn, call: Callable[[Resource], Any]) -> None:
        """Call a handler, store what it returned, and ask at once whether that is all."""
        try:
            each = self._instance(turn)
            returned = call(each)
            if returned is NOTHING:
                self._complete(turn)
                return
            progress = ASKED_ANEW if self._is_task_of_deletion(turn, returned) else _plain(returned)
            turn.must(lambda made: _polled(made, progress), name=turn.made.inner.action == "CREATE")
            self._check(turn, each, returned if progress == ASKED_ANEW else progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def _is_task_of_deletion(self, turn: Turn, returned: Any) -> bool:
        """A task cannot be stored. That of a deletion need not be: `handle_delete` gives another one each time."""
        return turn.made.inner.action == "DELETE" and isinstance(returned, TaskRunner)

    def _check(self, turn: Turn, each: Resource, progress: Any) -> None:
        inner = turn.made.inner
        check = getattr(each, f"check_{inner.action.lower()}_complete", None)
        due_at = 0.0
        try:
            ready = check is None or bool(check(progress))
        except exception.PollDelay as delay:
            ready, due_at = False, turn.things.now() + delay.period
        if not ready:
            kept = inner.progress if inner.progress == ASKED_ANEW else _plain(progress)
            turn.finish(lambda made: _wait(made, kept, due_at))
        elif inner.action == "DELETE":
            turn.things.remove(turn)
        else:
            self._complete(turn)

    def _complete(self, turn: Turn) -> None:
        """It is what it should be: what others may ask of it is kept."""

        def renewed(made: Made) -> None:
            if made.inner.wanted is not None:
                made.inner.properties, made.inner.wanted = made.inner.wanted, None

        turn.must(renewed)
        before = turn.made.seen.get("attribute_faults") or {}
        answers = self._answers(self._instance(turn), turn.made, at_rest=False)

        def complete(made: Made) -> None:
            made.inner.phase, made.inner.progress, made.inner.tries = DONE, None, 0
            made.seen.pop("live", None)
            made.seen |= answers
            made.tell(COMPLETE)

        if turn.finish(complete):
            self._tell_faults(turn, before)

    def _went_wrong(self, turn: Turn, error: Exception) -> None:
        if isinstance(error, Superseded) or turn.lost:
            self._left_behind(turn)
            return
        inner = turn.made.inner
        action, phase = inner.action, inner.phase
        LOG.warning("%s of %s went wrong", action, turn.made.handle, exc_info=error)
        again = action == "DELETE" and isinstance(error, exception.PhysicalResourceExists)
        if again or (isinstance(error, LATER) and (phase == POLLED or action == "DELETE")):
            due_at = turn.things.now() + min(RETRY_S * 2**inner.tries, RETRY_MAX_S)
            turn.finish(lambda made: _later(made, due_at))
            return
        status = _status_after(error, action)
        turn.finish(lambda made: _ended(made, status, _fault(error)))

    def _left_behind(self, turn: Turn) -> None:
        """Somebody else has taken over. What was made after the thing had been deleted, nobody else knows of."""
        if turn.orphan is None:
            return
        LOG.warning("%s %s was made after its deletion, and is deleted", self._type_name, turn.orphan)
        try:
            each = self._instance(turn)
            each.resource_id = turn.orphan
            each.handle_delete()
        except Exception:
            LOG.exception("%s %s was made after its deletion, and stays", self._type_name, turn.orphan)

    def _call(self, each: Resource, name: str, *arguments: Any) -> Any:
        handler = getattr(each, name, None)
        return None if handler is None else handler(*arguments)

    def _cancelled(self, each: Resource, turn: Turn) -> None:
        """Something else is wanted of a thing that is not ready: whoever wants to know is told."""
        cancelled = turn.made.inner.progress
        if isinstance(cancelled, dict) and "cancelled" in cancelled:
            self._call(each, f"handle_{cancelled['cancelled']}_cancel", cancelled["progress"])

    # -- instances ---------------------------------------------------------------------------------------------------

    def _instance(self, turn: Turn) -> Resource:
        each = self.stored(turn.made, turn.owner)
        each._keeper = turn
        return each

    def stored(self, made: Made, owner: Owner | None) -> Resource:
        """An instance as it is stored: nothing can be kept through it."""
        inner = made.inner
        context = Context(self._project)
        stack = Stack(context=context)
        template_metadata = None
        if owner is not None:
            stack = Stack(owner.stack_name, owner.stack_id, context, partial(self._peers, owner.stack_id))
            template_metadata = owner.metadata
        metadata = inner.metadata if inner.metadata is not None else template_metadata
        each = self._class(inner.name, Definition(inner.name, self._type_name, inner.properties, metadata), stack)
        each.resource_id = made.seen.get("id")
        each.uuid = each.id = made.record_id
        each.action, each.status = inner.action, "COMPLETE" if inner.phase == DONE else "IN_PROGRESS"
        each._data = dict(inner.data)
        each._physical_name = inner.physical_name
        values = self._bearable(each, inner)
        if values is not inner.properties:
            each.properties = Properties(self._class.properties_schema, values)
        return each

    def _bearable(self, each: Resource, inner: Inner) -> dict[str, Any]:
        """Its values with names brought to ids. What cannot be found stops only what is to be made: what is there may
        have outlived what it refers to."""
        try:
            return self._translated(each, inner.properties)
        except Exception:
            if inner.action == "CREATE" and inner.phase == BEGUN:
                raise
            LOG.warning("%s goes on without what its names stand for", each, exc_info=True)
            return inner.properties

    def _translated(self, each: Resource, values: dict[str, Any]) -> dict[str, Any]:
        """With names brought to ids, where the class has rules for that. Fails: as the cloud does."""
        rules = [rule for rule in each.translation_rules(each.properties) or () if rule.rule == rule.RESOLVE]
        return resolved(rules, values, self._resolve) if rules else values

    # -- what it tells -----------------------------------------------------------------------------------------------

    def _looked(self, each: Resource) -> dict[str, Any]:
        """Fails: whatever says that the thing is not well; EntityNotFound when it is gone."""
        if self.can("check"):
            progress = each.handle_check()  # type: ignore[attr-defined]
            check = getattr(each, "check_check_complete", None)
            if check is not None and not check(progress):
                raise exception.Error("its check does not come to an end")
        if not self._tells_live():
            return {}
        return {"live": as_stored(dict(each.get_live_state(each.properties) or {}))}

    def _tells_live(self) -> bool:
        own = ("get_live_state", "get_live_resource_data", "parse_live_resource_data")
        overridden = any(getattr(self._class, name) is not getattr(Resource, name) for name in own)
        return overridden or bool(self._class.entity and self._class.default_client_name)

    def _answers(self, each: Resource, made: Made, *, at_rest: bool) -> dict[str, Any]:
        """Its reference and attributes, and why which attributes cannot be told.

        at_rest — what was told before is still believed; else only while its side cannot be reached.
        """
        known = made.seen.get("attributes") or {}
        told: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name in (*each.attributes_schema, each.SHOW):
            try:
                told[name] = _value(partial(each._resolve_any_attribute, name))
            except Exception as error:
                LOG.warning("%s cannot tell its attribute %s", each, name, exc_info=True)
                faults[name] = _fault(error)[:FAULT_MAX]
                if name in known and (at_rest or isinstance(error, LATER)):
                    told[name] = known[name]
        reference = self._reference(each, made.seen.get("reference"))
        return {"attributes": told, "attribute_faults": faults, "reference": reference}

    def _reference(self, each: Resource, known: Any) -> Any:
        try:
            return _value(each.get_reference_id)
        except Exception:
            LOG.warning("%s cannot tell its reference", each, exc_info=True)
            return known

    def _tell_faults(self, turn: Turn, before: Mapping[str, Any]) -> None:
        """An event for each attribute that could be told before, or was never asked for, and cannot be now."""
        for name, fault in turn.made.seen.get("attribute_faults", {}).items():
            if before.get(name) != fault:
                turn.things.record(turn, CHECK, f"attributes.{name} cannot be told: {fault}")


def _value(ask: Callable[[], Any]) -> Any:
    """What a method tells; None of what is not there."""
    try:
        return as_stored(ask())
    except (exception.EntityNotFound, exception.NotFound):
        return None


def _difference(before: Properties, after: Properties, live: Mapping[str, Any]) -> dict[str, Any]:
    """New values of what changes: against what was wanted before, and what was changed by somebody else since."""
    return {
        name: value
        for name, value in after.items()
        if value != before[name] or (name in live and value is not None and not comparison.equal(value, live[name]))
    }


def interrupted(made: Made) -> None:
    """Its handler was called, and whoever called it is dead or hangs."""
    fault = INTERRUPTED.format(action=made.inner.action.lower())
    made.inner.interrupted = made.inner.action == "CREATE" and not made.seen.get("id")
    _ended(made, {"CREATE": SPOILT, "UPDATE": AGAIN}.get(made.inner.action, FAILED), fault)


def begin(made: Made, action: str, status: str) -> None:
    """An action begins. Its handler is told of the one that it breaks off."""
    inner = made.inner
    broken_off = {"cancelled": inner.action.lower(), "progress": inner.progress} if inner.phase == POLLED else None
    made.begin(action, status)
    inner.progress = broken_off
    inner.late = False


def _polled(made: Made, progress: Any) -> None:
    made.inner.phase, made.inner.progress = POLLED, progress


def _wait(made: Made, progress: Any, due_at: float) -> None:
    """Not ready. progress — as the check left it: it may keep in it how far it came."""
    made.inner.progress, made.inner.due_at, made.inner.tries = progress, due_at, 0


def _later(made: Made, due_at: float) -> None:
    made.inner.due_at = due_at
    made.inner.tries += 1


def _ended(made: Made, status: str, fault: str) -> None:
    made.inner.phase, made.inner.progress, made.inner.tries = DONE, None, 0
    made.tell(status, fault)


def _unwell(made: Made, fault: str) -> None:
    made.inner.action = CHECK
    made.tell(FAILED, fault)


def _status_after(error: Exception, action: str) -> str:
    """What a failed action leaves. A creation that time would mend is made anew: nobody knows how far it came."""
    if action == "CREATE":
        return SPOILT if isinstance(error, (exception.ResourceInError, *LATER)) else FAILED
    if action == "UPDATE":
        if isinstance(error, exception.UpdateReplace):
            return REPLACE
        return AGAIN if isinstance(error, LATER) else FAILED
    return FAILED


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _plain(value: Any) -> Any:
    """What a handler returns is stored. Fails: TypeError for what is no plain data."""
    try:
        stored = as_stored(value)
    except TypeError as error:
        raise TypeError(f"a handler returned {value!r}: return plain data (texts, numbers, lists, maps)") from error
    return stored


def may_refresh(made: Made) -> bool:
    """Is it at rest, so that a look at it tells something new?"""
    return made.inner.phase == DONE and (made.status in (COMPLETE, GONE) or made.inner.action == CHECK)
