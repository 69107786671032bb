"""What is stored of signals that resize groups, and how notifications find it, on SQLite and on PostgreSQL."""

from tests.contract.store_cases import NOW, add_stack, event

from homeostat.model.plan import Event
from homeostat.model.status import Action, Status
from homeostat.store import events
from homeostat.store.database import Database
from homeostat.store.operation import message_bus
from homeostat.store.stacks import scaling
from homeostat.store.stacks.scaling import Resize

FOREVER = 2**40


def scaled(database: Database, policy_of: str, group: str, before: int, after: int) -> int:
    """A signal; gives the number of its event."""
    with database.write() as tx:
        seq = events.append_one(tx, policy_of, event("policy", action="SIGNAL"), NOW)
        scaling.note(tx, seq, group, Resize(after - before, "change_in_capacity", before, after))
    return seq


def ended(database: Database, group: str, status: str = Status.COMPLETE) -> int:
    """The end of an action of the group; gives the number of its event."""
    with database.write() as tx:
        return events.append_one(tx, group, Event("group", Action.UPDATE, status, "", "OS::Heat::Stack"), NOW)


def test_a_signal_that_resizes_is_among_what_is_to_be_sent(database: Database) -> None:
    stack_id, group = add_stack(database, "web"), add_stack(database, "web-group")
    with database.write() as tx:
        other = events.append_one(tx, stack_id, event("server"), NOW)
    signal = scaled(database, stack_id, group, 1, 3)
    with database.read() as tx:
        assert [each.seq for each in message_bus.unsent(tx, other - 1, FOREVER, NOW, 10)] == [signal]
        found = message_bus.resizes_begun(tx, [other, signal])
    assert list(found) == [signal]
    row = found[signal]
    assert (row.group, row.before, row.after, row.adjustment, row.size) == (group, 1, 3, 2.0, 0)
    assert (row.stack_id, row.stack_name) == (stack_id, "web")


def test_an_end_belongs_to_the_signals_since_the_end_before(database: Database) -> None:
    stack_id, group, another = (add_stack(database, name) for name in ("web", "web-group", "web-other"))
    first = scaled(database, stack_id, group, 1, 2)
    one = ended(database, group)
    late = [scaled(database, stack_id, group, size, size + 1) for size in (2, 3)]
    scaled(database, stack_id, another, 5, 6)
    ended(database, group, Status.IN_PROGRESS)
    two = ended(database, group, Status.FAILED)
    with database.read() as tx:
        assert message_bus.resized_stacks(tx, {stack_id, group}) == {group}
        assert [each.event for each in message_bus.resizes_ended(tx, group, one)] == [first]
        assert [each.event for each in message_bus.resizes_ended(tx, group, two)] == late
        assert message_bus.resizes_ended(tx, another, first) == []
