"""Runs the handlers of one thing, and stores the result of each before anything else is done.

What a handler returns or raises becomes a status of the thing; the planner decides what to do about it.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from homeostat.model.errors import Superseded, Transient
from homeostat.model.retry import RetryPolicy
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
"""Errors that time mends, so that the call is retried."""
RETRY = RetryPolicy(first_s=2.0, longest_s=60.0)
CHECK = "CHECK"
FAULT_MAX = 1000
"""Maximum number of characters that are kept of the error of an attribute."""
NOTHING = object()
"""Returned instead of calling a handler when there is nothing to do."""
RETRY_DELETE = {"handle_delete": "asked anew"}
"""Stored as progress in place of a task, which cannot be stored."""
INTERRUPTED = "its {action} was interrupted: how far it came is not known"
Resolve = Callable[[TranslationRule, Any], Any]
Peers = Callable[[str], Mapping[str, Resource]]


class Handlers:
    """The handlers of one class.

    Args:
        plugin_class: The class.
        type_name: The name of its resource type.
        project: The project.
        resolve: (rule, name) -> id, for translation.
        peers: Stack id -> the resources of the stack whose types have handlers, by name.
    """

    def __init__(
        self, plugin_class: type[Resource], type_name: str, project: str, resolve: Resolve, peers: Peers | None = None
    ) -> None:
        self._class = plugin_class
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
        """Update the thing to `wanted`; the handler is given the old properties and the changed ones.

        Changed is also what an update wanted that did not come to its end: it may have been applied, or not.
        """
        inner = turn.made.inner
        schema = self._class.properties_schema

        def call(each: Resource) -> Any:
            self._cancelled(each, turn)
            new = self._translated(each, inner.wanted or {})
            snippet = Definition(inner.name, self._type_name, new, each.metadata_get())
            seen = turn.made.seen
            diff = _difference(
                each.properties, snippet.properties(schema), seen.get("live") or {}, seen.get("unsure") or ()
            )
            if not diff:
                return NOTHING
            return each.handle_update(snippet, TemplateDiff(Properties=bool(diff)), diff)

        self._act(turn, call)

    def delete(self, turn: Turn, before: tuple[str, str] | None = None) -> None:
        """Delete the thing.

        Args:
            turn: The turn.
            before: Its action and status before, for a deletion with a snapshot.
        """

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
        """Ask whether the action in progress is complete."""
        try:
            each, progress = self._instance(turn), turn.made.inner.progress
            if progress == RETRY_DELETE:
                progress = each.handle_delete()
            self._check(turn, each, progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def signal(self, turn: Turn, signals: Sequence[Any]) -> None:
        """Hand signals over, one after the other; one whose handler fails is reported, and not handed over again."""
        for each in signals:
            try:
                outcome = self._call(self._instance(turn), "handle_signal", each.object)
            except exception.NoActionRequired:
                outcome = ""
            except Exception as error:
                LOG.warning("%s did not take a signal", turn.made.handle, exc_info=True)
                outcome = f"failed: {_fault(error)}"
            else:
                outcome = "" if outcome is None else f"Signal: {outcome}"
            turn.things.took(turn, each.seq, each.at, outcome)
        turn.finish(lambda made: None)

    def refresh(self, turn: Turn) -> None:
        """Look at a thing at rest: whether it exists and is well, and what its attributes are."""
        try:
            each = self._instance(turn)
            seen = self._looked(each)
        except (exception.EntityNotFound, exception.NotFound) as error:
            gone = str(error)
            turn.finish(lambda made: made.set_status(GONE, gone))
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
                made.set_status(COMPLETE)
                made.seen |= {**seen, **answers}

            if turn.finish(looked):
                self._report_faults(turn, before)

    # -- one action --------------------------------------------------------------------------------------------------

    def _act(self, turn: Turn, call: Callable[[Resource], Any]) -> None:
        """Call a handler, store what it returned, and poll once at once."""
        try:
            each = self._instance(turn)
            returned = call(each)
            if returned is NOTHING:
                self._complete(turn)
                return
            progress = RETRY_DELETE if self._is_task_of_deletion(turn, returned) else _plain(returned)
            # Stored before the first poll: should the worker die there, the handler must not be called again.
            turn.must(lambda made: _polled(made, progress), name=turn.made.inner.action == "CREATE")
            self._check(turn, each, returned if progress == RETRY_DELETE else progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def _is_task_of_deletion(self, turn: Turn, returned: Any) -> bool:
        """Return whether a deletion returned a task.

        Tasks cannot be stored; that of a deletion need not be, since `handle_delete` can be called again for another.
        """
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
            stored = inner.progress if inner.progress == RETRY_DELETE else _plain(progress)
            turn.finish(lambda made: _wait(made, stored, due_at))
        elif inner.action == "DELETE":
            turn.things.remove(turn)
        else:
            self._complete(turn)

    def _complete(self, turn: Turn) -> None:
        """End an action, and store the attributes and the reference, which other resources may read."""

        def renewed(made: Made) -> None:
            # After a failed update another action may come to its end, which says nothing about what that has applied.
            if made.inner.wanted is not None and made.inner.action == "UPDATE":
                made.inner.properties, made.inner.wanted = made.inner.wanted, None
                made.seen.pop("unsure", None)

        turn.must(renewed)
        before = turn.made.seen.get("attribute_faults") or {}
        answers = self._answers(self._instance(turn), turn.made, at_rest=False)

        def complete(made: Made) -> None:
            made.inner.phase, made.inner.progress, made.inner.tries = DONE, None, 0
            made.seen.pop("live", None)
            made.seen |= answers
            made.set_status(COMPLETE)

        if turn.finish(complete):
            self._report_faults(turn, before)

    def _went_wrong(self, turn: Turn, error: Exception) -> None:
        """Store what an error means for the action in progress."""
        if isinstance(error, Superseded) or turn.lost:
            self._left_behind(turn)
            return
        inner = turn.made.inner
        action, phase = inner.action, inner.phase
        LOG.warning("%s of %s went wrong", action, turn.made.handle, exc_info=error)
        again = action == "DELETE" and isinstance(error, exception.PhysicalResourceExists)
        # Polls and deletions can be repeated. A creation or update whose handler failed half-way cannot: nothing tells
        # how far it came.
        if again or (isinstance(error, LATER) and (phase == POLLED or action == "DELETE")):
            due_at = turn.things.now() + RETRY.delay_s(inner.tries + 1)
            turn.finish(lambda made: _later(made, due_at))
            return
        status = _status_after(error, action)
        turn.finish(lambda made: _ended(made, status, _fault(error)))

    def _left_behind(self, turn: Turn) -> None:
        """Clean up after the turn was lost.

        If the record was deleted before the handler stored an id, only this thread knows the thing that it has created:
        it has to delete it itself.
        """
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
        """Tell the class that the action in progress is cancelled by another one, if it has a handler for that."""
        cancelled = turn.made.inner.progress
        if isinstance(cancelled, dict) and "cancelled" in cancelled:
            self._call(each, f"handle_{cancelled['cancelled']}_cancel", cancelled["progress"])

    # -- instances ---------------------------------------------------------------------------------------------------

    def _instance(self, turn: Turn) -> Resource:
        each = self.stored(turn.made, turn.owner)
        each._keeper = turn
        return each

    def stored(self, made: Made, owner: Owner | None) -> Resource:
        """Return an instance with the stored data, through which nothing can be stored."""
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
        """Return the properties with names resolved to ids.

        A name that cannot be resolved fails only a creation. A thing that exists may have outlived what it refers to,
        and must still be deleted or looked at.
        """
        try:
            return self._translated(each, inner.properties)
        except Exception:
            if inner.action == "CREATE" and inner.phase == BEGUN:
                raise
            LOG.warning("%s goes on without what its names stand for", each, exc_info=True)
            return inner.properties

    def _translated(self, each: Resource, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values with names resolved to ids, if the class has rules for that; errors of the cloud pass."""
        rules = [rule for rule in each.translation_rules(each.properties) or () if rule.rule == rule.RESOLVE]
        return resolved(rules, values, self._resolve) if rules else values

    # -- what it tells -----------------------------------------------------------------------------------------------

    def _looked(self, each: Resource) -> dict[str, Any]:
        """Look at the thing, and return its live state if the class reports one.

        Raises:
            EntityNotFound: The thing is missing.
            Exception: Any other error means that the thing is not well.
        """
        if self.can("check"):
            progress = each.handle_check()  # type: ignore[attr-defined]
            check = getattr(each, "check_check_complete", None)
            if check is not None and not check(progress):
                raise exception.Error("its check does not come to an end")
        if not self._reports_live():
            return {}
        return {"live": as_stored(dict(each.get_live_state(each.properties) or {}))}

    def _reports_live(self) -> bool:
        own = ("get_live_state", "get_live_resource_data", "parse_live_resource_data")
        overridden = any(getattr(self._class, name) is not getattr(Resource, name) for name in own)
        return overridden or bool(self._class.entity and self._class.default_client_name)

    def _answers(self, each: Resource, made: Made, *, at_rest: bool) -> dict[str, Any]:
        """Return the reference and the attributes of a thing, and the errors of attributes that cannot be read.

        Args:
            each: The instance.
            made: The thing.
            at_rest: An attribute that cannot be read keeps its last value. Otherwise, after an action that may have
                changed it, it does so only while the other service cannot be reached.
        """
        known = made.seen.get("attributes") or {}
        attributes: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name in (*each.attributes_schema, each.SHOW):
            try:
                attributes[name] = _value(partial(each._resolve_any_attribute, name))
            except Exception as error:
                LOG.warning("%s cannot tell its attribute %s", each, name, exc_info=True)
                faults[name] = _fault(error)[:FAULT_MAX]
                if name in known and (at_rest or isinstance(error, LATER)):
                    attributes[name] = known[name]
        reference = self._reference(each, made.seen.get("reference"))
        return {"attributes": attributes, "attribute_faults": faults, "reference": reference}

    def _reference(self, each: Resource, known: Any) -> Any:
        try:
            return _value(each.get_reference_id)
        except Exception:
            LOG.warning("%s cannot tell its reference", each, exc_info=True)
            return known

    def _report_faults(self, turn: Turn, before: Mapping[str, Any]) -> None:
        """Store an event for each attribute whose error is new."""
        for name, fault in turn.made.seen.get("attribute_faults", {}).items():
            if before.get(name) != fault:
                turn.things.record(turn, CHECK, f"attributes.{name} cannot be read: {fault}")


def _value(read: Callable[[], Any]) -> Any:
    """Return the result of a method as it is stored; None if it raises that something was not found."""
    try:
        return as_stored(read())
    except (exception.EntityNotFound, exception.NotFound):
        return None


def _difference(
    before: Properties, after: Properties, live: Mapping[str, Any], unsure: Collection[str]
) -> dict[str, Any]:
    """Return the new values of properties that differ from the old ones, or from the live state of the thing.

    Args:
        before: The properties after the last update that came to its end.
        after: The wanted properties.
        live: What the class reports.
        unsure: Names of properties of which it is not known whether they have the old value.
    """
    return {
        name: value
        for name, value in after.items()
        if name in unsure
        or value != before[name]
        or (name in live and value is not None and not comparison.equal(value, live[name]))
    }


def interrupted(made: Made) -> None:
    """End an action whose handler was called by a thread that has died or hangs."""
    fault = INTERRUPTED.format(action=made.inner.action.lower())
    made.inner.interrupted = made.inner.action == "CREATE" and not made.seen.get("id")
    _ended(made, {"CREATE": SPOILT, "UPDATE": AGAIN}.get(made.inner.action, FAILED), fault)


def want(made: Made, properties: dict[str, Any]) -> None:
    """Note what an update wants, and of which properties an earlier one that did not come to its end leaves doubt."""
    inner = made.inner
    if inner.wanted is not None:
        known, tried = inner.properties, inner.wanted
        differing = {name for name in known.keys() | tried.keys() if known.get(name) != tried.get(name)}
        made.seen["unsure"] = sorted(differing | set(made.seen.get("unsure") or ()))
    inner.wanted = properties


def begin(made: Made, action: str, status: str) -> None:
    """Begin an action; if it cancels another one, its handler learns that from `progress`."""
    inner = made.inner
    broken_off = {"cancelled": inner.action.lower(), "progress": inner.progress} if inner.phase == POLLED else None
    made.begin(action, status)
    inner.progress = broken_off
    inner.late = False


def _polled(made: Made, progress: Any) -> None:
    made.inner.phase, made.inner.progress = POLLED, progress


def _wait(made: Made, progress: Any, due_at: float) -> None:
    """Keep polling; the check may have changed `progress`, to keep in it how far it has come."""
    made.inner.progress, made.inner.due_at, made.inner.tries = progress, due_at, 0


def _later(made: Made, due_at: float) -> None:
    made.inner.due_at = due_at
    made.inner.tries += 1


def _ended(made: Made, status: str, fault: str) -> None:
    made.inner.phase, made.inner.progress, made.inner.tries = DONE, None, 0
    made.set_status(status, fault)


def _unwell(made: Made, fault: str) -> None:
    made.inner.action = CHECK
    made.set_status(FAILED, fault)


def _status_after(error: Exception, action: str) -> str:
    """Return the status word after an error.

    A creation that failed with an error that time mends is repeated with another thing: how far it came is unknown.
    """
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
    """Return what a handler returned as it is stored.

    Raises:
        TypeError: It is not plain data.
    """
    try:
        stored = as_stored(value)
    except TypeError as error:
        raise TypeError(f"a handler returned {value!r}: return plain data (texts, numbers, lists, maps)") from error
    return stored


def may_refresh(made: Made) -> bool:
    """Return whether a thing is at rest, so that a look at it may find something new."""
    return made.inner.phase == DONE and (made.status in (COMPLETE, GONE) or made.inner.action == CHECK)
