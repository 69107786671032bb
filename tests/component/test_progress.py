"""How far a stack has come, as its shards keep it."""

from typing import Any

from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from tests.component.running import Service, double, group, server, template

SLOW = CloudBehaviour(build_s=30.0, delete_s=30.0)


def wanted(resources: dict[str, Any]) -> StackRequest:
    return StackRequest(template(resources))


def reached(service: Service, stack_id: str) -> list[tuple[int, int]]:
    """Planned and done, a shard each."""
    table = schema.shard
    chosen = select(table.c.planned, table.c.done).where(table.c.stack_id == stack_id).order_by(table.c.number)
    with service.db.read() as tx:
        return [(planned, done) for planned, done in tx.execute(chosen)]


def test_a_pass_records_how_much_there_is_and_how_much_is_done() -> None:
    service = Service(SLOW)
    stack_id = service.create({"quick": double(), "slow": server(), "later": {**double(), "depends_on": "slow"}})
    assert reached(service, stack_id) == [(3, 1)]
    service.rest()
    assert reached(service, stack_id) == [(3, 3)]


def test_nothing_is_done_yet_for_a_new_revision() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": double(value="1")})
    service.stack_service.update(stack_id, wanted({"a": double(value="2"), "b": server()}))
    assert reached(service, stack_id) == [(1, 0)]
    service.work()
    assert reached(service, stack_id) == [(2, 1)]


def test_what_is_gone_counts_as_done_until_all_is_gone() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": server(), "b": {**server(), "depends_on": "a"}})
    service.rest()
    service.delete(stack_id)
    assert reached(service, stack_id) == [(2, 0)]
    service.live(40.0)
    assert reached(service, stack_id) == [(2, 1)]
    service.rest()
    assert reached(service, stack_id) == [(0, 0)]


def test_the_count_of_an_older_revision_is_not_written_over_the_newer_one() -> None:
    service = Service()
    stack_id = service.begin({"a": double()})
    lease = service.claim().lease
    assert lease is not None
    running = service.reconciler.load(lease)
    service.stack_service.update(stack_id, wanted({"a": double(), "b": double()}))
    service.reconciler.converge(running)
    assert reached(service, stack_id) == [(0, 0)]
    service.work()
    assert reached(service, stack_id) == [(2, 2)]


def test_a_shard_that_an_update_does_not_touch_stays_done() -> None:
    service = Service()
    stack_id = service.create({"g": group(1500, double())})
    service.rest()
    child = service.child().id
    assert reached(service, child) == [(1000, 1000), (500, 500)]
    service.stack_service.update(stack_id, wanted({"g": group(1501, double())}))
    run_pass(service.reconciler, service.claim())
    assert reached(service, child) == [(1000, 1000), (500, 0)]
    service.rest()
    assert reached(service, child) == [(1000, 1000), (501, 501)]


def test_what_is_being_healed_is_not_done() -> None:
    service = Service(SLOW)
    stack_id = service.create({"a": server(), "b": server()})
    service.rest()
    service.cloud.vanish(service.servers()[0])
    service.live(2.0)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert reached(service, stack_id) == [(3, 1)]  # the one that is well; the lost one and the new one are not
    service.live(40.0)
    assert reached(service, stack_id) == [(2, 2)]
