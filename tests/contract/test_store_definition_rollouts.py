"""Rollouts of a new definition on SQLite and on PostgreSQL: a step, its members, and the way back."""

from dataclasses import replace

from sqlalchemy import select, update
from tests.contract.store_cases import NOW, add_stack, resource, stack_row

from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.desired.members import group_content
from homeostat.model.group import GroupDefinition, RangedDefinition
from homeostat.model.rollout import AppliesTo, Rollout, RolloutBegin, RolloutSettings, RolloutState
from homeostat.model.status import Action, Status
from homeostat.planner.members import staged_group
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state, shards
from homeostat.store.stacks import action_begin, revisions, rollout_members, rollouts, stacks

SETTINGS = RolloutSettings("canary", ("1", "100%"), approval=True, applies_to=AppliesTo.DEFINITION)
OLD = GroupDefinition({"type": "a"}, None, 3)


def staged(database: Database) -> tuple[str, str]:
    """A stack with a group of three members, and the stack of those, which is staged; the rollout has begun."""
    top = add_stack(database)
    members = add_stack(database, "members", parent_id=top, parent_name="grp", parent_key="grp", root_id=top, depth=1)
    rows = [resource("grp", top, "grp", handle=members)]
    rows += [resource(f"m{number}", members, str(number), handle=f"h{number}") for number in range(3)]
    with database.write() as tx:
        shard_state.encode_new(database, rows[:1]).store(tx)
        shard_state.encode_new(database, rows[1:]).store(tx)
        row = stacks.for_update(tx, members)
        assert row is not None
        subject = int(row.revision) + 1
        group = staged_group.begin(OLD, replace(OLD, resource_def={"type": "b"}), subject)
        revision = revisions.encode(database, group_content(group), size=3)
        action_begin.revise(tx, row, Action.UPDATE, revision, NOW, 60.0)
        begun = Rollout("grp", top, 0, "grp", members, RolloutState.RUNNING, SETTINGS, due_at=NOW, subject=subject)
        rollouts.apply(tx, [top], [RolloutBegin(begun)], NOW, 60.0)
    rest(database, members)
    return top, members


def rest(database: Database, stack_id: str) -> None:
    table = schema.stack
    with database.write() as tx:
        tx.execute(update(table).where(table.c.id == stack_id).values(status=Status.COMPLETE))


def group_of(database: Database, stack_id: str) -> GroupDefinition:
    revision = schema.revision
    chosen = select(revision.c.template).where(revision.c.stack_id == stack_id)
    with database.read() as tx:
        stored = tx.execute(chosen.order_by(revision.c.number.desc()).limit(1)).scalar_one()
    return GroupDefinition.decoded(stored)


def rollout(database: Database) -> Rollout:
    with database.read() as tx:
        found = rollouts.of_group(tx, "grp")
    assert found is not None
    return found


def handles(database: Database) -> set[str]:
    with database.read() as tx:
        return set(tx.execute(select(schema.active_metadata_updates.c.instance_id)).scalars())


def test_a_step_is_a_revision_of_the_members_and_so_is_the_way_back(database: Database) -> None:
    _, members = staged(database)
    going = RolloutEngine(database)
    going.advance("grp")
    first = rollout(database)
    assert (first.step, first.active, first.giving) == (1, 1, stack_row(database, members).revision)
    assert group_of(database, members).earlier == (RangedDefinition({"type": "a"}, ((1, 3),)),)
    assert stack_row(database, members).status == Status.IN_PROGRESS
    rest(database, members)
    going.advance("grp")
    given = rollout(database)
    assert (given.giving, given.reason, handles(database)) == (None, "step 1 is done and waits for approval", {"h0"})
    going.approve("grp", step=1)
    going.advance("grp")
    assert (rollout(database).active, bool(group_of(database, members).earlier)) == (3, False)
    assert going.roll_back("grp").state == RolloutState.ROLLED_BACK
    assert group_of(database, members) == OLD


def test_who_has_a_new_definition_follows_what_there_is(database: Database) -> None:
    _, members = staged(database)
    with database.write() as tx:
        going = replace(rollout(database), step=1)
        assert rollout_members.renew(tx, going, lambda name: name != "2", {0}, 2, since=10**6) == 0
        assert rollout_members.renew(tx, going, lambda name: name != "2", {0}, 2) == 2
    assert handles(database) == {"h0", "h1"}
    table = schema.resource
    with database.write() as tx:
        tx.execute(update(table).where(table.c.stack_id == members, table.c.name == "0").values(handle=""))
        assert rollout_members.gone(tx, going, 10) == ["h0"]
        assert rollout_members.renew(tx, going, lambda name: name != "2", {0}, 2) == 1
    assert handles(database) == {"h0", "h1"}, "it is waited for until there is another"
    with database.write() as tx:
        tx.execute(update(table).where(table.c.stack_id == members, table.c.name == "0").values(handle="h9"))
        assert rollout_members.renew(tx, going, lambda name: name != "2", {0}, 2) == 2
    assert handles(database) == {"h1", "h9"}


def test_a_cancelled_rollout_is_carried_out_by_what_takes_it_up(database: Database) -> None:
    top, members = staged(database)
    going = RolloutEngine(database)
    going.advance("grp")
    with database.write() as tx:
        shards.wake(tx, top, NOW, shards.USER)
        rollouts.take_back(tx, [top], "ended", NOW)
    assert group_of(database, members).staged is not None
    going.advance("grp")
    assert group_of(database, members) == OLD
    assert (rollout(database).state, rollout(database).due_at) == (RolloutState.ROLLED_BACK, None)
