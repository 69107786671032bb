"""The single write path of the APIs: load -> check -> commit a revision. Never waits for the engine (invariant 8)."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.api.access.auth import Caller
from homeostat.api.http.heavy_requests import GoOn, go_on
from homeostat.api.services.deletion_update import new_policies
from homeostat.api.services.prerequisites import UNAVAILABLE, Nested, Prerequisites, Requirements
from homeostat.api.services.preview import UNBORN, Preview, Previewer, PreviewLimits
from homeostat.api.services.remote_stacks import Remote
from homeostat.api.services.remote_templates import with_fetched
from homeostat.api.services.validation import Expansion, ExpansionLimits, check, check_storable, is_secret, missing
from homeostat.clock import Entropy
from homeostat.clouds.outbound import Outbound
from homeostat.convergence.limits import DEPTH_MAX
from homeostat.desired.graphs import compile_desired, graph_of
from homeostat.identity.trusts import Accept, Requester, StackTrusts, nobodys
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, Terminal, stack_not_found
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import HEAL_SHARE, Resource, Spares
from homeostat.notifications.sinks import Sinks
from homeostat.observability import tracing
from homeostat.resources.custom_constraints import Path
from homeostat.resources.schema import UNKNOWN
from homeostat.store.database import Database
from homeostat.store.stacks import action_begin, cancellation, deletion, locks, revisions, stacks, views
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.revisions import Desired, encode
from homeostat.templates import Compiled, check_immutable, declared_in, parse_template
from homeostat.templates.environments import user_sections
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.registry import without_nulls
from homeostat.templates.shared_environments import SharedEnvironment
from homeostat.transfer import adoption

CheckTypes = Callable[[Mapping[str, Path]], None]
"""Raise Rejected (Forbidden) naming the first of these types that the caller may not use."""


@dataclass(frozen=True, slots=True)
class StackRequest:
    """A requested desired state and options of a stack.

    Options that are None stay as they are, or take their default on create.

    Attributes:
        clear_parameters: Parameters whose stored values are dropped (PATCH only).
        revision: Number of the revision that supplies what this request leaves out; None for the newest (PATCH only).
        look_first: Observe every resource before it counts as settled, however little the template changes.
        check_types: Rejects types that this user may not use; None allows all.
        go_on: Called between steps of the work; raises when the client has disconnected.
    """

    template: Mapping[str, Any] | str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    disable_rollback: bool | None = None
    timeout_mins: int | None = None
    tags: list[str] | None = None
    clear_parameters: Collection[str] = ()
    revision: int | None = None
    look_first: bool = False
    check_types: CheckTypes | None = None
    go_on: GoOn = go_on


@dataclass(frozen=True, slots=True)
class Quotas:
    """The operator's limits and switches for stacks.

    Attributes:
        stacks_max: Live root stacks of a project; admins are exempt.
        resources_max: Resources of a stack and all its nested stacks.
        expanded_max: See `ExpansionLimits`.
        depth_max: See `ExpansionLimits`.
        previewed_max: Resources that a preview reports.
        snapshots_max: Snapshots of one stack.
        timeout_s: Default deadline of an action.
        heal_share: Share of a stack's things that is healed at a time; the same setting as the workers'.
        adopt: Stacks may be adopted.
        abandon: Stacks may be exported and abandoned.
    """

    stacks_max: int = 512
    resources_max: int = 1_000_000
    expanded_max: int = 50_000
    depth_max: int = DEPTH_MAX
    previewed_max: int = 10_000
    snapshots_max: int = 32
    timeout_s: float = 3600.0
    heal_share: float = HEAL_SHARE
    adopt: bool = True
    abandon: bool = True

    @property
    def bounds(self) -> ExpansionLimits:
        return ExpansionLimits(self.resources_max, self.expanded_max, self.depth_max)


class StackService:
    """Accepts desired states from users.

    Args:
        outbound: Fetches texts that users name by URL.
        existing: Knows what exists in the users' clouds; None: every type is available, and named things are not looked
            up.
        shared: The operator's environment, which applies to all stacks.
        sinks: Checks event sinks.
        trusts: Trusts of users in the service; None where it needs none.
    """

    def __init__(
        self,
        db: Database,
        entropy: Entropy,
        quotas: Quotas,
        *,
        outbound: Outbound = Outbound(),
        existing: Prerequisites | None = None,
        shared: SharedEnvironment = SharedEnvironment(),
        sinks: Sinks | None = None,
        trusts: StackTrusts | None = None,
    ) -> None:
        self._trusts = trusts
        self._sinks = Sinks(outbound=outbound) if sinks is None else sinks
        self._shared = shared
        self.existing = Prerequisites(None) if existing is None else existing
        self.outbound = outbound
        self._db = db
        self.entropy = entropy
        self.quotas = quotas

    def compile(self, identity: Identity, desired: Desired, check_types: CheckTypes | None = None) -> Compiled:
        """Compile and check a revision.

        Args:
            check_types: See `StackRequest`.

        Raises:
            Rejected: Names the place and the remedy.
            Transient: The cloud does not answer.
        """
        return self._checked(identity, desired, StackRequest(check_types=check_types))[0]

    def _checked(
        self,
        identity: Identity,
        desired: Desired,
        intent: StackRequest,
        *,
        strict: bool = True,
        ignored: Collection[str] = (),
    ) -> tuple[Compiled, Requirements]:
        """Compile and check a revision; also return what it needs from outside.

        Args:
            intent: The request it comes from.
            strict: Parameters must have values, and things named by the template must exist.
            ignored: Codes of errors to ignore.

        Raises:
            Rejected: Names the place and the remedy.
            Transient: The cloud does not answer.
            ClientGone: The client has disconnected.
        """
        check_storable(desired.template, "template")
        check_storable([desired.parameters, desired.environment], "parameters")
        self._sinks.check(identity.project, desired.sinks)
        expansion, needs = Expansion(self.quotas.bounds, intent.go_on), Requirements()
        compiled = compile_desired(desired, identity, strict=strict, allowance=expansion.allowance)
        check(compiled, desired, needs=needs, expansion=expansion)
        expansion.close()
        if intent.check_types is not None:
            intent.check_types(needs.types)
        try:
            with HiddenValues.of(compiled.parameters).refusals():
                self._check_outside(identity.project, needs, strict=strict, ignored=ignored)
                self._check_remotes(identity.project, needs, intent.go_on, asks=strict)
        except Rejected as error:
            raise compiled.version.dialect.worded(error) from error
        return compiled, needs

    def _check_outside(self, project: str, needs: Requirements, *, strict: bool, ignored: Collection[str]) -> None:
        """Check what is needed from the cloud. Raise Rejected."""
        if UNAVAILABLE not in ignored:
            self.existing.check_types(project, needs.types)
        self.existing.check_logins(needs)
        if strict:
            self.existing.check_mentions(project, needs)
        else:
            self.existing.check_forms(needs)

    def _check_remotes(self, project: str, needs: Requirements, go_on: GoOn, *, asks: bool) -> None:
        """Check stacks that the template creates independently, here or in other regions. Raise Rejected."""
        expansion = Expansion(self.quotas.bounds, go_on)

        def here(remote: Remote) -> None:
            go_on()
            given = {name: value for name, value in remote.parameters.items() if value is not UNKNOWN}
            template = parse_template(remote.template or "")
            desired = self._completed(Desired("template", template, given, files=remote.files))
            compiled = compile_desired(
                desired, Identity(UNBORN, UNBORN, project), strict=False, allowance=expansion.allowance
            )
            expansion.expanding(compiled)
            lacking = [each.name for each in compiled.parameters.values() if missing(each, remote.parameters)]
            if lacking:
                raise Rejected("UserParameterMissing", f"The Parameter ({lacking[0]}) was not provided.")
            inside = Requirements()
            check(compiled, desired, needs=inside, expansion=expansion)
            self.existing.check_types(project, inside.types)

        self.existing.check_remotes(project, needs, here, asks=asks)

    def validate(
        self, identity: Identity, intent: StackRequest, ignored: Collection[str] = ()
    ) -> tuple[Compiled, Mapping[str, Nested]]:
        """Check a template without storing anything; parameters may lack values.

        Args:
            ignored: Codes of errors to ignore.

        Returns:
            The compiled template, and its nested stacks by the names of their resources.

        Raises:
            Rejected: See `compile`.
            Transient: See `compile`.
        """
        compiled, needs = self._checked(identity, self._replacing(intent), intent, strict=False, ignored=ignored)
        return compiled, needs.nested

    def create(
        self,
        project: str,
        owner: str | None,
        name: str,
        intent: StackRequest,
        document: adoption.Document | None = None,
        by: Caller | None = None,
    ) -> str:
        """Store a new stack and wake the engine.

        Args:
            document: Existing things to adopt; None for a plain creation.
            by: The user on whose behalf the service acts later.

        Returns:
            Id of the stack.

        Raises:
            Rejected: Names the place; also where another stack owns a thing of the document.
        """
        if intent.template is None:
            raise Rejected("HTTPBadRequest", "No template specified")
        stack_id = self.entropy.stack_id()
        tracing.note(stack_id=stack_id)
        desired = self._desired(intent.template, intent)
        compiled, needs = self._checked(Identity(stack_id, name, project), desired, intent)
        desired = replace(desired, template=compiled.raw, secret=is_secret(needs), size=len(compiled.definitions))
        new = NewStack(
            stack_id,
            project,
            name,
            owner,
            disable_rollback=intent.disable_rollback is not False,
            timeout_mins=intent.timeout_mins,
            tags=intent.tags,
            action=Action.CREATE if document is None else Action.ADOPT,
        )
        desired = encode(self._db, desired)
        rows = [] if document is None else self._rows(new, desired, compiled, document, self._db.agreed_now())
        adopted = adoption.write_out(self._db, rows, secret=desired.secret is not False)
        with self.entrusted(stack_id, project, by) as accept, self._db.write() as tx:
            limited = by is None or not by.is_admin
            if limited and stacks.count_live(tx, project) >= self.quotas.stacks_max:
                message = (
                    f"You have reached the maximum stacks per project, {self.quotas.stacks_max}. Delete some first."
                )
                raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
            now = self._db.now_of(tx)
            action_begin.add(self._db, tx, new, desired, now, self.quotas.timeout_s)
            try:
                adoption.add(self._db, tx, project, adopted)
            except Terminal as error:
                raise Rejected("StackValidationFailed", str(error)) from error
            accept(tx)
        return stack_id

    def _rows(
        self, new: NewStack, desired: Desired, compiled: Compiled, document: adoption.Document, now: float
    ) -> list[Resource]:
        """Return rows for the things that the stack adopts. Raise Rejected for a resource that the template lacks."""
        entries, graph = adoption.entries_of(document), graph_of(compiled, desired)
        strange = sorted(entries.keys() - graph.keys())
        if strange:
            message = f"the template has no such resource: {adoption.REMEDY}"
            raise Rejected("StackValidationFailed", message, path=("resources", strange[0]))
        return adoption.rows_among(graph, entries, new.id, 0, self.entropy.keys(), now)

    def entrusted(self, root_id: str, project: str, by: Caller | None) -> AbstractContextManager[Accept]:
        """Return a context that holds the caller's trust in the service for a root stack.

        It is empty where the service needs no trust, or cannot get one: the caller sent no token, or acts in another
        project.

        Raises:
            Rejected: Forbidden, where the caller cannot delegate.
            Transient: The identity service does not answer.
        """
        if self._trusts is None or by is None or not by.token or not by.user_id or by.project != project:
            return nullcontext(nobodys)
        requester = Requester(by.user_id, by.user or "", project, by.roles, by.token, by.trust)
        return self._trusts.entrusted(root_id, requester)

    def update(self, stack_id: str, intent: StackRequest, *, patch: bool = False, by: Caller | None = None) -> int:
        """Store a new revision and return its number.

        The newest revision wins in every state, during a deletion too (CV2). An update of a stack that is being deleted
        which changes only deletion policies continues the deletion with these (CV14).

        Args:
            patch: Keep what `intent` leaves out; otherwise replace everything.
        """
        while True:
            number = self._try_update(stack_id, intent, patch=patch, by=by)
            if number is not None:
                return number

    def _try_update(self, stack_id: str, intent: StackRequest, *, patch: bool, by: Caller | None) -> int | None:
        """Try once; return None if another revision was stored in the meantime, which this one must be based on."""
        with self._db.read() as tx:
            # An early refusal spares the work of checking; the lock is checked again when the revision is stored.
            locks.check_unlocked(self._live(tx, stack_id))
        row, desired, _ = self._proposed(stack_id, intent, patch=patch)
        policies = self._new_policies(row, desired)
        desired = encode(self._db, desired)
        with self.entrusted(row.root_id, row.project, by) as accept:
            changes = _changes(intent, patch=patch)
            return self._revise(row, desired, changes, accept, look_first=intent.look_first, policies=policies)

    def _new_policies(self, row: Row[Any], desired: Desired) -> dict[str, str] | None:
        if row.action != Action.DELETE:
            return None
        with self._db.read() as tx:
            before = revisions.desired_of(tx, row.id, views.described_revision(tx, row.id))
        return new_policies(row, before, desired)

    def _proposed(self, stack_id: str, intent: StackRequest, *, patch: bool) -> tuple[Row[Any], Desired, Compiled]:
        """Return the current stack, and the checked revision that an update would store."""
        with self._db.read() as tx:
            row = self._live(tx, stack_id)
            said = views.described_revision(tx, stack_id)
            before = revisions.desired_of(tx, stack_id, said)
            base = before if intent.revision is None else revisions.desired(tx, stack_id, intent.revision)
        if row.spares == Spares.ALL:
            raise _abandoned(row.name)
        if row.suspended:
            raise Rejected("NotSupported", "Updating a stack when it is suspended is not supported.")
        if before.kind != "template":
            raise Rejected("NotSupported", "Updating the stack of a group is not supported: update the group instead.")
        # All of it runs outside of the transaction that stores the revision: compiling and asking clouds take long.
        desired = self._completed(_patched(base, intent)) if patch else self._replacing(intent)
        identity = Identity(row.id, row.name, row.project)
        compiled, needs = self._checked(identity, desired, intent)
        # After a deletion, or a rollback to nothing, the newest revision is empty, and any value may be chosen anew.
        if said == row.revision and any(each.schema.immutable for each in compiled.parameters.values()):
            check_immutable(compile_desired(before, identity, strict=False).parameters, compiled.parameters)
        return (
            row,
            replace(desired, template=compiled.raw, secret=is_secret(needs), size=len(compiled.definitions)),
            compiled,
        )

    def preview_new(self, project: str, name: str, intent: StackRequest) -> Preview:
        """Preview a creation. Raises like `create`."""
        desired = self._replacing(intent)
        compiled, _ = self._checked(Identity(UNBORN, name, project), desired, intent)
        with self._db.read() as tx:
            there = stacks.find(tx, project, name)
            if there is not None and there.deleted_at is None:
                raise Rejected("StackExists", f"The Stack ({name}) already exists.")
            return self._previewer(tx, intent).of_new(name, project, desired, compiled)

    def preview_update(self, stack_id: str, intent: StackRequest, *, patch: bool = False) -> Preview:
        """Preview an update; that of a locked stack, as if it were unlocked. Raises like `update`."""
        row, desired, compiled = self._proposed(stack_id, intent, patch=patch)
        with self._db.read() as tx:
            before = revisions.desired_of(tx, row.id, views.described_revision(tx, row.id))
            policies = new_policies(row, before, desired)
            previewer = self._previewer(tx, intent)
            if policies is not None:
                return previewer.of_deletion(row, before, desired, compiled, policies)
            return previewer.of_update(row, desired, compiled)

    def _previewer(self, tx: Connection, intent: StackRequest) -> Previewer:
        quotas = self.quotas
        limits = PreviewLimits(quotas.depth_max, quotas.previewed_max, intent.go_on)
        return Previewer(tx, self._db.now_of(tx), limits, looks=intent.look_first)

    def delete(self, stack_id: str, by: Caller | None = None) -> None:
        """Store that the stack should not exist (CV12).

        Raises:
            Rejected: EntityNotFound once it is deleted; StackLocked.
        """
        with self._db.read() as tx:
            seen = self._live(tx, stack_id)
        with self.entrusted(seen.root_id, seen.project, by) as accept, self._db.write() as tx:
            row = locks.removable(self._db, tx, stack_id)
            accept(tx)
            if row.action == Action.DELETE and row.status == Status.IN_PROGRESS:
                return
            now, timeout_s = self._db.now_of(tx), self.quotas.timeout_s
            action_begin.revise(self._db, tx, row, Action.DELETE, revisions.EMPTY, now, timeout_s, action_begin.UNHELD)

    def cancel(self, stack_id: str, *, roll_back: bool) -> None:
        """Stop an action of the stack and all its nested stacks.

        Args:
            roll_back: Return to the last COMPLETE revision; otherwise stay as it is, FAILED.

        Raises:
            Rejected: NotSupported where nothing can be cancelled; StackLocked.
        """
        cancellable = (Action.UPDATE,) if roll_back else (Action.UPDATE, Action.CREATE)
        with self._db.write() as tx:
            row = locks.changeable(self._db, tx, stack_id)
            if row.action not in cancellable or row.status != Status.IN_PROGRESS:
                state = joined(row.action, row.status)
                raise Rejected("NotSupported", f"Cancelling update when stack is {state} is not supported.")
            now = self._db.now_of(tx)
            if roll_back:
                action_begin.roll_back(self._db, tx, row, now, self.quotas.timeout_s)
            else:
                cancellation.cancel(self._db, tx, row, now)

    def _revise(
        self,
        seen: Row[Any],
        desired: Desired,
        changes: Mapping[str, Any],
        accept: Accept,
        *,
        look_first: bool,
        policies: Mapping[str, str] | None,
    ) -> int | None:
        """Store the revision; return None if the stack's revision is no longer the one that was read."""
        with self._db.write() as tx:
            row = locks.changeable(self._db, tx, seen.id)
            if row.revision != seen.revision:
                return None
            if row.spares == Spares.ALL:
                raise _abandoned(row.name)
            now = self._db.now_of(tx)
            if look_first:
                changes = {**changes, "look_from": now}
            accept(tx)
            if policies is not None:
                timeout_s = self.quotas.timeout_s
                return deletion.continue_deletion(self._db, tx, row, desired, policies, now, timeout_s, changes)
            return action_begin.revise(self._db, tx, row, Action.UPDATE, desired, now, self.quotas.timeout_s, changes)

    def _live(self, tx: Connection, stack_id: str) -> Row[Any]:
        row = stacks.get(tx, stack_id)
        if row is None or row.deleted_at is not None:
            raise stack_not_found(stack_id)
        return row

    def _replacing(self, intent: StackRequest) -> Desired:
        if intent.template is None:
            raise Rejected("HTTPBadRequest", "No template specified")
        return self._desired(intent.template, intent)

    def _desired(self, template: Mapping[str, Any] | str, intent: StackRequest) -> Desired:
        parsed = template if isinstance(template, Mapping) else parse_template(template)
        given = Desired("template", parsed, intent.parameters, _plain(intent.environment), intent.files)
        return self._completed(given)

    def _completed(self, given: Desired) -> Desired:
        """Add the operator's shared environment, and the templates that are named by URL."""
        shared = self._shared
        environment = {**user_sections(given.environment), **shared.section()}
        completed = replace(given, environment=environment, files={**shared.files, **given.files})
        return with_fetched(completed, self.outbound.fetch)


def _abandoned(name: str) -> Rejected:
    return Rejected("NotSupported", f"Updating stack {name} is not supported: it is being abandoned.")


def _changes(intent: StackRequest, *, patch: bool) -> dict[str, Any]:
    """Return the columns of the stack that an update sets. Omitted tags are cleared, except by a patch."""
    changes: dict[str, Any] = {"tags": intent.tags} if intent.tags is not None or not patch else {}
    if intent.disable_rollback is not None:
        changes["disable_rollback"] = intent.disable_rollback
    if intent.timeout_mins is not None:
        changes["timeout_mins"] = intent.timeout_mins
    return changes


def _patched(before: Desired, intent: StackRequest) -> Desired:
    """Return `before` with `intent` applied on top; stored parameters that the new template lacks are dropped."""
    template = before.template if intent.template is None else intent.template
    parsed = template if isinstance(template, Mapping) else parse_template(template)
    stored = _given(before.environment, before.parameters)
    declared = declared_in(parsed, "parameters")
    kept = {name: value for name, value in stored.items() if name not in intent.clear_parameters and name in declared}
    environment = {
        section: _merged(before.environment.get(section), intent.environment.get(section))
        for section in {*before.environment, *intent.environment} - {"parameters"}
    }
    parameters = kept | _given(intent.environment, intent.parameters)
    return Desired("template", parsed, parameters, _plain(environment), {**before.files, **intent.files})


def _merged(before: Any, said: Any) -> Any:
    """Merge one section of the environment: maps are merged, anything else is replaced if given."""
    if isinstance(before, Mapping) and isinstance(said, Mapping):
        return {**before, **said}
    return before if said is None else said


def _plain(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment without the registry entries that its nulls remove."""
    section = environment.get("resource_registry")
    return {**environment, "resource_registry": without_nulls(section)} if section else dict(environment)


def _given(environment: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter values; those given apart from the environment win."""
    return {**environment.get("parameters", {}), **parameters}
