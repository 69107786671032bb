"""What many requests add up to: each list has a limit for its sum, beyond which one more is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.model import limits
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from tests.component.clusters import Clusters
from tests.component.running import Service, double

SERVER = {"type": "os.nova.server", "version": "1.0", "properties": {"flavor": "small", "image": "i"}}
POLICY = {"type": "senlin.policy.scaling", "version": "1.0", "properties": {"event": "CLUSTER_SCALE_OUT"}}
LARGE = "x" * 900_000


def refused_after(add: Callable[[int], Any], attempts: int = 40) -> tuple[int, Rejected]:
    """How often something can be added, and what is said then."""
    for number in range(attempts):
        try:
            add(number)
        except Rejected as error:
            return number, error
    raise AssertionError(f"{attempts} were taken")


def with_profile() -> tuple[Clusters, Any]:
    service = Clusters()
    return service, service.clustering.profiles.create(service.scope, "mine", SERVER, metadata={})


def with_cluster() -> tuple[Clusters, Any]:
    service, profile = with_profile()
    sizes = {"min_size": 0, "max_size": -1, "desired_capacity": 0}
    begun = service.clustering.clusters.create(service.scope, "c", profile, sizes, 3600, {}, {})
    service.rest()
    return service, begun.target


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (lambda number: {"files": {f"{number}.sh": LARGE}}, "files of a stack may have 16,777,216 bytes in all"),
        (
            lambda number: {"environment": {"parameter_defaults": {f"p{number}": LARGE}}},
            "environment and parameters of a stack may have 4,194,304 bytes in all",
        ),
    ],
    ids=["files", "environment"],
)
def test_updates_that_keep_what_is_there_cannot_add_without_end(
    more: Callable[[int], dict[str, Any]], says: str
) -> None:
    service = Service()
    stack_id = service.create({"a": double()})
    taken, error = refused_after(
        lambda number: service.stack_service.update(stack_id, StackRequest(**more(number)), patch=True)
    )
    assert 2 < taken < 20
    assert error.fault == "RequestLimitExceeded"
    assert says in str(error)
    service.update(stack_id, {"a": double(value="b")})
    assert service.state(stack_id) == "UPDATE_COMPLETE", "an update with everything still passes"


def test_the_profiles_and_policies_of_a_project_have_a_sum() -> None:
    service, profile = with_profile()
    clustering, asking = service.clustering, service.scope
    large = {**POLICY, "description": LARGE}
    taken, error = refused_after(lambda number: clustering.policies.create(asking, f"p{number}", large))
    assert 10 < taken < 20
    assert (error.fault, "policies of a project may have 16,777,216 bytes" in str(error)) == ("OverQuota", True)
    metadata = {"text": LARGE}
    taken, error = refused_after(
        lambda number: clustering.profiles.create(asking, f"q{number}", SERVER, metadata=metadata)
    )
    assert 10 < taken < 20
    assert "profiles of a project" in str(error)
    with pytest.raises(Rejected, match="profiles of a project"):
        clustering.profiles.update(asking, profile.id, {"metadata": {"text": LARGE}})
    clustering.profiles.update(asking, "q0", {"metadata": {"text": "less"}})
    clustering.profiles.update(asking, profile.id, {"metadata": {"text": "x" * 800_000}})


def test_the_metadata_of_clusters_and_nodes_have_a_sum_in_their_project(monkeypatch: pytest.MonkeyPatch) -> None:
    of_project = limits.SumLimit("Metadata of the clusters and nodes of a project", None, 4 * limits.MI, "x")
    monkeypatch.setattr("homeostat.clustering.service.quotas.METADATA_OF_PROJECT", of_project)
    service, profile = with_profile()
    clustering, asking, metadata = service.clustering, service.scope, {"text": "x" * 900_000}
    sizes = {"min_size": 0, "max_size": -1, "desired_capacity": 1}
    cluster = clustering.clusters.create(asking, "c", profile, sizes, 3600, metadata, {}).target
    clustering.nodes.create(asking, "joins", profile, None, {"metadata": metadata})
    service.rest()
    with service.db.read() as tx:
        (first,) = (row.id for row in tx.execute(select(schema.node)) if row.cluster_id == cluster)
    clustering.nodes.update(asking, first, {"metadata": metadata}, None)
    service.rest()
    taken, error = refused_after(
        lambda number: clustering.nodes.create(asking, f"n{number}", profile, None, {"metadata": metadata})
    )
    assert (taken, "of the clusters and nodes of a project may have 4,194,304 bytes" in str(error)) == (1, True)
    with pytest.raises(Rejected, match="clusters and nodes of a project"):
        clustering.clusters.set_metadata(asking, cluster, lambda _: {"text": "x" * 1_500_000})
    clustering.nodes.update(asking, first, {"metadata": {}}, None)
    clustering.clusters.set_metadata(asking, cluster, lambda _: {"text": "x" * 1_500_000})
    clustering.nodes.create(asking, "without", profile, None, {})


def test_the_receivers_of_a_cluster_have_a_sum() -> None:
    service, cluster = with_cluster()
    clustering, asking = service.clustering, service.scope

    def add(number: int) -> None:
        clustering.receivers.create(asking, f"r{number}", cluster, "CLUSTER_SCALE_OUT", {"text": "x" * 200_000})

    taken, error = refused_after(add)
    assert taken == 5
    assert (error.fault, "receivers of a cluster may have 1,048,576 bytes" in str(error)) == ("OverQuota", True)
    with pytest.raises(Rejected, match="receivers of a cluster"):
        clustering.receivers.update(asking, "r0", {"params": {"text": "x" * 300_000}})
    clustering.receivers.update(asking, "r0", {"params": {"text": "less"}})


def test_a_cluster_has_so_many_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    service, cluster = with_cluster()
    monkeypatch.setattr("homeostat.clustering.service.attached_policies.ATTACHED", limits.SumLimit("x", 1, None, "y"))
    made = [service.clustering.policies.create(service.scope, name, POLICY) for name in "ab"]
    attach = service.clustering.bindings.attach
    attach(service.scope, cluster, made[0].id, enabled=True)
    with pytest.raises(Rejected, match="x are at most 1: y"):
        attach(service.scope, cluster, made[1].id, enabled=True)
