"""The single write path of the APIs: every desired state goes through `pipeline`.

Nothing here waits for the engine (invariant 8).
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from homeostat.clock import Entropy
from homeostat.clouds.outbound import Outbound
from homeostat.clouds.port import Cloud
from homeostat.desired.compiling import compile_desired
from homeostat.identity.trusts import Accept, Requester, StackTrusts, accept_nothing
from homeostat.model.caller import Caller
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, stack_not_found
from homeostat.model.status import Action, Status, joined
from homeostat.notifications.sinks import Sinks
from homeostat.observability import tracing
from homeostat.services import listed_groups
from homeostat.services.adoption_looks import AdoptionLooker
from homeostat.services.adoption_preview import AdoptedPreviewer, AdoptionPreview
from homeostat.services.deletion_update import new_policies
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.checked import Checked
from homeostat.services.pipeline.merging import Merger
from homeostat.services.pipeline.prerequisites import UNAVAILABLE, Prerequisites
from homeostat.services.pipeline.request import CheckTypes, StackRequest
from homeostat.services.pipeline.requirements import Nested
from homeostat.services.pipeline.stages import Pipeline
from homeostat.services.pipeline.storing import (
    RevisionStore,
    TransactionStep,
    check_not_abandoned,
    check_room,
    no_step,
)
from homeostat.services.preview import NOT_STORED, Preview, Previewer, PreviewLimits
from homeostat.services.quotas import Quotas
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import action_begin, cancellation, locks, revisions, stacks, views
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import Content
from homeostat.store.stacks.revisions import NewRevision
from homeostat.templates import (
    Compiled,
    check_immutable,
)
from homeostat.templates.shared_environments import SharedEnvironment
from homeostat.transfer import adoption


@dataclass(frozen=True, slots=True)
class PreparedStack:
    """A checked stack that is not stored yet."""

    new: NewStack
    content: Content
    revision: NewRevision


OF_RESOURCES = frozenset({"group", "chain"})
"""Kinds of revisions that describe a resource of the parent stack, not a template."""
UPDATE_THE_RESOURCE = (
    "Updating this stack with a template, parameters, an environment or files is not supported: update the resource "
    "that it belongs to. A PATCH without these repairs its failed and marked members."
)


class StackService:
    """Accepts desired states from users.

    Args:
        outbound: Fetches texts that users name by URL.
        prerequisites: Lookups in the users' clouds; None: every type is available, and named things are not looked up.
        shared: The operator's environment, which applies to all stacks.
        sinks: Checks event sinks.
        trusts: Trusts of users in the service; None if the service needs no trusts.
    """

    def __init__(
        self,
        db: Database,
        entropy: Entropy,
        quotas: Quotas,
        *,
        outbound: Outbound = Outbound(),
        prerequisites: Prerequisites | None = None,
        shared: SharedEnvironment = SharedEnvironment(),
        sinks: Sinks | None = None,
        trusts: StackTrusts | None = None,
    ) -> None:
        self._trusts = trusts
        self.prerequisites = Prerequisites(None) if prerequisites is None else prerequisites
        self.outbound = outbound
        known_sinks = Sinks(outbound=outbound) if sinks is None else sinks
        self.graphs = Graphs()
        merger = Merger(shared, outbound.fetch)
        self._pipeline = Pipeline(merger, self.prerequisites, known_sinks, outbound.check_now, self.graphs)
        self._revisions = RevisionStore(db, entropy)
        self._db = db
        self.entropy = entropy
        self.quotas = quotas

    def check(self, identity: Identity, content: Content, check_types: CheckTypes | None = None) -> None:
        """Check a stored desired state.

        Args:
            check_types: See `StackRequest`.

        Raises:
            Rejected: Names the place and the remedy.
            Transient: The cloud does not answer.
        """
        self._pipeline.check(identity, content, self.quotas.expansion_limits, check_types=check_types)

    def check_new(self, project: str, request: StackRequest) -> None:
        """Check a creation, also against the clouds, without storing it. Raises like `create`."""
        self._pipeline.run(Identity(NOT_STORED, "check", project), request, self.quotas.expansion_limits)

    def validate(
        self, identity: Identity, request: StackRequest, ignored: Collection[str] = ()
    ) -> tuple[Compiled, Mapping[str, Nested]]:
        """Check a template without storing anything; parameters may lack values.

        Args:
            ignored: Codes of errors to ignore.

        Returns:
            The compiled template, and its nested stacks by the names of their resources.

        Raises:
            Rejected: See `Pipeline.run`.
            Transient: See `Pipeline.run`.
        """
        limits = self.quotas.expansion_limits
        checked = self._pipeline.run(identity, request, limits, strict=False, ignored=ignored)
        return checked.compiled, checked.needs.nested

    def create(
        self,
        project: str,
        owner: str | None,
        name: str,
        request: StackRequest,
        document: adoption.Document | None = None,
        by: Caller | None = None,
        *,
        stack_id: str | None = None,
        also: TransactionStep = no_step,
    ) -> str:
        """Store a new stack and wake the engine.

        Args:
            document: Existing things to adopt; None for a plain creation.
            by: The user on whose behalf the service acts later.
            stack_id: Id of the stack; None to generate it.
            also: Further step of the transaction.

        Returns:
            Id of the stack.

        Raises:
            Rejected: Names the place; also if another stack owns a thing of the document.
        """
        stack_id = stack_id or self.entropy.stack_id()
        tracing.note(stack_id=stack_id)
        checked = self._pipeline.run(Identity(stack_id, name, project), request, self.quotas.expansion_limits)
        new = NewStack(
            stack_id,
            project,
            name,
            owner,
            disable_rollback=request.disable_rollback is not False,
            timeout_mins=request.timeout_mins,
            tags=request.tags,
            template_source=request.template_source,
            action=Action.CREATE if document is None else Action.ADOPT,
        )
        stacks_max = self.quotas.stacks_max if by is None or not by.is_admin else None
        trust = self.entrusted(stack_id, project, by)
        timeout_s = self.quotas.timeout_s
        self._revisions.add_stack(new, checked, document, trust, timeout_s=timeout_s, stacks_max=stacks_max, also=also)
        return stack_id

    def prepare(self, new: NewStack, request: StackRequest) -> PreparedStack:
        """Check a new stack, for `add_prepared` in another transaction. Raises like `create`."""
        identity = Identity(new.id, new.name, new.project)
        checked = self._pipeline.run(identity, request, self.quotas.expansion_limits)
        return PreparedStack(new, checked.content, checked.revision(self._db))

    def add_prepared(self, tx: Transaction, prepared: PreparedStack, by: Caller | None) -> None:
        """Store a prepared stack, and wake the engine.

        Raises:
            Rejected: StackExists; RequestLimitExceeded.
        """
        check_room(tx, prepared.new.project, self.quotas.stacks_max if by is None or not by.is_admin else None)
        action_begin.add(tx, prepared.new, prepared.revision, tx.recent_now(), self.quotas.timeout_s)

    def entrusted(self, root_id: str, project: str, by: Caller | None) -> AbstractContextManager[Accept]:
        """Return a context that holds the caller's trust in the service for a root stack.

        The context is empty if the service needs no trust, or if the caller sent no token or acts in another project.

        Raises:
            Rejected: Forbidden if the caller cannot create a trust.
            Transient: The identity service does not answer.
        """
        if self._trusts is None or by is None or not by.token or not by.user_id or by.project != project:
            return nullcontext(accept_nothing)
        requester = Requester(by.user_id, by.user or "", project, by.roles, by.token, by.trust)
        return self._trusts.entrusted(root_id, requester)

    def update(
        self,
        stack_id: str,
        request: StackRequest,
        *,
        patch: bool = False,
        by: Caller | None = None,
        also: TransactionStep = no_step,
        first: TransactionStep = no_step,
    ) -> int:
        """Store a new revision and return its number.

        The newest revision wins in every state, even during a deletion (CV2). But an update that changes only the
        deletion policies of a stack that is being deleted continues the deletion with the new policies (CV14).

        Args:
            patch: Keep everything that `request` omits; otherwise replace the whole desired state.
            also: Further step of the transaction; called while the stack is locked.
            first: See `RevisionStore.add_revision`.
        """
        while True:
            # This ends: each further turn means that another request has stored its revision.
            number = self._try_update(stack_id, request, patch=patch, by=by, also=also, first=first)
            if number is not None:
                return number

    def _try_update(
        self,
        stack_id: str,
        request: StackRequest,
        *,
        patch: bool,
        by: Caller | None,
        also: TransactionStep,
        first: TransactionStep,
    ) -> int | None:
        """Try once; return None if another revision was stored in the meantime: a retry has to start from it."""
        with self._db.read() as tx:
            # Refuse locked stacks before the expensive checks. The lock is checked again when the revision is stored.
            row = self._live(tx, stack_id)
            locks.check_unlocked(row)
            kind = revisions.get(tx, stack_id, row.revision).kind
        if kind in OF_RESOURCES and patch and _changes_nothing(request):
            return self._begin_again(stack_id, also, first)
        if kind == "group":
            return self._list_members(stack_id, request, patch=patch, by=by, also=also, first=first)
        row, checked = self._proposed(stack_id, request, patch=patch)
        return self._revisions.add_revision(
            row,
            checked.revision(self._db),
            _changes(request, patch=patch),
            self.entrusted(row.root_id, row.project, by),
            timeout_s=self.quotas.timeout_s,
            look_first=request.look_first,
            policies=self._new_policies(row, checked.content),
            also=also,
            first=first,
        )

    def _list_members(
        self,
        stack_id: str,
        request: StackRequest,
        *,
        patch: bool,
        by: Caller | None,
        also: TransactionStep,
        first: TransactionStep,
    ) -> int | None:
        """Try to store the members that a template of a group's own stack lists; returns as `_try_update`."""
        with self._db.read() as tx:
            row = self._live(tx, stack_id)
            before = revisions.content_of(tx, stack_id, row.revision)
            # Read now: the next batch of an update of the group may delete this revision during the check.
            intent = revisions.intent_of(tx, stack_id, row.revision)
        _check_changeable(row)
        if before.kind != "group":
            return None
        identity, limits = Identity(row.id, row.name, row.project), self.quotas.expansion_limits
        whole = listed_groups.request_of(before, request)
        checked = self._pipeline.run(identity, whole, limits, base=listed_groups.base_of(before))
        listed = listed_groups.listed_in(checked, before)
        with self._db.read() as tx:
            secret, now = checked.secret, tx.now()
            revision = listed_groups.revision_of(tx, row, before, listed, intent=intent, secret=secret, now=now)

        def fits(tx: Transaction) -> None:
            listed_groups.check_room(tx, row, revision, self.quotas.resources_max)
            first(tx)

        return self._revisions.add_revision(
            row,
            revision,
            _changes(request, patch=patch),
            self.entrusted(row.root_id, row.project, by),
            timeout_s=self.quotas.timeout_s,
            look_first=request.look_first,
            policies=None,
            also=also,
            first=fits,
        )

    def _begin_again(self, stack_id: str, also: TransactionStep, first: TransactionStep) -> int:
        """Begin an update of the stack of a group or chain that only repairs failed and marked members.

        Raises:
            Rejected: EntityNotFound; StackLocked; NotSupported for a suspended or abandoned stack.
        """
        with self._db.write() as tx:
            row = locks.changeable(tx, stack_id)
            _check_changeable(row)
            first(tx)
            # The new revision keeps the intent, so that an action of the parent's resource in progress can continue.
            intent, now = revisions.intent_of(tx, row.id, row.revision), tx.now()
            number = action_begin.converge(tx, row, now, self.quotas.timeout_s, intent)
            also(tx)
            return number

    def _new_policies(self, row: StackRow, content: Content) -> dict[str, str] | None:
        if row.action != Action.DELETE:
            return None
        with self._db.read() as tx:
            before = revisions.content_of(tx, row.id, views.described_revision(tx, row.id))
        return new_policies(row, before, content)

    def _proposed(self, stack_id: str, request: StackRequest, *, patch: bool) -> tuple[StackRow, Checked]:
        """Return the current stack, and the checked desired state that an update would store."""
        with self._db.read() as tx:
            row = self._live(tx, stack_id)
            described = views.described_revision(tx, stack_id)
            before = revisions.stored(tx, stack_id, described)
            base = None
            if request.revision is not None:
                base = revisions.reusable_content(tx, stack_id, request.revision)
            elif patch:
                base = before.decoded()
        _check_changeable(row)
        if before.kind != "template":
            raise Rejected("NotSupported", UPDATE_THE_RESOURCE)
        # Outside of the transaction that stores the revision: compiling and calling clouds take long.
        identity = Identity(row.id, row.name, row.project)
        limits = self.quotas.expansion_limits
        checked = self._pipeline.run(identity, request, limits, base=base if patch else None)
        parameters = checked.compiled.parameters
        # After a deletion, or a rollback to nothing, the newest revision is empty, and any value may change.
        if described == row.revision and any(parameter.schema.immutable for parameter in parameters.values()):
            check_immutable(compile_desired(before.decoded(), identity, strict=False).parameters, parameters)
        return row, checked

    def preview_new(self, project: str, name: str, request: StackRequest) -> Preview:
        """Preview a creation. Raises like `create`."""
        checked = self._pipeline.run(Identity(NOT_STORED, name, project), request, self.quotas.expansion_limits)
        with self._db.read() as tx:
            _check_free(tx, project, name)
            return self._previewer(tx, request).of_new(name, project, checked.content, checked.compiled)

    def preview_adoption(
        self, project: str, name: str, request: StackRequest, document: adoption.Document, cloud: Cloud
    ) -> AdoptionPreview:
        """Preview a creation that adopts existing things, after a look at them. Raises like `create`.

        Conflicts with the cloud or with other stacks are reported in the preview, not raised.

        Args:
            document: Names the things.
            cloud: The caller's view of the cloud with the things.
        """
        identity = Identity(NOT_STORED, name, project)
        limits = self._preview_limits(request)
        checked = self._pipeline.run(identity, request, self.quotas.expansion_limits, ignored=(UNAVAILABLE,))
        with self._db.read() as tx:
            _check_free(tx, project, name)
        looker = AdoptionLooker(self._db, cloud, project, limits, self._db.agreed_now())
        looked = looker.look(name, checked.content, checked.compiled, document)
        with self._db.read() as tx:
            return AdoptedPreviewer(tx, tx.now(), limits).of_adoption(looked)

    def preview_update(self, stack_id: str, request: StackRequest, *, patch: bool = False) -> Preview:
        """Preview an update. Raises like `update`."""
        with self._db.read() as tx:
            locks.check_unlocked(self._live(tx, stack_id))
        row, checked = self._proposed(stack_id, request, patch=patch)
        after = checked.content
        with self._db.read() as tx:
            before = revisions.content_of(tx, row.id, views.described_revision(tx, row.id))
            policies = new_policies(row, before, after)
            previewer = self._previewer(tx, request, row.timeout_mins)
            if policies is not None:
                return previewer.of_deletion(row, before, after, checked.compiled, policies)
            return previewer.of_update(row, after, checked.compiled)

    def _previewer(self, tx: Transaction, request: StackRequest, timeout_mins: int | None = None) -> Previewer:
        limits = self._preview_limits(request, timeout_mins)
        return Previewer(tx, tx.now(), limits, converges=request.look_first)

    def _preview_limits(self, request: StackRequest, timeout_mins: int | None = None) -> PreviewLimits:
        """Return the limits of a preview. The request may override `timeout_mins`, the timeout of the stack."""
        minutes = timeout_mins if request.timeout_mins is None else request.timeout_mins
        timeout_s = stacks.timeout_of(minutes, self.quotas.timeout_s)
        return PreviewLimits(self.quotas.depth_max, self.quotas.previewed_max, request.check_client, timeout_s)

    def delete(self, stack_id: str, by: Caller | None = None, *, also: TransactionStep = no_step) -> None:
        """Store that the stack should not exist (CV12), and `also` in the same transaction.

        Raises:
            Rejected: EntityNotFound for a deleted stack; StackLocked.
        """
        with self._db.read() as tx:
            seen = self._live(tx, stack_id)
        with self.entrusted(seen.root_id, seen.project, by) as accept, self._db.write() as tx:
            row = locks.removable(tx, stack_id)
            accept(tx)
            if row.action == Action.DELETE and row.status == Status.IN_PROGRESS:
                return
            locks.lift(tx, row)
            empty, now, timeout_s = revisions.empty(self._db), tx.now(), self.quotas.timeout_s
            action_begin.revise(tx, row, Action.DELETE, empty, now, timeout_s, action_begin.UNHELD)
            also(tx)

    def cancel(self, stack_id: str, *, roll_back: bool) -> None:
        """Stop an action of the stack and all its nested stacks.

        Args:
            roll_back: Return to the last COMPLETE revision; otherwise the stack stays as it is, FAILED.

        Raises:
            Rejected: NotSupported if there is no action to cancel; StackLocked.
        """
        cancellable = (Action.UPDATE,) if roll_back else (Action.UPDATE, Action.CREATE)
        with self._db.write() as tx:
            row = locks.changeable(tx, stack_id)
            if row.action not in cancellable or row.status != Status.IN_PROGRESS:
                state = joined(row.action, row.status)
                raise Rejected("NotSupported", f"Cancelling update when stack is {state} is not supported.")
            now = tx.now()
            if roll_back:
                action_begin.roll_back(tx, row, now, self.quotas.timeout_s)
            else:
                cancellation.cancel(tx, row, now)

    def _live(self, tx: Transaction, stack_id: str) -> StackRow:
        row = stacks.get(tx, stack_id)
        if row is None or row.deleted_at is not None:
            raise stack_not_found(stack_id)
        return row


def _check_changeable(row: StackRow) -> None:
    """Raise Rejected (NotSupported) for a stack that is suspended, or being abandoned."""
    check_not_abandoned(row)
    if row.suspended:
        raise Rejected("NotSupported", "Updating a stack when it is suspended is not supported.")


def _check_free(tx: Transaction, project: str, name: str) -> None:
    """Raise Rejected (StackExists) if the project has a stack of this name."""
    other = stacks.find(tx, project, name)
    if other is not None and other.deleted_at is None:
        raise Rejected("StackExists", f"The Stack ({name}) already exists.")


def _changes_nothing(request: StackRequest) -> bool:
    """Return whether a patch leaves the desired state of a stack without parameters as it is."""
    parts = (request.parameters, request.environment, request.files)
    return request.template is None and request.revision is None and not any(parts)


def _changes(request: StackRequest, *, patch: bool) -> dict[str, Any]:
    """Return the columns of the stack that an update sets. Omitted tags are cleared, except by a patch."""
    changes: dict[str, Any] = {"tags": request.tags} if request.tags is not None or not patch else {}
    if request.disable_rollback is not None:
        changes["disable_rollback"] = request.disable_rollback
    if request.timeout_mins is not None:
        changes["timeout_mins"] = request.timeout_mins
    if request.template_source is not None:
        changes["template_source"] = request.template_source
    return changes
