"""One more costs what the first did: the CPU time of an addition to a long list beside the first of the same run."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from homeostat.builtin import inbox
from homeostat.model.errors import Rejected
from homeostat.model.limits import SumLimit
from homeostat.resources.families.configs import CONFIG
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.store import schema
from homeostat.store.builtin import records, signal_tallies
from homeostat.store.builtin.records import Record, Signal
from tests.component.clusters import Clusters
from tests.component.running import Service, condition, handle
from tests.component.test_sums import POLICY, SERVER, with_profile

THERE = 900
SAMPLE = 40
RATIO_MAX = 4.0
"""Rereading what is there is beyond this by far: of these sizes it costs five to twenty times as much."""


def ratio(add: Callable[[int], Any], fill: Callable[[range], Any] | None = None) -> float:
    """CPU time of what comes after so many, by that of the first."""
    first, between = _cost(add, 0), range(SAMPLE, THERE)
    if fill is not None:
        fill(between)
    else:
        for number in between:
            add(number)
    return _cost(add, THERE) / first


def _cost(add: Callable[[int], Any], begin: int) -> float:
    """Seconds of CPU time; the median, since others work, too."""
    costs = []
    for number in range(begin, begin + SAMPLE):
        begun = time.process_time()
        add(number)
        costs.append(time.process_time() - begun)
    return sorted(costs)[SAMPLE // 2]


@pytest.mark.heavy
@pytest.mark.parametrize("size", [200, 3_500])
def test_a_signal(size: int) -> None:
    service = Service()
    stack_id = service.create({"handle": handle(), "wait": condition(count=100_000, timeout=40_000)})
    service.live(2.0)
    text, id = "x" * size, service.row(stack_id, "handle").handle

    def fill(numbers: range) -> None:
        said = {"status": "SUCCESS", "reason": "", "data": text}
        with service.db.write() as tx:
            records.add_signals(tx, id, [Signal({"id": str(number), **said}, 1.0) for number in numbers])
            signal_tallies.count(tx, id)

    assert ratio(lambda number: service.signal(stack_id, "handle", {"id": str(number), "data": text}), fill) < RATIO_MAX


def test_a_software_config() -> None:
    service = Service()

    def add(number: int) -> None:
        with service.db.write() as tx:
            assert records.total_size(tx, CONFIG, "p") >= number * 30_000
            record = Record(f"c{number}", CONFIG, "p", f"c{number}", {"config": "x" * 30_000})
            records.add(tx, [record])

    assert ratio(add) < RATIO_MAX


@pytest.mark.heavy
@pytest.mark.parametrize("sort", ["profiles", "policies"])
def test_a_profile_and_a_policy(sort: str) -> None:
    service, _ = with_profile()
    specs = getattr(service.clustering, sort)
    text = "x" * 15_000
    more = {"metadata": {"text": text}} if sort == "profiles" else {}
    spec = SERVER if sort == "profiles" else {**POLICY, "description": text}

    def add(number: int) -> None:
        specs.create(service.scope, f"n{number}", spec, **more)

    assert ratio(add) < RATIO_MAX


def test_metadata_of_a_node() -> None:
    service, profile = with_profile()
    nodes, metadata = service.clustering.nodes, {"metadata": {"text": "x" * 30_000}}

    def add(number: int) -> None:
        nodes.create(service.scope, f"n{number}", profile, None, metadata)

    def fill(numbers: range) -> None:
        with service.db.write() as tx:
            like = tx.execute(select(schema.node)).first()
            assert like is not None
            rows = [{**like._mapping, "id": f"n{number}", "number": number} for number in numbers]
            tx.execute(insert(schema.node), rows)

    assert ratio(add, fill) < RATIO_MAX


def test_sizes_follow_what_is_stored_and_what_an_older_version_stored_counts_too() -> None:
    service = Service()
    record = Record("one", CONFIG, "p", "one", {"config": "x" * 1_000})
    with service.db.write() as tx:
        records.add(tx, [record])
        whole = records.total_size(tx, CONFIG, "p")
        assert 1_000 < whole < 1_100
        record.object["config"] = "x" * 5_000
        records.save(tx, record, 0.0)
        assert records.total_size(tx, CONFIG, "p") == whole + 4_000
        tx.execute(update(schema.record).values(size=None))
        assert abs(records.total_size(tx, CONFIG, "p") - whole - 4_000) < 100
        records.remove(tx, ["one"])
        assert records.total_size(tx, CONFIG, "p") == 0


def test_profiles_weigh_what_they_were_changed_to() -> None:
    service, profile = with_profile()
    before = _weight(service)
    service.clustering.profiles.update(service.scope, profile.id, {"metadata": {"text": "x" * 10_000}})
    service.clustering.profiles.update(service.scope, profile.id, {"name": "other"})
    assert 10_000 <= _weight(service) - before < 10_100


def _weight(service: Clusters) -> int:
    with service.db.read() as tx:
        return int(tx.execute(schema.profile.select()).one().size)


def test_what_servers_signal_for_deployments_has_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "OUTPUTS", SumLimit("What servers have said", None, 20_000, "say less"))
    service = Service()
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"outputs": [{"name": "text"}]}}
    deployments = {
        f"d{number}": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "config"}, "server": "srv"},
        }
        for number in range(2)
    }
    stack_id = service.create({"config": config, **deployments})
    service.live(2.0)
    service.signal(stack_id, "d0", {"text": "x" * 12_000})
    with pytest.raises(Rejected, match="what servers have said may have 20,000 bytes in all"):
        service.signal(stack_id, "d1", {"text": "x" * 12_000})
    service.signal(stack_id, "d1", {"text": "x" * 100})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    with service.db.read() as tx:
        assert records.total_size(tx, DEPLOYMENT, "p") < 20_000
