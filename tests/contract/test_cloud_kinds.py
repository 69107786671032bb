"""Every adapter keeps to the definitions of kinds (`homeostat.kinds`): fields, status words and operations."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.contract.test_clouds import BUILDING, CASES, Subject, others, present, subject
from tests.contract.test_records import CONFIG, cloud, owned
from tests.kind_checks import misfits, undefined

from homeostat.builtin.kinds.registry import RECORD_KINDS
from homeostat.clouds.port import Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.kinds.registry import BUILTIN_KINDS, CLOUD_KINDS, KINDS
from homeostat.model.errors import Terminal
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
    assert CASES[kind].change.keys() - seen <= KINDS[kind].mutable.keys()


def test_clouds_have_defined_kinds_only(subject: Subject) -> None:
    assert subject.cloud.kinds - {"stack_region"} <= CLOUD_KINDS.keys()
    assert SimulatedCloud.kinds == CLOUD_KINDS.keys()
    assert RECORD_KINDS.keys() == BUILTIN_KINDS.keys()


def test_an_operation_that_no_kind_defines_is_refused(subject: Subject) -> None:
    for kind in ("server", "volume"):
        assert UNKNOWN_OPERATION not in KINDS[kind].operations
        answer = subject.cloud.operate(kind, [Operation(subject[kind], UNKNOWN_OPERATION)])[0]
        assert isinstance(answer, Terminal)


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
