"""Clusters: each change is a new revision of the cluster's stack, and an action that shows its progress."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import func, insert, literal, or_, select, update

from homeostat.clustering.decisions import arrangement, states
from homeostat.clustering.decisions.attached import Attached, PolicyResources
from homeostat.clustering.decisions.names import node_id, node_name
from homeostat.clustering.decisions.placement import Placement
from homeostat.clustering.decisions.policies import ONE_REGION
from homeostat.clustering.decisions.profiles import check_profile, check_same_type, region_of
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import ClusterAction
from homeostat.clustering.service import attached_policies, change_rows
from homeostat.clustering.service.changes import ChangeBuilder, ClusterChange, Outdated, StartedAction
from homeostat.clustering.service.membership_moves import Mover, Moving, moved
from homeostat.clustering.service.quotas import check_room, with_size
from homeostat.clustering.service.requester import InTransaction, RequestScope, no_op
from homeostat.clustering.service.stack_requests import LEFT_ALONE, ClusterFacts, OwnNode, stack_request
from homeostat.clustering.store import actions, bindings, listing, living, waiting_actions
from homeostat.clustering.store.actions import NewAction
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.pipeline.storing import TransactionStep, no_step
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.schema.rows import ActionRow, ClusterRow, NodeRow, ProfileRow
from homeostat.store.sql import typed
from homeostat.store.stacks import action_begin, locks, stacks

NAME_FORMAT = "node.name.format"
"""Key of the config of a cluster: the format of node names."""
_cluster = schema.cluster
_node = schema.node


class ClusterService:
    """Creates, changes and deletes clusters."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stacks = stack_service
        self._mover = Mover(db, stack_service)

    # -- reading -----------------------------------------------------------------------------------------------------

    def get(self, tx: Transaction, scope: RequestScope, identity: str) -> ClusterRow:
        """Return a cluster by its id, name or the beginning of its id.

        Raises:
            Rejected: ResourceNotFound, MultipleChoices.
        """
        return listing.get(tx, ClusterRow, scope.reach, identity, living.is_living_cluster())

    def page(self, tx: Transaction, wanted: listing.Page) -> list[ClusterRow]:
        return listing.page(tx, ClusterRow, wanted, living.is_living_cluster())

    # -- creating ----------------------------------------------------------------------------------------------------

    def create(
        self,
        scope: RequestScope,
        name: str,
        profile: ProfileRow,
        sizes: Mapping[str, int],
        timeout: int,
        metadata: Mapping[str, Any],
        config: Mapping[str, Any],
        check_types: CheckTypes | None = None,
        also: InTransaction = no_op,
        policies: Sequence[Attached] = (),
    ) -> StartedAction:
        """Create a cluster.

        Args:
            sizes: min_size, max_size and desired_capacity, checked.
            timeout: Seconds that an action may take.
            check_types: See `StackRequest`.
            also: Further writes in the same transaction.
            policies: The policies that `also` attaches to the cluster.

        Raises:
            Rejected: The profile does not fit the cloud any more; OverQuota.
            Transient: A cloud does not answer.
        """
        identity = self._stacks.entropy.stack_id()
        count, form = sizes["desired_capacity"], str(config.get(NAME_FORMAT) or "")
        spec, beside = check_profile(profile.spec), arrangement.policy_resources(policies)
        _check_region(beside, [spec])
        facts = ClusterFacts(identity, identity, form, spec, count, policy_resources=beside)
        own = {"name": name, "profile_id": profile.id, **sizes, "timeout": timeout}
        more = {"next_index": count + 1, "metadata": metadata, "config": config, "init_at": self._db.agreed_now()}
        row = {"id": identity, **scope.owner, **own, **more}
        begun: list[str] = []

        def store(tx: Transaction) -> None:
            begun.append(self._store_new(tx, scope, row))
            also(tx, identity)

        self._stacks.create(
            scope.project,
            scope.caller.user,
            _stack_name(name, identity),
            stack_request(facts, timeout, check_types),
            by=scope.caller,
            stack_id=identity,
            also=store,
        )
        return StartedAction(identity, begun[-1])

    def _store_new(self, tx: Transaction, scope: RequestScope, row: Mapping[str, Any]) -> str:
        """Store the rows of a new cluster; return the id of its action.

        Raises:
            Rejected: OverQuota.
        """
        living.forget_gone(tx, scope.project)
        check_room(tx, scope)
        tx.execute(insert(_cluster).values(**with_size(tx, scope.project, row)))
        self._add_nodes(tx, scope.owner, row, 1, row["desired_capacity"], row["init_at"])
        tx.execute(update(schema.stack).where(schema.stack.c.id == row["id"]).values(exceptions=LEFT_ALONE))
        return _begin(tx, scope, ClusterAction.CREATE, row["id"], row["timeout"], row["init_at"])

    def _add_nodes(
        self,
        tx: Transaction,
        owner: Mapping[str, Any],
        cluster: Mapping[str, Any],
        first: int,
        count: int,
        now: float,
        placements: Sequence[Placement] = (),
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Store the rows of new nodes; `more` replaces columns of the defaults."""
        form, seed = str(cluster["config"].get(NAME_FORMAT) or ""), cluster["id"]
        more = with_size(tx, owner["project"], more)
        same = {"cluster_id": seed, "profile_id": cluster["profile_id"], "own": False, "size": 0}
        rows = [
            change_rows.new_node(owner, node_id(seed, index), node_name(form, seed, index), seed, now)
            | {**same, "number": index - 1, "data": _placed(placements, index - first), **more}
            for index in range(first, first + count)
        ]
        if rows:
            tx.execute(insert(_node), rows)

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(
        self,
        scope: RequestScope,
        identity: str,
        build: ChangeBuilder,
        check_types: CheckTypes | None = None,
        also: InTransaction = no_op,
    ) -> StartedAction:
        """Change a cluster.

        Args:
            identity: Id or name of the cluster, from the user.
            build: Builds the change; called again if the cluster changes meanwhile.
            check_types: See `StackRequest`.
            also: Further writes in the same transaction; called with the id of the target.

        Raises:
            Rejected: From `build`; ActionConflict: another action of the cluster is in progress.
            Transient: A cloud does not answer.
        """
        while True:
            try:
                return self._try_change(scope, identity, build, check_types, also)
            except Outdated:
                continue

    def _try_change(
        self,
        scope: RequestScope,
        identity: str,
        build: ChangeBuilder,
        check_types: CheckTypes | None,
        with_it: InTransaction,
    ) -> StartedAction:
        with self._db.read() as tx:
            cluster = self.get(tx, scope, identity)
            change = build(tx, cluster)
            check_free(conflicting_actions(actions.going_on_in(tx, cluster.id), change), cluster.id, change.action)
            facts = self._facts(tx, cluster, change)
        begun: list[str] = []
        target, moving = change.target or cluster.id, None
        if change.at_once:
            with self._db.write() as tx:
                # Shards come after their stack, and rows after both (invariant 5, CONTRIBUTING.md).
                if change.policies is not None:
                    stacks.for_update(tx, cluster.id)
                begun.append(self._store(tx, scope, cluster, change))
                with_it(tx, target)
            return StartedAction(target, begun[-1])
        # Checked against the clouds without a lock: `_store` compares the row later, and starts over if needed.
        request = stack_request(facts, change.columns.get("timeout", cluster.timeout), check_types)
        with ExitStack() as held:
            accept: TransactionStep = no_step
            lock: TransactionStep = no_step
            if change.moves:
                moving = self._mover.prepare(scope, cluster, change, facts.form, check_types)
                accept, lock = held.enter_context(self._mover.entrusted(scope, moving)), moving.lock

            def also(tx: Transaction) -> None:
                begun.append(self._store(tx, scope, cluster, change, moving))
                accept(tx)
                with_it(tx, target)

            self._stacks.update(cluster.id, request, by=scope.caller, also=also, first=lock)
        return StartedAction(target, begun[-1])

    def _facts(self, tx: Transaction, cluster: ClusterRow, change: ClusterChange) -> ClusterFacts:
        profile = change.columns.get("profile_id", cluster.profile_id)
        spec = change.spec or check_profile(_spec_of(tx, profile))
        conditions = (_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
        all_alike = bool(change.nodes) and "profile_id" in (change.nodes or {})
        placed = _node.c.data != literal({}, _node.c.data.type)
        differs = or_(_node.c.own.is_(True), placed, *(() if all_alike else (_node.c.profile_id != profile,)))
        own, known = [], {profile: spec}
        removed_numbers = {*change.leaving, *(row.number for row in change.released)}

        def add(number: int, values: Mapping[str, Any]) -> None:
            profile_id = profile if all_alike else values["profile_id"]
            if profile_id not in known:
                known[profile_id] = check_profile(_spec_of(tx, profile_id))
            own.append(OwnNode.of_row(number, values, known[profile_id]))

        chosen = select(_node).where(*conditions, or_(differs, _node.c.id == change.target))
        for row in typed.rows(NodeRow, tx.execute(chosen)):
            if row.number not in removed_numbers:
                add(row.number, {**row._asdict(), **(change.one if row.id == change.target else {})})
        first = cluster.next_index - 1
        for place in range(change.added):
            data = _placed(change.placements, place)
            if data or "profile_id" in change.one:
                add(first + place, {"profile_id": profile, "data": data, "name": "", "own": False, **change.one})
        for place, row in enumerate(change.joining):
            add(first + place, {**row._asdict(), **moved(row, "")})
        count = tx.execute(select(func.count()).where(*conditions)).scalar_one()
        count += change.added + len(change.joining) - len(removed_numbers)
        form = str(cluster.config.get(NAME_FORMAT) or "")
        # Each revision names the leaving nodes until the group has removed them: else it would remove others instead.
        leaving = select(_node.c.number).where(_node.c.cluster_id == cluster.id, _node.c.leaving.is_(True))
        removed = sorted({*removed_numbers, *tx.execute(leaving).scalars()})
        policies = attached_policies.of_cluster(tx, cluster.id) if change.policies is None else change.policies.after
        beside = arrangement.policy_resources(policies, leaving=bool(change.leaving))
        _check_region(beside, [*known.values()])
        facts = ClusterFacts(cluster.id, cluster.id, form, spec, count, tuple(removed), tuple(own))
        return replace(facts, batches=change.batches, policy_resources=beside)

    def _store(
        self,
        tx: Transaction,
        scope: RequestScope,
        seen: ClusterRow,
        change: ClusterChange,
        moving: Moving | None = None,
    ) -> str:
        """Store the rows of a change, in the transaction of the revision; return the id of the action.

        Raises:
            Outdated: The cluster has changed since.
            Rejected: ActionConflict.
        """
        locked = tx.execute(row_lock(select(_cluster).where(_cluster.c.id == seen.id)))
        cluster = typed.rows(ClusterRow, locked).first()
        if cluster is None or cluster != seen:
            raise Outdated
        check_free(conflicting_actions(actions.settled_in(tx, cluster.id), change), cluster.id, change.action)
        now = tx.now()
        living.forget_gone(tx, cluster.project)
        if change.policies is not None:
            attached_policies.store(tx, cluster, change.policies, now)
        columns = {**change.columns, **({} if change.policies is not None or change.failure else {"updated_at": now})}
        if change.added:
            columns["next_index"] = cluster.next_index + change.added
            values = {**cluster._asdict(), **columns}
            owner = {name: getattr(cluster, name) for name in ("project", "user", "domain")}
            self._add_nodes(tx, owner, values, cluster.next_index, change.added, now, change.placements, change.one)
        change_rows.store_nodes(tx, cluster.id, change, now)
        if moving is not None:
            columns["next_index"] = cluster.next_index + len(moving.joining)
            self._mover.move(tx, scope, moving)
        if columns:
            sized = with_size(tx, cluster.project, columns, cluster)
            tx.execute(update(_cluster).where(_cluster.c.id == cluster.id).values(**sized))
        bindings.note_operations(tx, change.cooled, now)
        if change.awaited:
            if not waiting_actions.go_on(tx, change.awaited, cluster.id, now):
                raise Outdated
            return change.awaited[0]
        new = NewAction(
            change.action,
            scope.action_name or change.name,
            change.target or cluster.id,
            cluster.id,
            change.inputs,
            columns.get("timeout", cluster.timeout),
            None if change.at_once else cluster.id,
            failure=change.failure,
        )
        if change.hooked:
            return change_rows.add_waiting(tx, new, change, scope.owner, now)
        return actions.add(tx, new, scope.owner, now)

    def delete(self, scope: RequestScope, identity: str, *, force: bool, also: InTransaction = no_op) -> StartedAction:
        """Delete a cluster with its nodes; `also` is not called if the deletion is in progress already.

        Raises:
            Rejected: ResourceNotFound; ActionInProgress: an action is in progress, and `force` is not set.
        """
        with self._db.read() as tx:
            cluster = self.get(tx, scope, identity)
            if not force:
                _check_idle(tx, cluster, identity)
        begun: list[str] = []

        def store(tx: Transaction) -> None:
            now = tx.now()
            conditions = (_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
            tx.execute(update(_node).where(*conditions).values(leaving=True, updated_at=now))
            waiting_actions.cancel(tx, waiting_actions.in_cluster(tx, cluster.id), now)
            begun.append(_begin(tx, scope, ClusterAction.DELETE, cluster.id, cluster.timeout, now))
            also(tx, cluster.id)

        self._stacks.delete(cluster.id, scope.caller, also=store)
        if begun:
            return StartedAction(cluster.id, begun[-1])
        with self._db.read() as tx:  # the deletion was in progress already
            going_on = actions.going_on(tx, [cluster.id])
        return StartedAction(cluster.id, going_on[-1].id if going_on else "")

    def check(self, scope: RequestScope, identity: str, inputs: Mapping[str, Any]) -> StartedAction:
        """Check all nodes of a cluster, by an observation of its whole stack.

        Raises:
            Rejected: ResourceNotFound, ActionConflict.
        """
        with self._db.read() as tx:
            cluster = self.get(tx, scope, identity)
        with self._db.write() as tx:
            stack = locks.changeable(tx, cluster.id)
            check_free(actions.settled_in(tx, cluster.id), cluster.id, ClusterAction.CHECK)
            now = tx.now()
            action_begin.check(tx, stack, now, self._stacks.quotas.timeout_s)
            return StartedAction(
                cluster.id, _begin(tx, scope, ClusterAction.CHECK, cluster.id, cluster.timeout, now, inputs)
            )

    def set_metadata(
        self, scope: RequestScope, identity: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Change the metadata of a cluster, also while an action is in progress, and return the new metadata.

        Raises:
            Rejected: ResourceNotFound; from `change`.
        """
        with self._db.write() as tx:
            cluster = self.get(tx, scope, identity)
            locked = tx.execute(row_lock(select(_cluster).where(_cluster.c.id == cluster.id)))
            before = typed.rows(ClusterRow, locked).one()
            metadata = dict(change(before.metadata))
            values = with_size(tx, cluster.project, {"metadata": metadata, "updated_at": tx.now()}, before)
            tx.execute(update(_cluster).where(_cluster.c.id == cluster.id).values(**values))
        return metadata

    def update(
        self, tx: Transaction, cluster: ClusterRow, fields: Mapping[str, Any], profile: ProfileRow | None
    ) -> ClusterChange:
        """Return the change for an update.

        Args:
            tx: A consistent read.
            fields: name, metadata, timeout, config; profile_only.
            profile: The new profile; None to keep the profile.

        Raises:
            Rejected: BadRequest: another type of profile, or nothing to change.
        """
        columns = {name: fields[name] for name in ("name", "metadata", "timeout", "config") if name in fields}
        columns = {name: value for name, value in columns.items() if getattr(cluster, name) != value}
        spec = None
        if profile is not None and profile.id != cluster.profile_id:
            before = tx.execute(select(schema.profile.c.type).where(schema.profile.c.id == cluster.profile_id))
            check_same_type(before.scalar_one(), profile.type)
            spec = check_profile(profile.spec)
            columns["profile_id"] = profile.id
        if not columns:
            raise Rejected("BadRequest", "No property needs an update.")
        inputs = {name: value for name, value in fields.items() if name in columns}
        if profile is not None:
            inputs["new_profile_id"] = profile.id
        only = bool(fields.get("profile_only"))
        return ClusterChange(
            ClusterAction.UPDATE,
            states.action_name(ClusterAction.UPDATE, cluster.id),
            inputs,
            columns,
            spec=spec,
            at_once=spec is None or only,
            nodes={"profile_id": profile.id} if spec is not None and profile is not None and not only else None,
        )


def check_free(going_on: Sequence[ActionRow], target: str, action: str) -> None:
    """Check that no action in progress conflicts with a new action of a cluster or node.

    Raises:
        Rejected: ResourceIsLocked.
    """
    if going_on:
        kind, listed = action.partition("_")[0].lower(), ", ".join(row.id for row in going_on)
        message = f"{action} for {kind} '{target}' cannot be completed because it is already locked."
        raise Rejected("ResourceIsLocked", message, remedy=f"wait for the action(s) that go on: {listed}")


def conflicting_actions(going_on: Sequence[ActionRow], change: ClusterChange) -> list[ActionRow]:
    """Return the conflicting actions: all in progress, but waiting actions only if the change continues none."""
    return [row for row in going_on if not change.awaited or not waiting_actions.is_one(row)]


def _check_idle(tx: Transaction, cluster: ClusterRow, identity: str) -> None:
    """Check that a cluster may be deleted without force; `identity` is its id or name from the user.

    Raises:
        Rejected: ActionInProgress.
    """
    for row in actions.going_on(tx, [cluster.id]):
        start = states.cluster_at_start(row.action)
        if start is not None and start[0] in states.BUSY_CLUSTER:
            raise Rejected("ActionInProgress", f"The cluster '{identity}' is in status {start[0]}.")


def _begin(
    tx: Transaction,
    scope: RequestScope,
    action: ClusterAction,
    cluster_id: str,
    timeout: int,
    now: float,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Store an action that has started a revision of the cluster's stack; return its id."""
    name = scope.action_name or states.action_name(action, cluster_id)
    new = NewAction(action, name, cluster_id, cluster_id, inputs, timeout, cluster_id)
    return actions.add(tx, new, scope.owner, now)


def _check_region(beside: PolicyResources, profiles: Sequence[Spec]) -> None:
    """Check that no node with a load balancer is in another region.

    Raises:
        Rejected: BadRequest.
    """
    region = next(filter(None, map(region_of, profiles)), "")
    if beside.companions and region:
        raise Rejected("BadRequest", f"The nodes would be in the region {region}, and {ONE_REGION}.")


def _placed(placements: Sequence[Placement], place: int) -> dict[str, Any]:
    """Return the `data` column of a new node."""
    return {"placement": dict(placements[place])} if placements and placements[place] else {}


def _spec_of(tx: Transaction, profile_id: str) -> Any:
    return tx.execute(select(schema.profile.c.spec).where(schema.profile.c.id == profile_id)).scalar_one()


def _stack_name(name: str, identity: str) -> str:
    """Return the name of a cluster's stack: unique, and with a letter first, as stacks need."""
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in name)
    return f"cluster-{plain[:200]}-{identity[:8]}"
