"""What a cloud says may hold anything; it is stored all the same, on SQLite and PostgreSQL."""

from tests.contract.store_cases import NOW, add_stack, resource

from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Event
from homeostat.model.world import Seen
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_end, stacks, views

SAID = "no room\0 for it \\u0000"


def test_a_nul_character_in_what_a_cloud_says(database: Database) -> None:
    add_stack(database)
    row = resource("k1", "p-web", "a", reason=SAID)
    writes = Writes(events=[Event("a", "CREATE", "FAILED", SAID, row.type, "k1")])
    writes.insert(row)
    writes.seen["k1"] = (row, Seen(Observation(Presence.PRESENT, "h", {"fault": SAID}, NOW, SAID), 1))
    with database.write() as tx:
        shard_state.record(tx, "p-web", writes, NOW)
        action_end.fail(tx, "p-web", 1, SAID, NOW)
    with database.read() as tx:
        rows, seen = views.resources(tx, "p-web")
        stack = stacks.get(tx, "p-web")
    assert stack is not None
    for text in (rows["k1"].reason, seen["k1"].observation.reason, stack.reason):
        assert text.replace("\ufffd", "\0") == SAID
    assert seen["k1"].observation.properties["fault"] == SAID
