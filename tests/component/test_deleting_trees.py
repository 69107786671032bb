"""Trees that are deleted while they grow: what was not begun goes with its parent, without a pass of its own."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import func, select

from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.model.plan import Step
from homeostat.model.status import Action
from homeostat.model.world import World
from homeostat.store import events, schema
from tests.component.running import Service, double, template


def fleet(count: int) -> dict[str, Any]:
    """A group of stacks of one resource each."""
    members = {"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": {"type": "one.yaml"}}}
    return {"fleet": members}


def growing(count: int) -> tuple[Service, str]:
    """Such a tree of which every stack is made, and none of the members is begun."""
    service = Service()
    stack_id = service.begin(fleet(count), files={"one.yaml": json.dumps(template({"a": double()}))})
    while len(service.stacks()) < 2 + count:
        run_pass(service.reconciler, service.claim())
    return service, stack_id


def passes_until_gone(service: Service, stack_id: str) -> int:
    done = 0
    while service.state(stack_id) != "DELETE_COMPLETE":
        run_pass(service.reconciler, service.claim())
        done += 1
    return done


def left(service: Service) -> int:
    """Rows of resources that there are."""
    with service.db.read() as tx:
        return int(tx.execute(select(func.count()).select_from(schema.resource)).scalar_one())


def deleted(count: int) -> int:
    """The passes that it takes to delete a growing tree."""
    service, stack_id = growing(count)
    service.stack_service.delete(stack_id)
    done = passes_until_gone(service, stack_id)
    assert all(each.deleted_at is not None for each in service.stacks())
    assert left(service) == 0
    assert service.board.job_count == 0, "nothing is left to be done"
    return done


def test_what_was_not_begun_takes_no_pass_to_delete() -> None:
    assert deleted(20) == deleted(5) <= 6


def test_every_stack_says_that_it_was_deleted() -> None:
    service, stack_id = growing(3)
    service.delete(stack_id)
    with service.db.read() as tx:
        for each in service.stacks():
            found = [(one.action, one.status) for one in events.page(tx, [each.id]) if one.action == Action.DELETE]
            mine = [state for state in found if state in ((Action.DELETE, "IN_PROGRESS"), (Action.DELETE, "COMPLETE"))]
            assert mine[0] == (Action.DELETE, "IN_PROGRESS")
            assert mine[-1] == (Action.DELETE, "COMPLETE")


def test_a_member_that_a_worker_is_about_to_begin_is_left_to_its_own_pass() -> None:
    service, stack_id = growing(3)
    claimed = service.claim()
    assert claimed.stack_id not in {each.id for each in service.stacks() if each.depth < 2}
    service.stack_service.delete(stack_id)
    service.work()
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    run_pass(service.reconciler, claimed)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert left(service) == 0


@pytest.mark.parametrize("owned", [False, True], ids=["free", "owned"])
def test_a_worker_that_dies_after_a_member_was_deleted_does_no_harm(*, owned: bool) -> None:
    service, stack_id = growing(3)
    if owned:
        service.claim()
    service.stack_service.delete(stack_id)
    run_pass(service.reconciler, service.claim())  # the root's, which begins the deletion of the group's stack
    job = service.claim()
    delete = service.nested_stacks.delete_many

    def dies_afterwards(*arguments: Any) -> Any:
        delete(*arguments)
        raise KeyboardInterrupt

    with patch.object(service.nested_stacks, "delete_many", dies_afterwards), pytest.raises(KeyboardInterrupt):
        run_pass(service.reconciler, job)
    assert sum(each.deleted_at is not None for each in service.stacks()) == (2 if owned else 3)
    service.live(60)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert left(service) == 0


def test_a_deletion_waits_for_few_of_the_stacks_that_are_being_made() -> None:
    service = Service()
    stack_id = service.begin(fleet(120), files={"one.yaml": json.dumps(template({"a": double()}))})
    execute, made = service.nested_stacks.execute, list[str]()

    def deleted_meanwhile(world: World, step: Step, ownership: Any) -> Any:
        made.append(step.row.name)
        if len(made) == 10:
            service.stack_service.delete(stack_id)
            service.clock.time += service.reconciler.limits.slice_s + 0.1
        return execute(world, step, ownership)

    with patch.object(service.nested_stacks, "execute", deleted_meanwhile):
        service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.stacks()) <= 3 + Limits().nested_batch
