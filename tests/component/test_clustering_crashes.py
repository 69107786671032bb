"""Clusters of templates while workers die after any transaction, and while answers are lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Change, Creation
from homeostat.clustering.resources import cloud
from homeostat.clustering.resources.cloud import ClusteringCloud
from homeostat.model.errors import Uncertain
from tests.component.clusters import DELETION, Clusters, bound, cluster, node, policy, profile, receiver

LEASE_S = 6.0
STRIDE = 9
"""In each life every ninth transaction is a worker's last; nine lives go through all of them."""


class Died(BaseException):
    """kill -9."""


class Mortal(Clusters):
    """Workers die right after every transaction whose number is `offset`, modulo `STRIDE`."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self.offset, self.written, self.deaths, self.mortal = offset, 0, 0, False
        write = self.db.write

        @contextmanager
        def and_die() -> Iterator[Any]:
            with write() as tx:
                yield tx
            if self.mortal:
                self.written += 1
                if self.written % STRIDE == self.offset:
                    raise Died

        self.db.write = and_die  # type: ignore[method-assign]

    def survive(self, expected: str, stack_id: str) -> None:
        """Until the stack is at rest, with a new worker after each death."""
        self.mortal = True
        for _ in range(500):
            try:
                self.rest(3000)
                break
            except Died:
                self.deaths += 1
                self.clock.time += LEASE_S
        self.mortal = False
        self.rest(3000)
        assert self.state(stack_id) == expected, self.stack(stack_id).reason


def resources(count: int, **more: Any) -> dict[str, Any]:
    binding = [{"cluster": {"get_resource": "cluster"}}]
    return {
        "profile": profile(**more),
        "policy": policy(),
        "bound": policy(DELETION, bindings=binding),
        "cluster": cluster(count, policies=bound("policy"), name=f"c{count}"),
        "out": receiver(),
        "alone": node(),
        "inside": node(cluster={"get_resource": "cluster"}),
    }


def check(service: Mortal, stack_id: str, count: int, members: int) -> None:
    """There is one of each, as the template says it; the node in the cluster is one of its members."""
    row = service.the("cluster")
    assert (row.id, row.name) == (service.handle(stack_id), f"c{count}")
    assert sorted(service.bound(row.id).values()) == [True, True]
    assert service.the("receiver").cluster_id == row.id
    there = [each for each in service.rows_in("node") if not each.leaving]
    assert len(there) == len(service.servers()) == members + 1
    assert service.alive() == ["cluster", "node", "web"]
    assert (service.count("profile"), service.count("policy")) == (1, 2)
    handles = {each.handle for each in service.rows(stack_id)}
    assert {each.id for each in service.rows_in("record")} == handles


@pytest.mark.heavy
@pytest.mark.parametrize("offset", range(STRIDE))
def test_nothing_is_lost_or_made_twice_whichever_transaction_is_the_last_of_a_worker(offset: int) -> None:
    service = Mortal(offset)
    stack_id = service.begin(resources(2))
    service.survive("CREATE_COMPLETE", stack_id)
    check(service, stack_id, 2, members=3)
    service.stack_service.update(stack_id, service.request(resources(4, image="j")))
    service.survive("UPDATE_COMPLETE", stack_id)
    check(service, stack_id, 4, members=4)
    assert {each["image"] for each in service.cloud.things("server").values()} == {"j"}
    service.stack_service.delete(stack_id)
    service.survive("DELETE_COMPLETE", stack_id)
    service.live(900)
    service.check_nothing_left()
    assert service.deaths > 10


class Forgetful(ClusteringCloud):
    """The answers of every first creation and change are lost."""

    lost: set[str] = set()

    def _lose(self, what: str, answers: list[Answer]) -> list[Answer]:
        if what in self.lost:
            return answers
        self.lost.add(what)
        return [Uncertain("the answer was lost") for _ in answers]

    def create(self, kind: str, intents: Any) -> list[Answer]:
        return self._lose(f"create {kind}", super().create(kind, intents))

    def update(self, kind: str, changes: Any) -> list[Answer]:
        return self._lose(f"update {kind}", super().update(kind, changes))

    def delete(self, kind: str, handles: Any) -> list[Answer]:
        return self._lose(f"delete {kind}", super().delete(kind, handles))


def test_what_was_made_is_found_again_after_its_answer_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud, "ClusteringCloud", Forgetful)
    monkeypatch.setattr(Forgetful, "lost", set())
    service = Clusters()
    stack_id = service.create(resources(1))
    service.rest()
    service.update(stack_id, resources(3, image="j"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert (len(service.servers()), service.count("profile")) == (4, 1)
    assert service.alive() == ["cluster", "node", "web"]
    service.delete(stack_id)
    service.rest()
    service.check_nothing_left()
    assert {each.partition(" ")[0] for each in Forgetful.lost} == {"create", "update", "delete"}


def test_what_a_creation_that_was_given_up_still_makes_is_swept() -> None:
    """The worker was frozen: its request comes after its stack has failed, and was deleted."""
    service = Clusters()
    stack_id = service.create({"profile": profile(), "cluster": cluster(1)})
    service.rest()
    row = service.row(stack_id, "cluster")
    token, spec = row.token, {"name": "late", "profile_id": service.the("profile").id, "desired_capacity": 1}
    service.delete(stack_id)
    service.live(1)
    things = service.things.of("p")
    (answer,) = things.create("node_cluster", [Creation(token, spec)])
    service.rest()
    service.live(900)
    assert service.alive() == []
    assert "not there any more" in str(answer)


@pytest.mark.parametrize("struck", ["cluster", "profile"])
def test_two_workers_that_ask_for_the_same_make_one(monkeypatch: pytest.MonkeyPatch, struck: str) -> None:
    """The second comes between the look and the creation of the first."""
    service = Clusters()
    stack_id = service.begin({"profile": profile(), "cluster": cluster(0)})
    things = service.things.of("p")
    asked: list[str] = []
    api = service.things._api()
    make = api.make

    def twice(kind: str, by: Any, spec: Any, keep: Any) -> None:
        if kind.endswith(struck) and not asked:
            asked.append(kind)
            token = service.row(stack_id, struck).token
            (answer,) = things.create(kind, [Creation(token, spec)])
            assert not isinstance(answer, Exception)
        make(kind, by, spec, keep)

    monkeypatch.setattr(api, "make", twice)
    service.work()
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.stack(stack_id).reason
    assert asked
    assert service.the(struck).id == service.handle(stack_id, struck)
    assert service.alive() == ["cluster", "web"]


def test_a_change_that_is_sent_twice_is_made_once() -> None:
    service = Clusters()
    stack_id = service.create({"profile": profile(), "cluster": cluster(1)})
    service.rest()
    one = service.handle(stack_id)
    things = service.things.of("p")
    spec = {"name": "c", "profile_id": service.the("profile").id, "desired_capacity": 3, "policies": []}
    for _ in range(3):
        (answer,) = things.update("node_cluster", [Change(one, spec, ("desired_capacity",))])
        assert not isinstance(answer, Exception), answer
    service.rest()
    assert len(service.servers()) == 3
    assert [each.action for each in service.rows_in("action")] == ["CLUSTER_CREATE", "CLUSTER_UPDATE"]
