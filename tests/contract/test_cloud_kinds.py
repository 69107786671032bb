"""Every adapter keeps to the definitions of kinds (`homeostat.kinds`): fields, status words and operations."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.contract.test_clouds import BUILDING, CASES, NOWHERE, Subject, others, present, subject
from tests.contract.test_records import CONFIG, cloud, owned
from tests.kind_checks import misfits, undefined
from tests.unit.kinds.test_kinds import IN_CLOUDS
from tests.unit.kinds.test_kinds import spec as asked_for

from homeostat.builtin.kinds.registry import RECORD_KINDS
from homeostat.clouds.port import Change, Cloud, Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clustering.resources.cloud import TYPE_KINDS, ClusteringCloud
from homeostat.kinds.registry import BUILTIN_KINDS, CLOUD_KINDS, KINDS
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.plugins import resource
from homeostat.plugins.cloud import PluginClouds
from homeostat.plugins.types import kind_of_class
from homeostat.resources.kind_fields import fields_of
from homeostat.resources.registry import types
from homeostat.store.database import Database

__all__ = ["others", "subject"]  # fixtures

UNKNOWN_OPERATION = "explode"


@pytest.mark.parametrize("kind", sorted(CASES))
def test_a_thing_fits_the_definition_of_its_kind(subject: Subject, kind: str) -> None:
    spec = CASES[kind].spec(subject)
    made = present(subject.cloud.create(kind, [Creation("t-1", spec)])[0])
    built = subject.until(kind, made.handle, lambda seen: seen.properties.get("status") not in BUILDING)
    assert misfits(kind, made.properties) == misfits(kind, built.properties) == []
    assert {"id"} | ({"status"} & KINDS[kind].reported.keys()) <= built.properties.keys()


@pytest.mark.parametrize("kind", sorted(CASES))
def test_the_contract_uses_defined_fields_only(subject: Subject, kind: str) -> None:
    assert undefined(kind, CASES[kind].spec(subject)) == []
    seen = KINDS[kind].reported.keys()  # a change may also name what is to be reported of it
    assert CASES[kind].change.keys() - seen <= fields_of(kind).mutable.keys()


def test_clouds_have_defined_kinds_only(subject: Subject) -> None:
    assert subject.cloud.kinds - {"stack_region"} <= CLOUD_KINDS.keys()
    assert SimulatedCloud.kinds == CLOUD_KINDS.keys()
    assert RECORD_KINDS.keys() | ClusteringCloud.kinds - TYPE_KINDS == BUILTIN_KINDS.keys()


def test_an_operation_that_no_kind_defines_is_refused(subject: Subject) -> None:
    for kind in ("server", "volume"):
        assert UNKNOWN_OPERATION not in KINDS[kind].operations
        answer = subject.cloud.operate(kind, [Operation(subject[kind], UNKNOWN_OPERATION)])[0]
        assert isinstance(answer, Terminal)


# -- kinds that the clouds of the other suite do not have --------------------------------------------------------------


def lives(cloud: Cloud, kind: str, spec: Mapping[str, Any]) -> None:
    """A thing is made once, seen by handle and by token, deleted, and absent to every verb then."""
    (made, again) = (present(cloud.create(kind, [Creation("t-1", spec)])[0]) for _ in range(2))
    found, missing = cloud.find(kind, ["t-1", "t-2"])
    assert (again.handle, found.handle, missing.presence) == (made.handle, made.handle, Presence.ABSENT)
    seen, nowhere = cloud.observe(kind, [made.handle, NOWHERE])
    assert (seen.handle, nowhere.presence) == (made.handle, Presence.ABSENT)
    refused, absent = cloud.operate(kind, [Operation(handle, UNKNOWN_OPERATION) for handle in (made.handle, NOWHERE)])
    assert isinstance(refused, Terminal | Rejected)
    assert absent.presence is Presence.ABSENT if isinstance(absent, Observation) else isinstance(absent, Rejected)
    (updated,) = cloud.update(kind, [Change(NOWHERE, spec, ("name",))])
    deleted, unknown = cloud.delete(kind, [made.handle, NOWHERE])
    for answer in (updated, deleted, unknown, *cloud.delete(kind, [made.handle]), *cloud.find(kind, ["t-1"])):
        assert isinstance(answer, Observation)
        assert answer.presence is Presence.ABSENT


SIMULATED_ONLY = {name: types()[name].kind for name in IN_CLOUDS if types()[name].kind not in CASES}
"""A resource type for each of them, which says what to ask for."""


@pytest.mark.parametrize("name", sorted({kind: name for name, kind in SIMULATED_ONLY.items()}.values()))
def test_a_simulated_thing_lives_by_the_port(name: str) -> None:
    lives(SimulatedCloud(lambda: 0.0), SIMULATED_ONLY[name], asked_for(name))


def test_a_thing_of_a_plug_in_lives_by_the_port(database: Database) -> None:
    class Made(resource.Resource):
        """It is there at once."""

        def handle_create(self) -> None:
            self.resource_id_set("made-1")

    clouds = PluginClouds(database, {"Example::Made": Made})
    lives(clouds.of("p"), kind_of_class("Example::Made"), {"properties": {}, "physical_name": "web-made-row"})
    clouds.close()


def test_records_fit_the_definitions_of_their_kinds(database: Database) -> None:
    owned(database, "handle", "wait", "config", "policy", "user", "key", "server", "apply")
    records = cloud(database)
    handle = {"name": "h", "form": "native", "transport": "TOKEN_SIGNAL"}
    made: dict[str, Mapping[str, Any]] = {
        "signal_handle": handle,
        "software_config": CONFIG,
        "scaling_policy": {"name": "p"},
    }
    made |= {"iam_user": {"name": "u"}, "access_key": {"name": "k", "user": "u"}}
    made |= {"deployed_server": {"name": "s", "transport": "POLL_SERVER_CFN"}}
    keys = ("handle", "config", "policy", "user", "key", "server")
    for key, (kind, spec) in zip(keys, made.items(), strict=True):
        assert misfits(kind, present(records.create(kind, [Creation(f"{key}-1", spec)])[0]).properties) == []
    handle_id = present(records.find("signal_handle", ["handle-1"])[0]).handle
    waits = {"name": "w", "handle": handle_id, "timeout": 60, "count": 1}
    waiting = present(records.create("wait_condition", [Creation("wait-1", waits)])[0])
    assert misfits("wait_condition", waiting.properties) == []
