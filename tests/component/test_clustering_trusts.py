"""On whose behalf the service acts in clusters of templates: that of the user who trusts it for the stack."""

from typing import Any

import pytest

from homeostat.clock import Entropy
from homeostat.clouds.identity.errors import Denied
from homeostat.identity.trusts import StackTrusts
from homeostat.store.builtin import stored_trusts
from homeostat.store.builtin.stored_trusts import GOOD, LEAVING, REQUESTED, StoredTrust
from tests.component.clusters import Clusters, cluster, node, profile
from tests.component.running import PROJECT

ANN, BOB = "a" * 32, "b" * 32


class Keystone:
    """Gives tokens for trusts that are good."""

    def __init__(self, *good: str) -> None:
        self.good = set(good)

    def token(self, trust_id: str) -> str:
        if trust_id not in self.good:
            raise Denied("there is no such trust any more")
        return f"token of {trust_id}"


class Trusting(Clusters):
    def __init__(self) -> None:
        super().__init__()
        self.keystone = Keystone("trust of ann", "trust of bob")
        keystone: Any = self.keystone
        self.trusts = StackTrusts(self.db, keystone, Entropy())

    def trust(self, stack_id: str, row_id: str, user_id: str, trust_id: str) -> None:
        """As a request of that user leaves it."""
        now = self.clock.now()
        row = StoredTrust(row_id, stack_id, PROJECT, user_id, REQUESTED, object={"user": user_id}, created_at=now)
        with self.db.write() as tx:
            stored_trusts.add(tx, row)
            stored_trusts.accept(tx, row, trust_id)

    def made(self, resources: dict[str, Any]) -> str:
        stack_id = self.begin(resources)
        self.trust(stack_id, "t1", ANN, "trust of ann")
        self.work()
        self.rest()
        assert self.state(stack_id) == "CREATE_COMPLETE"
        return stack_id

    def tokens_of_servers(self) -> list[str]:
        """Tokens of their creations, that in the cluster first."""
        groups = [each.id for each in self.stacks() if each.parent_name == "nodes"]
        return [row.token for id in groups for row in self.rows(id)]

    def current(self, stack_id: str) -> tuple[str, str]:
        with self.db.read() as tx:
            found = stored_trusts.current(tx, stack_id)
        assert found is not None
        return found.trust_id, found.state


RESOURCES = {"profile": profile(), "cluster": cluster(1), "node": node()}


def test_a_cluster_and_a_node_use_the_trust_of_the_stack_that_has_them() -> None:
    service = Trusting()
    service.made(RESOURCES)
    roots = [each.id for each in service.stacks() if each.parent_id is None]
    assert {service.current(each) for each in roots} == {("trust of ann", GOOD)}
    assert {each.user for each in service.rows_in("cluster")} == {ANN}
    for server in service.tokens_of_servers():
        assert service.trusts.token(PROJECT, of=server) == "token of trust of ann"


def test_where_it_is_good_no_more_that_of_the_next_user_of_the_stack_counts() -> None:
    service = Trusting()
    stack_id = service.made(RESOURCES)
    service.trust(stack_id, "t2", BOB, "trust of bob")
    service.keystone.good.remove("trust of ann")
    server = service.tokens_of_servers()[0]
    with pytest.raises(Denied):  # that of the cluster is found to be gone
        service.trusts.token(PROJECT, of=server)
    assert service.trusts.token(PROJECT, of=server) == "token of trust of bob"


def test_a_change_of_the_cluster_goes_by_the_trust_of_who_has_changed_the_stack() -> None:
    service = Trusting()
    stack_id = service.made(RESOURCES)
    service.trust(stack_id, "t2", BOB, "trust of bob")
    service.update(stack_id, {**RESOURCES, "cluster": cluster(2)})
    service.rest()
    assert service.current(service.handle(stack_id)) == ("trust of bob", GOOD)


def test_a_cluster_that_is_retained_keeps_its_trust() -> None:
    service = Trusting()
    one = {**cluster(1), "deletion_policy": "Retain"}
    stack_id = service.made({"profile": {**profile(), "deletion_policy": "Retain"}, "cluster": one})
    kept = service.handle(stack_id)
    service.delete(stack_id)
    service.rest()
    assert service.current(kept) == ("trust of ann", GOOD)
    assert service.trusts.token(PROJECT, of=service.tokens_of_servers()[0]) == "token of trust of ann"
    service.clustering.clusters.delete(service.scope, kept, force=True)
    service.rest()
    with service.db.read() as tx:
        assert stored_trusts.current(tx, kept) is None
        assert LEAVING in {each.state for each in stored_trusts.take_due(tx, service.clock.now(), 60.0, 10)}
