"""What templates with clusters may not do: reach other projects, go beyond quotas, nest without end."""

from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.api.access.enforcer import Policy
from homeostat.clock import Entropy
from homeostat.clouds.port import Creation
from homeostat.clustering.resources.api import ClusteringResources
from homeostat.clustering.resources.cloud import ClusteringResourceClouds
from homeostat.clustering.service import quotas, receivers, specs
from homeostat.clustering.service.requester import RequestScope
from homeostat.identity import descent
from homeostat.json_pieces import plain
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected, Transient
from homeostat.store.builtin import records
from tests.component.clusters import Clusters, cluster, node, policy, profile, receiver
from tests.component.running import PROJECT, URL, group

OTHER = "other"
POLICY = {"type": "senlin.policy.scaling", "version": "1.0", "properties": {"event": "CLUSTER_SCALE_OUT"}}
SERVER = {"type": "os.nova.server", "version": "1.0", "properties": {"flavor": "small", "image": "i"}}


def theirs(service: Clusters) -> dict[str, str]:
    """Things of another project: what each is called -> its id."""
    scope = RequestScope(Caller(project=OTHER), OTHER)
    clustering = service.clustering
    made = clustering.profiles.create(scope, "their-profile", SERVER, metadata={})
    rule = clustering.policies.create(scope, "their-policy", POLICY)
    sizes = {"min_size": 0, "max_size": -1, "desired_capacity": 1}
    begun = clustering.clusters.create(scope, "their-cluster", made, sizes, 3600, {}, {})
    service.rest()
    found = {"profile": made.id, "policy": rule.id, "cluster": begun.target}
    return {**found, "node": next(each.id for each in service.rows_in("node"))}


NAMED: Mapping[str, Any] = {
    "profile": lambda id: cluster(0, profile=id),
    "policy": lambda id: cluster(0, policies=[{"policy": id}]),
    "cluster": lambda id: receiver(cluster=id),
    "cluster of a node": lambda id: node(cluster=id),
    "cluster of a policy": lambda id: policy(bindings=[{"cluster": id}]),
    "profile of a node": lambda id: node(profile=id),
}


@pytest.mark.parametrize("what", NAMED)
def test_what_another_project_has_is_not_there(what: str) -> None:
    service = Clusters()
    id = theirs(service)[what.partition(" ")[0]]
    for called in (id, f"their-{what.partition(' ')[0]}"):
        with pytest.raises(Rejected, match="could not be found"):
            service.begin({"profile": profile(), "it": NAMED[what](called)})


@pytest.mark.parametrize("what", NAMED)
def test_nor_is_it_once_its_id_is_known_only_while_the_stack_is_made(what: str) -> None:
    service = Clusters()
    id = theirs(service)[what.partition(" ")[0]]
    value = {"type": "OS::Heat::Value", "properties": {"value": id}}
    one = NAMED[what]({"get_attr": ["id", "value"]})
    stack_id = service.create({"profile": profile(), "id": value, "it": one})
    service.rest()
    assert service.states(stack_id)["it"] == "CREATE_FAILED"
    assert "could not be found" in service.row(stack_id, "it").reason
    assert {each.name for each in service.rows_in("cluster")} == {"their-cluster"}


@pytest.mark.parametrize(
    ("what", "type_name"),
    [("cluster", "Cluster"), ("node", "Node"), ("profile", "Profile"), ("policy", "Policy")],
)
def test_it_can_neither_be_shown_nor_adopted(what: str, type_name: str) -> None:
    service = Clusters()
    id = theirs(service)[what]
    kind = f"{'node_cluster' if what == 'cluster' else f'cluster_{what}'}"
    (look,) = service.things.of(PROJECT).observe(kind, [id])
    assert not look.present
    stack_id = service.create({"it": {"type": f"OS::Senlin::{type_name}", "external_id": id}})
    service.rest()
    assert service.states(stack_id)["it"] == "CREATE_FAILED"
    (answer,) = service.things.of(PROJECT).delete(kind, [id])
    service.rest()
    assert not isinstance(answer, Exception)
    (there,) = service.things.of(OTHER).observe(kind, [id])
    assert there.present


def test_a_document_that_names_a_cluster_of_another_project_makes_one_of_its_own() -> None:
    service = Clusters()
    before = theirs(service)["cluster"]
    mine = service.create({"profile": profile(), "cluster": cluster(1)})
    service.rest()
    document = service.moving.abandon(mine)
    service.rest()
    document["resources"]["cluster"]["resource_id"] = before
    stack_id = service.adopt(document)
    service.rest()
    assert service.state(stack_id) == "ADOPT_COMPLETE"
    assert service.handle(stack_id) != before


def test_two_stacks_do_not_adopt_one_cluster() -> None:
    service = Clusters()
    mine = service.create({"profile": profile(), "cluster": cluster(1)})
    service.rest()
    document = plain(service.moving.export(mine))
    other = service.adopt(document)
    service.rest()
    assert service.state(other) == "ADOPT_FAILED"
    assert "already: abandon that first" in service.stack(other).reason
    service.delete(other)
    service.rest()
    assert service.alive() == ["cluster", "web"]


# -- quotas ------------------------------------------------------------------------------------------------------------


def test_clusters_of_templates_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "CLUSTERS_MAX", 3)
    service = Clusters()
    member = cluster(0, profile="mine")
    service.clustering.profiles.create(service.scope, "mine", SERVER, metadata={})
    stack_id = service.create({"many": group(50, member)})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "Quota exceeded: a project has at most 3 clusters" in service.stack(stack_id).reason
    assert service.count("cluster") == 3
    service.delete(stack_id)
    service.rest()
    assert service.alive() == []


def test_a_million_clusters_are_not_even_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Clusters()
    service.clustering.profiles.create(service.scope, "mine", SERVER, metadata={})
    with pytest.raises(Rejected, match="resources"):
        service.begin({"many": group(1_000_000, cluster(0, profile="mine"))})


@pytest.mark.parametrize(
    ("module", "name", "resource", "says"),
    [
        (specs, "SPECS_MAX", profile(), "at most 1 of profile"),
        (specs, "SPECS_MAX", policy(), "at most 1 of policy"),
        (receivers, "RECEIVERS_MAX", receiver(), "at most 1 receivers"),
    ],
)
def test_the_other_things_of_templates_count_too(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, resource: Any, says: str
) -> None:
    service = Clusters()
    others = {"profile": profile(), "cluster": cluster(0), "policy": policy(), "first": receiver()}
    service.create(others)
    service.rest()
    monkeypatch.setattr(module, name, 1)
    id = service.the("cluster").id
    if "cluster" in resource["properties"]:
        resource = receiver(cluster=id)
    more = service.create({"it": resource}, name="more")
    service.rest()
    assert service.state(more) == "CREATE_FAILED"
    assert says in service.stack(more).reason


def test_each_node_without_a_cluster_and_each_cluster_counts_as_a_stack() -> None:
    service = Clusters()
    object.__setattr__(service.stack_service.quotas, "stacks_max", 3)
    service.clustering.profiles.create(service.scope, "mine", SERVER, metadata={})
    stack_id = service.create({"many": group(5, node(profile="mine"))})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "maximum stacks per project, 3" in service.stack(stack_id).reason


def test_a_batch_of_slow_creations_is_answered_in_time() -> None:
    service = Clusters()
    stack_id = service.create({"profile": profile(), "cluster": cluster(0)})
    service.rest()
    token = service.row(stack_id, "cluster").token
    times = iter((0.0, 1.0, 19.0, 21.0, 30.0))
    things = service.things.of(PROJECT)
    things._monotonic = lambda: next(times)
    answers = things.create("node_cluster", [Creation(token, {})] * 4)
    assert [isinstance(each, Transient) for each in answers] == [False, False, True, True]


# -- nesting -----------------------------------------------------------------------------------------------------------


def loop(service: Clusters, inner: dict[str, Any]) -> None:
    """Store the profile "loop", of stacks that have something made from the profile "loop"."""
    template = {"heat_template_version": "2018-08-31", "resources": {"inner": inner}}
    spec = {"type": "os.heat.stack", "version": "1.0", "properties": {"template": template}}
    stored = service.clustering.profiles
    plain = stored.create(service.scope, "loop", SERVER, metadata={})
    closing = stored.create(service.scope, "closing", spec, metadata={})
    stored.delete(service.scope, plain.id)
    stored.update(service.scope, closing.id, {"name": "loop"})


@pytest.mark.parametrize("inner", [cluster(2, profile="loop"), node(profile="loop")], ids=["clusters", "nodes"])
def test_a_profile_that_contains_itself_ends_at_the_depth_that_stacks_may_have(inner: dict[str, Any]) -> None:
    service = Clusters()
    loop(service, inner)
    stack_id = service.create({"it": inner})
    service.rest(3000)
    assert service.state(stack_id) == "CREATE_FAILED"
    reasons = [each.reason for each in service.stacks()]
    assert any("Recursion depth exceeds 5" in each for each in reasons)
    roots = [each for each in service.stacks() if each.parent_id is None]
    assert len(roots) <= 4, [each.name for each in roots]
    service.delete(stack_id)
    service.rest(3000)
    assert service.alive() == []
    assert (service.count("record"), service.cloud.things()) == (0, {})


@pytest.mark.heavy
def test_a_profile_whose_nodes_join_their_own_cluster_ends_with_its_time() -> None:
    service = Clusters()
    other = service.create({"profile": profile(), "cluster": cluster(0, name="c")}, name="other")
    loop(service, node(profile="loop", cluster="c"))
    service.delete(other)
    service.rest()
    stack_id = service.begin({"it": cluster(1, profile="loop", name="c")}, timeout_mins=1)
    service.live(200)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.count("node") <= 2


def test_the_depth_goes_on_through_independent_stacks() -> None:
    """A template of a node makes a stack by the API (`OS::Heat::Stack`), which has the token as a tag."""
    service = Clusters()
    stack_id = service.create({"profile": profile(), "cluster": cluster(1)})
    service.rest()
    inside = service.row(next(each.id for each in service.stacks() if each.parent_name == "nodes"), "0")
    tags = ["homeostat:remote", f"homeostat:{inside.key}-1"]
    remote = service.create({"profile": profile()}, name="remote", tags=tags)
    keys = [service.row(stack_id, "cluster").key, inside.key, service.row(remote, "profile").key]
    with service.db.read() as tx:
        owners = records.owners(tx, keys)
        assert [descent.depth_of(tx, owners[key]) for key in keys] == [1, 3, 4]


# -- rules -------------------------------------------------------------------------------------------------------------


class Ruled(Clusters):
    """Users have names, and rules hold."""

    def __init__(self) -> None:
        super().__init__()
        api = ClusteringResources(self.db, self.stack_service, URL, Policy())
        self.things = ClusteringResourceClouds(self.db, Entropy(), lambda: api)

    def made_by(self, user: str, resources: dict[str, Any]) -> str:
        stack_id = self.stack_service.create(PROJECT, user, "web", self.request(resources))
        self.rest()
        return stack_id


def test_what_a_template_makes_belongs_to_the_owner_of_its_stack() -> None:
    service = Ruled()
    resources = {"profile": profile(), "policy": policy(), "cluster": cluster(1), "out": receiver(), "one": node()}
    stack_id = service.made_by("ann", resources)
    assert service.state(stack_id) == "CREATE_COMPLETE", service.stack(stack_id).reason
    owners = {each.user for table in ("profile", "policy", "cluster", "receiver") for each in service.rows_in(table)}
    assert owners == {"ann"}
    assert {each.owner for each in service.stacks() if each.parent_id is None} == {"ann"}


def test_a_cluster_has_no_types_that_not_every_user_may_use() -> None:
    service = Ruled()
    flavor = {"type": "OS::Nova::Flavor", "properties": {"ram": 1, "vcpus": 1}}
    template = {"heat_template_version": "2018-08-31", "resources": {"flavor": flavor}}
    properties = {"type": "os.heat.stack-1.0", "properties": {"template": template}}
    one = {"type": "OS::Senlin::Profile", "properties": properties}
    stack_id = service.made_by("ann", {"profile": one, "cluster": cluster(1)})
    assert service.states(stack_id)["cluster"] == "CREATE_FAILED"
    assert "not authorized to use OS::Nova::Flavor" in service.row(stack_id, "cluster").reason
    assert service.count("cluster") == 0
