"""Trees that are deleted while they grow: what was not begun goes with its parent, without a pass of its own."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import func, select

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.model.plan import Step
from homeostat.model.status import Action
from homeostat.model.world import World
from homeostat.planner.lifecycle import deleted_around
from homeostat.store import events, schema
from tests.component.running import Service, double, server, template, volume


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


def inner(policy: str = "Delete", **more: Any) -> dict[str, Any]:
    """A stack that goes after the disk that needs it, or stays."""
    nested = {"type": "inner.yaml", "deletion_policy": policy}
    return {"inner": nested, "disk": {**volume(), "depends_on": "inner"}, **more}


def going(policy: str = "Delete", *, levels: int = 1, **options: Any) -> tuple[Service, str]:
    """A tree with a server in its innermost stack, which is being deleted, and waits for the disk to go."""
    service = Service(CloudBehaviour(delete_s=1e9))
    files = {"inner.yaml": json.dumps(template({"a": server()}))}
    if levels == 2:
        files = {"inner.yaml": json.dumps(template({"b": {"type": "b.yaml"}})), "b.yaml": files["inner.yaml"]}
    stack_id = service.create(inner(policy), files=files, **options)
    service.rest()
    service.stack_service.delete(stack_id)
    service.live(1.0)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    return service, stack_id


def lose(service: Service) -> None:
    """The server vanishes, and there is time to notice that."""
    (gone,) = service.servers()
    service.cloud.vanish(gone)
    service.live(300.0)


def go_on(service: Service, stack_id: str) -> None:
    """The disk is gone at last."""
    service.cloud.behaviour.delete_s = 0.0
    for hung in service.cloud.things("volume"):
        service.cloud.vanish(hung)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


@pytest.mark.parametrize("levels", [1, 2])
def test_what_has_gone_is_not_made_again_for_a_tree_that_goes(levels: int) -> None:
    """Magnum deletes the load balancers of a cluster before the stack that has them, and others of it go first."""
    service, stack_id = going(levels=levels)
    lose(service)
    assert service.servers() == []
    go_on(service, stack_id)
    assert all(each.deleted_at is not None for each in service.stacks())
    assert left(service) == 0


def test_what_has_gone_is_made_again_in_a_stack_that_stays() -> None:
    service, stack_id = going("Retain")
    lose(service)
    assert len(service.servers()) == 1
    go_on(service, stack_id)
    lose(service)
    assert len(service.servers()) == 1


def test_what_has_gone_is_made_again_once_an_update_has_overtaken_the_deletion() -> None:
    service, stack_id = going()
    lose(service)
    assert service.servers() == []
    service.update(stack_id, inner(more=double()), files={"inner.yaml": json.dumps(template({"a": server()}))})
    service.live(deleted_around.AGAIN_S + 30.0)
    assert len(service.servers()) == 1


def test_what_has_gone_is_made_again_once_the_deletion_has_failed() -> None:
    service, stack_id = going(timeout_mins=10)
    lose(service)
    assert service.servers() == []
    service.live(600.0)
    assert service.state(stack_id) == "DELETE_FAILED"
    service.live(deleted_around.AGAIN_S + 30.0)
    assert len(service.servers()) == 1
    service.stack_service.delete(stack_id)
    service.live(1.0)
    go_on(service, stack_id)
    assert service.servers() == []


def test_an_update_that_has_reached_a_nested_stack_makes_nothing_more_once_its_tree_goes() -> None:
    service = Service(CloudBehaviour(build_s=5.0, delete_s=1e9))
    one = {"inner.yaml": json.dumps(template({"a": server()}))}
    chain = {"a": server(), "b": {**server(), "depends_on": "a"}, "c": {**server(), "depends_on": "b"}}
    stack_id = service.create(inner(), files=one)
    service.rest()
    service.update(stack_id, inner(), files={"inner.yaml": json.dumps(template(chain))})
    service.live(2.0)
    assert len(service.servers()) == 2
    service.stack_service.delete(stack_id)
    service.live(300.0)
    assert len(service.servers()) == 2
    go_on(service, stack_id)
    assert service.servers() == []
