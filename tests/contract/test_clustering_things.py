"""Clusters, nodes, profiles, policies and receivers behind the port of a cloud, on both databases."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import event
from tests.contract.test_cloud_kinds import UNKNOWN_OPERATION
from tests.contract.test_clouds import NOWHERE
from tests.contract.test_records import URL, owned, present
from tests.kind_checks import misfits, undefined

from homeostat.clock import Entropy
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.clustering.resources.api import ClusteringResources
from homeostat.clustering.resources.cloud import ClusteringCloud, ClusteringResourceClouds
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.builtin import records
from homeostat.store.database import Database

PROFILE = {"name": "web", "type": "os.nova.server-1.0", "properties": {"flavor": "small", "image": "i"}}
POLICY = {"name": "out", "type": "senlin.policy.scaling-1.0", "properties": {"event": "CLUSTER_SCALE_OUT"}}
CLUSTER = {"name": "c", "profile_id": "web", "desired_capacity": 0, "policies": [{"policy_id": "out", "enabled": True}]}
SPECS: Mapping[str, Mapping[str, Any]] = {
    "cluster_profile": PROFILE,
    "cluster_policy": POLICY,
    "node_cluster": CLUSTER,
    "cluster_node": {"name": "n", "profile_id": "web", "metadata": {"a": 1}},
    "cluster_receiver": {"name": "r", "cluster_id": "c", "action": "CLUSTER_SCALE_IN", "type": "webhook"},
}


def things(database: Database, project: str = "p") -> ClusteringCloud:
    stacks = StackService(database, Entropy(), Quotas())
    api = ClusteringResources(database, stacks, URL, None)
    return ClusteringResourceClouds(database, Entropy(), lambda: api).of(project)


@pytest.fixture
def made(database: Database) -> dict[str, Observation]:
    """One of each, by its kind."""
    owned(database, *(kind.replace("_", "") for kind in SPECS))
    here = things(database)
    return {kind: present(here.create(kind, [Creation(token(kind), spec)])[0]) for kind, spec in SPECS.items()}


def token(kind: str) -> str:
    return f"{kind.replace('_', '')}-1"


@pytest.mark.heavy
@pytest.mark.parametrize("kind", SPECS)
def test_a_thing_is_made_once_and_fits_the_definition_of_its_kind(
    database: Database, made: Mapping[str, Observation], kind: str
) -> None:
    here, seen = things(database), made[kind]
    assert misfits(kind, seen.properties) == undefined(kind, SPECS[kind]) == []
    again = present(here.create(kind, [Creation(token(kind), SPECS[kind])])[0])
    found, missing = here.find(kind, [token(kind), "other-1"])
    assert again.handle == found.handle == seen.handle
    assert missing.presence is Presence.ABSENT
    assert [each.presence for each in here.observe(kind, [NOWHERE, seen.handle])] == ["absent", "present"]


@pytest.mark.heavy
@pytest.mark.parametrize("kind", SPECS)
def test_no_other_project_reaches_it(database: Database, made: Mapping[str, Observation], kind: str) -> None:
    there, handle = things(database, "q"), made[kind].handle
    assert there.observe(kind, [handle])[0].presence is Presence.ABSENT
    assert there.find(kind, [token(kind)])[0].presence is Presence.ABSENT
    assert there.resolve(kind, [handle, str(SPECS[kind]["name"])]) == [None, None]
    (changed,), (gone,) = there.update(kind, [Change(handle, SPECS[kind])]), there.delete(kind, [handle])
    assert isinstance(gone, Observation)
    assert gone.not_found
    if kind != "cluster_receiver":  # nothing of one changes
        assert isinstance(changed, Terminal) or not present_in(changed)
    assert things(database).observe(kind, [handle])[0].present


def present_in(answer: Any) -> bool:
    return isinstance(answer, Observation) and answer.present


@pytest.mark.heavy
@pytest.mark.parametrize("kind", SPECS)
def test_names_are_resolved_and_types_are(database: Database, made: Mapping[str, Observation], kind: str) -> None:
    here, name = things(database), str(SPECS[kind]["name"])
    assert here.resolve(kind, [name, made[kind].handle, NOWHERE]) == [made[kind].handle, made[kind].handle, None]
    assert here.resolve("cluster_profile_type", ["os.nova.server-1.0", "os.nova.server-9.0"]) == [
        "os.nova.server-1.0",
        None,
    ]


def test_a_name_of_two_things_is_no_name(database: Database, made: Mapping[str, Observation]) -> None:
    here = things(database)
    present(here.create("cluster_profile", [Creation("nodecluster-2", PROFILE)])[0])
    with pytest.raises(Rejected, match="refer to one by its id"):
        here.resolve("cluster_profile", ["web"])


@pytest.mark.heavy
@pytest.mark.parametrize("kind", SPECS)
def test_an_operation_that_it_does_not_have_is_refused(
    database: Database, made: Mapping[str, Observation], kind: str
) -> None:
    here = things(database)
    answers = here.operate(kind, [Operation(handle, UNKNOWN_OPERATION) for handle in (made[kind].handle, NOWHERE)])
    assert [type(each) for each in answers] == [Terminal, Terminal]


def test_what_is_in_use_waits_and_goes_afterwards(database: Database, made: Mapping[str, Observation]) -> None:
    here = things(database)
    for kind in ("cluster_profile", "cluster_policy"):
        assert isinstance(here.delete(kind, [made[kind].handle])[0], Transient)
    (receiver,) = here.delete("cluster_receiver", [made["cluster_receiver"].handle])
    assert isinstance(receiver, Observation)
    assert receiver.presence is Presence.ABSENT
    (cluster,) = here.delete("node_cluster", [made["node_cluster"].handle])
    assert present(cluster).properties["status"] == "deleting"
    assert here.find("node_cluster", [token("node_cluster")])[0].presence is Presence.ABSENT, "its token is done with"


def test_nothing_is_made_for_a_resource_that_is_gone(database: Database) -> None:
    (answer,) = things(database).create("cluster_profile", [Creation("gone-1", PROFILE)])
    assert isinstance(answer, Terminal)
    assert "not there any more" in str(answer)


def test_a_thing_that_is_deleted_by_others_leaves_no_record_for_long(
    database: Database, made: Mapping[str, Observation]
) -> None:
    here = things(database)
    (other,) = here.create("cluster_profile", [Creation("nodecluster-2", {**PROFILE, "name": "other"})])
    services = here._api()._sorts["cluster_profile"]._service  # type: ignore[attr-defined]
    services.delete(here._api()._sorts["cluster_profile"]._context.reading("p"), present(other).handle)  # type: ignore[attr-defined]
    present(here.create("cluster_profile", [Creation("clusternode-2", {**PROFILE, "name": "third"})])[0])
    with database.read() as tx:
        assert "nodecluster-2" not in records.of_tokens(tx, "cluster_profile", ["nodecluster-2", "clusternode-2"])


@pytest.mark.heavy
@pytest.mark.parametrize("kind", SPECS)
def test_a_look_at_many_costs_as_many_queries_as_at_one_but_for_actions_that_go_on(
    database: Database, made: Mapping[str, Observation], kind: str
) -> None:
    here = things(database)
    spec = {**SPECS[kind], "policies": []} if kind == "node_cluster" else SPECS[kind]
    more = [
        Creation(f"{token(each).partition('-')[0]}-9", {**spec, "name": f"m{index}"})
        for index, each in enumerate(SPECS)
    ]
    handles = [made[kind].handle, *(present(each).handle for each in here.create(kind, more))]
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        asked.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        here.observe(kind, handles[:1])
        one = len(asked)
        here.observe(kind, handles)
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    going_on = len(more) if kind in ("node_cluster", "cluster_node") else 0
    assert len(asked) - one <= one + 4 * going_on
