"""Runs the handlers of a resource, and stores the result of each before anything else is done.

Return values and errors of handlers become a status of the resource; the planner decides how to react.
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
from homeostat.plugins.things import BEGUN, DONE, GONE, POLLED, Inner, StoredThing, Turn
from homeostat.plugins.translation import TranslationRule, resolved
from homeostat.plugins.types import AGAIN, COMPLETE, FAILED, REPLACE, SPOILT
from homeostat.resources import comparison
from homeostat.store.builtin.records import Owner
from homeostat.store.schema import as_stored

LOG = logging.getLogger(__name__)
LATER = (Transient, ConnectionError, TimeoutError, exception.UpdateInProgress)
"""Transient errors: the call is retried."""
RETRY = RetryPolicy(first_s=2.0, longest_s=60.0)
CHECK = "CHECK"
FAULT_MAX = 1000
"""Maximum number of characters stored of the error of an attribute."""
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
        type_name: Name of its resource type.
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
        def call(resource: Resource) -> Any:
            return self._call(resource, "handle_create")

        self._act(turn, call)

    def update(self, turn: Turn) -> None:
        """Update to `wanted`; the handler gets the old properties and the changed ones.

        Properties of an earlier, unfinished update count as changed: they may have been applied, or not.
        """
        inner = turn.thing.inner
        schema = self._class.properties_schema

        def call(resource: Resource) -> Any:
            self._cancelled(resource, turn)
            new = self._translated(resource, inner.wanted or {})
            snippet = Definition(inner.name, self._type_name, new, resource.metadata_get())
            seen = turn.thing.seen
            diff = _difference(
                resource.properties, snippet.properties(schema), seen.get("live") or {}, seen.get("unsure") or ()
            )
            if not diff:
                return NOTHING
            return resource.handle_update(snippet, TemplateDiff(Properties=bool(diff)), diff)

        self._act(turn, call)

    def delete(self, turn: Turn, before: tuple[str, str] | None = None) -> None:
        """Delete the resource.

        Args:
            before: Its action and status before, for a deletion with a snapshot.
        """

        def call(resource: Resource) -> Any:
            self._cancelled(resource, turn)
            if before is not None and turn.thing.seen.get("snapshots"):
                return self._call(resource, "handle_snapshot_delete", before)
            return resource.handle_delete()

        self._act(turn, call)

    def operate(self, turn: Turn, verb: str, arguments: Mapping[str, Any]) -> None:
        self._act(turn, lambda resource: self._call(resource, f"handle_{verb}", *arguments.values()))

    def can(self, verb: str) -> bool:
        return callable(getattr(self._class, f"handle_{verb}", None))

    def poll(self, turn: Turn) -> None:
        """Ask whether the action in progress is complete."""
        try:
            resource, progress = self._instance(turn), turn.thing.inner.progress
            if progress == RETRY_DELETE:
                progress = resource.handle_delete()
            self._check(turn, resource, progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def signal(self, turn: Turn, signals: Sequence[Any]) -> None:
        """Deliver signals, one after the other; a signal whose handler fails is reported, and not delivered again."""
        for signal in signals:
            try:
                outcome = self._call(self._instance(turn), "handle_signal", signal.object)
            except exception.NoActionRequired:
                outcome = ""
            except Exception as error:
                LOG.warning("%s did not take a signal", turn.thing.handle, exc_info=True)
                outcome = f"failed: {_fault(error)}"
            else:
                outcome = "" if outcome is None else f"Signal: {outcome}"
            turn.things.took(turn, signal.seq, signal.at, outcome)
        turn.finish(lambda thing: None)

    def refresh(self, turn: Turn) -> None:
        """Observe a resource at rest: its existence, its health, and its attributes."""
        try:
            resource = self._instance(turn)
            seen = self._looked(resource)
        except (exception.EntityNotFound, exception.NotFound) as error:
            reason = str(error)
            turn.finish(lambda thing: thing.set_status(GONE, reason))
        except LATER as error:
            LOG.warning("cannot look at %s: %s", turn.thing.handle, error)
            turn.finish(lambda thing: None)
        except Exception as error:
            LOG.warning("%s is not well", turn.thing.handle, exc_info=True)
            fault = _fault(error)
            turn.finish(lambda thing: _unwell(thing, fault))
        else:
            before = turn.thing.seen.get("attribute_faults") or {}
            answers = self._answers(resource, turn.thing, at_rest=True)

            def looked(thing: StoredThing) -> None:
                thing.set_status(COMPLETE)
                thing.seen |= {**seen, **answers}

            if turn.finish(looked):
                self._report_faults(turn, before)

    # -- one action --------------------------------------------------------------------------------------------------

    def _act(self, turn: Turn, call: Callable[[Resource], Any]) -> None:
        """Call a handler, store its return value, and poll once immediately."""
        try:
            resource = self._instance(turn)
            returned = call(resource)
            if returned is NOTHING:
                self._complete(turn)
                return
            progress = RETRY_DELETE if self._is_task_of_deletion(turn, returned) else _plain(returned)
            # Stored before the first poll: if the worker dies there, the handler must not be called again.
            turn.must(lambda thing: _polled(thing, progress), name=turn.thing.inner.action == "CREATE")
            self._check(turn, resource, returned if progress == RETRY_DELETE else progress)
        except Exception as error:  # noqa: BLE001 — whatever a plug-in raises is an answer
            self._went_wrong(turn, error)

    def _is_task_of_deletion(self, turn: Turn, returned: Any) -> bool:
        """Return whether a deletion returned a task.

        Tasks cannot be stored; for a deletion this is not necessary, since another call of `handle_delete` returns a
        new task.
        """
        return turn.thing.inner.action == "DELETE" and isinstance(returned, TaskRunner)

    def _check(self, turn: Turn, resource: Resource, progress: Any) -> None:
        inner = turn.thing.inner
        check = getattr(resource, f"check_{inner.action.lower()}_complete", None)
        due_at = 0.0
        try:
            ready = check is None or bool(check(progress))
        except exception.PollDelay as delay:
            ready, due_at = False, turn.things.now() + delay.period
        if not ready:
            stored = inner.progress if inner.progress == RETRY_DELETE else _plain(progress)
            turn.finish(lambda thing: _wait(thing, stored, due_at))
        elif inner.action == "DELETE":
            turn.things.remove(turn)
        else:
            self._complete(turn)

    def _complete(self, turn: Turn) -> None:
        """End an action, and store the attributes and the reference, which dependent resources may read."""

        def renewed(thing: StoredThing) -> None:
            # An action that ends after a failed update says nothing about the properties that the update has applied.
            if thing.inner.wanted is not None and thing.inner.action == "UPDATE":
                thing.inner.properties, thing.inner.wanted = thing.inner.wanted, None
                thing.seen.pop("unsure", None)

        turn.must(renewed)
        before = turn.thing.seen.get("attribute_faults") or {}
        answers = self._answers(self._instance(turn), turn.thing, at_rest=False)

        def complete(thing: StoredThing) -> None:
            thing.inner.phase, thing.inner.progress, thing.inner.tries = DONE, None, 0
            thing.seen.pop("live", None)
            thing.seen |= answers
            thing.set_status(COMPLETE)

        if turn.finish(complete):
            self._report_faults(turn, before)

    def _went_wrong(self, turn: Turn, error: Exception) -> None:
        """Store the consequence of an error for the action in progress."""
        if isinstance(error, Superseded) or turn.lost:
            self._left_behind(turn)
            return
        inner = turn.thing.inner
        action, phase = inner.action, inner.phase
        LOG.warning("%s of %s went wrong", action, turn.thing.handle, exc_info=error)
        again = action == "DELETE" and isinstance(error, exception.PhysicalResourceExists)
        # Polls and deletions can be repeated; a creation or update whose handler failed half-way cannot, as its
        # progress is unknown.
        if again or (isinstance(error, LATER) and (phase == POLLED or action == "DELETE")):
            due_at = turn.things.now() + RETRY.delay_s(inner.tries + 1)
            turn.finish(lambda thing: _later(thing, due_at))
            return
        status = _status_after(error, action)
        turn.finish(lambda thing: _ended(thing, status, _fault(error)))

    def _left_behind(self, turn: Turn) -> None:
        """Clean up after the loss of the turn.

        If the record was deleted before the handler stored an id, only this thread knows the new object, and has to
        delete it.
        """
        if turn.orphan is None:
            return
        LOG.warning("%s %s was made after its deletion, and is deleted", self._type_name, turn.orphan)
        try:
            resource = self._instance(turn)
            resource.resource_id = turn.orphan
            resource.handle_delete()
        except Exception:
            LOG.exception("%s %s was made after its deletion, and stays", self._type_name, turn.orphan)

    def _call(self, resource: Resource, name: str, *arguments: Any) -> Any:
        handler = getattr(resource, name, None)
        return None if handler is None else handler(*arguments)

    def _cancelled(self, resource: Resource, turn: Turn) -> None:
        """Inform the class about the cancellation of the action in progress, if it has a handler for cancellations."""
        cancelled = turn.thing.inner.progress
        if isinstance(cancelled, dict) and "cancelled" in cancelled:
            self._call(resource, f"handle_{cancelled['cancelled']}_cancel", cancelled["progress"])

    # -- instances ---------------------------------------------------------------------------------------------------

    def _instance(self, turn: Turn) -> Resource:
        resource = self.stored(turn.thing, turn.owner)
        resource._keeper = turn
        return resource

    def stored(self, thing: StoredThing, owner: Owner | None) -> Resource:
        """Return an instance with the stored data, which refuses to store anything."""
        inner = thing.inner
        context = Context(self._project)
        stack = Stack(context=context)
        template_metadata = None
        if owner is not None:
            stack = Stack(owner.stack_name, owner.stack_id, context, partial(self._peers, owner.stack_id))
            template_metadata = owner.metadata
        metadata = inner.metadata if inner.metadata is not None else template_metadata
        resource = self._class(inner.name, Definition(inner.name, self._type_name, inner.properties, metadata), stack)
        resource.resource_id = thing.seen.get("id")
        resource.uuid = resource.id = thing.record_id
        resource.action, resource.status = inner.action, "COMPLETE" if inner.phase == DONE else "IN_PROGRESS"
        resource._data = dict(inner.data)
        resource._physical_name = inner.physical_name
        values = self._bearable(resource, inner)
        if values is not inner.properties:
            resource.properties = Properties(self._class.properties_schema, values)
        return resource

    def _bearable(self, resource: Resource, inner: Inner) -> dict[str, Any]:
        """Return the properties with names resolved to ids.

        An unresolvable name fails only a creation. An existing resource may have outlived the objects named in its
        properties, and must still be deleted or observed.
        """
        try:
            return self._translated(resource, inner.properties)
        except Exception:
            if inner.action == "CREATE" and inner.phase == BEGUN:
                raise
            LOG.warning("%s goes on without what its names stand for", resource, exc_info=True)
            return inner.properties

    def _translated(self, resource: Resource, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values with names resolved to ids, if the class has rules for them; errors of the cloud pass."""
        rules = [rule for rule in resource.translation_rules(resource.properties) or () if rule.rule == rule.RESOLVE]
        return resolved(rules, values, self._resolve) if rules else values

    # -- reported values ---------------------------------------------------------------------------------------------

    def _looked(self, resource: Resource) -> dict[str, Any]:
        """Observe the object, and return its live state if the class reports one.

        Raises:
            EntityNotFound: The object is missing.
            Exception: Any other error means unhealthy.
        """
        if self.can("check"):
            progress = resource.handle_check()  # type: ignore[attr-defined]
            check = getattr(resource, "check_check_complete", None)
            if check is not None and not check(progress):
                raise exception.Error("its check does not come to an end")
        if not self._reports_live():
            return {}
        return {"live": as_stored(dict(resource.get_live_state(resource.properties) or {}))}

    def _reports_live(self) -> bool:
        methods = ("get_live_state", "get_live_resource_data", "parse_live_resource_data")
        overridden = any(getattr(self._class, name) is not getattr(Resource, name) for name in methods)
        return overridden or bool(self._class.entity and self._class.default_client_name)

    def _answers(self, resource: Resource, thing: StoredThing, *, at_rest: bool) -> dict[str, Any]:
        """Return the reference and the attributes, and the errors of unreadable attributes.

        Args:
            thing: The stored resource.
            at_rest: Whether an unreadable attribute keeps its last value. False after an action that may have changed
                its value: then the last value stays only while the external service is unreachable.
        """
        known = thing.seen.get("attributes") or {}
        attributes: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name in (*resource.attributes_schema, resource.SHOW):
            try:
                attributes[name] = _value(partial(resource._resolve_any_attribute, name))
            except Exception as error:
                LOG.warning("%s cannot tell its attribute %s", resource, name, exc_info=True)
                faults[name] = _fault(error)[:FAULT_MAX]
                if name in known and (at_rest or isinstance(error, LATER)):
                    attributes[name] = known[name]
        reference = self._reference(resource, thing.seen.get("reference"))
        return {"attributes": attributes, "attribute_faults": faults, "reference": reference}

    def _reference(self, resource: Resource, known: Any) -> Any:
        try:
            return _value(resource.get_reference_id)
        except Exception:
            LOG.warning("%s cannot tell its reference", resource, exc_info=True)
            return known

    def _report_faults(self, turn: Turn, before: Mapping[str, Any]) -> None:
        """Store an event for each attribute whose error is new."""
        for name, fault in turn.thing.seen.get("attribute_faults", {}).items():
            if before.get(name) != fault:
                turn.things.record(turn, CHECK, f"attributes.{name} cannot be read: {fault}")


def _value(read: Callable[[], Any]) -> Any:
    """Return the result of a method in its stored form; None if the method raises a "not found" error."""
    try:
        return as_stored(read())
    except (exception.EntityNotFound, exception.NotFound):
        return None


def _difference(
    before: Properties, after: Properties, live: Mapping[str, Any], unsure: Collection[str]
) -> dict[str, Any]:
    """Return the new values of properties that differ from the old values, or from the live state.

    Args:
        before: The properties after the last successful update.
        after: The wanted properties.
        live: The live state reported by the class.
        unsure: Names of properties that may or may not have the old value.
    """
    return {
        name: value
        for name, value in after.items()
        if name in unsure
        or value != before[name]
        or (name in live and value is not None and not comparison.equal(value, live[name]))
    }


def interrupted(thing: StoredThing) -> None:
    """End an action whose handler was called by a thread that has died or hangs."""
    fault = INTERRUPTED.format(action=thing.inner.action.lower())
    thing.inner.interrupted = thing.inner.action == "CREATE" and not thing.seen.get("id")
    _ended(thing, {"CREATE": SPOILT, "UPDATE": AGAIN}.get(thing.inner.action, FAILED), fault)


def want(thing: StoredThing, properties: dict[str, Any]) -> None:
    """Record the properties of an update, and which properties are unsure after an earlier, unfinished update."""
    inner = thing.inner
    if inner.wanted is not None:
        known, tried = inner.properties, inner.wanted
        differing = {name for name in known.keys() | tried.keys() if known.get(name) != tried.get(name)}
        thing.seen["unsure"] = sorted(differing | set(thing.seen.get("unsure") or ()))
    inner.wanted = properties


def begin(thing: StoredThing, action: str, status: str) -> None:
    """Begin an action; a handler learns from `progress` that its action cancels a previous one."""
    inner = thing.inner
    broken_off = {"cancelled": inner.action.lower(), "progress": inner.progress} if inner.phase == POLLED else None
    thing.begin(action, status)
    inner.progress = broken_off
    inner.late = False


def _polled(thing: StoredThing, progress: Any) -> None:
    thing.inner.phase, thing.inner.progress = POLLED, progress


def _wait(thing: StoredThing, progress: Any, due_at: float) -> None:
    """Keep polling; the check may have recorded its progress in `progress`."""
    thing.inner.progress, thing.inner.due_at, thing.inner.tries = progress, due_at, 0


def _later(thing: StoredThing, due_at: float) -> None:
    thing.inner.due_at = due_at
    thing.inner.tries += 1


def _ended(thing: StoredThing, status: str, fault: str) -> None:
    thing.inner.phase, thing.inner.progress, thing.inner.tries = DONE, None, 0
    thing.set_status(status, fault)


def _unwell(thing: StoredThing, fault: str) -> None:
    thing.inner.action = CHECK
    thing.set_status(FAILED, fault)


def _status_after(error: Exception, action: str) -> str:
    """Return the status word after an error.

    A creation that failed with a transient error is repeated with a new object, as the progress of the first is
    unknown.
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
    """Return the return value of a handler in its stored form.

    Raises:
        TypeError: The value is not plain data.
    """
    try:
        stored = as_stored(value)
    except TypeError as error:
        raise TypeError(f"a handler returned {value!r}: return plain data (texts, numbers, lists, maps)") from error
    return stored


def may_refresh(thing: StoredThing) -> bool:
    """Return whether a resource is at rest, so that an observation may find something new."""
    return thing.inner.phase == DONE and (thing.status in (COMPLETE, GONE) or thing.inner.action == CHECK)
