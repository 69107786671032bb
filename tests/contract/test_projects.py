"""One project reaches nothing of another: not by id, not by name, not by token, and no error tells of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_clouds import CASES, Subject, present

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Change, Cloud, Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import HomeostatError, Rejected, Terminal
from homeostat.model.observed import Observation, Presence

KINDS = sorted(CASES.keys() - {"remote_stack"})
SECRET = "of-the-other-project"


@dataclass
class Own(Subject):
    """A project's cloud. project — in the tokens of what it makes."""

    project: str = ""

    def create(self, kind: str, token: str, **fields: Any) -> Observation:
        return super().create(kind, f"{token}-{self.project}", **fields)


@dataclass
class Projects:
    mine: Subject
    other: Subject


def local(path: Path) -> Iterator[Projects]:
    cloud = LocalCloud(path / "cloud")
    yield Projects(*(Own(cloud.of(each), time.sleep, project=each) for each in ("mine", "other")))
    cloud.destroy()


def simulated(path: Path) -> Iterator[Projects]:
    cloud = SimulatedCloud(time.time)
    yield Projects(*(Own(cloud.of(each), time.sleep, project=each) for each in ("mine", "other")))


ADAPTERS: dict[str, Callable[[Path], Iterator[Projects]]] = {"local": local, "simulated": simulated}


@pytest.fixture(params=sorted(ADAPTERS))
def projects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Projects]:
    yield from ADAPTERS[request.param](tmp_path)


@pytest.fixture
def on_this_machine(tmp_path: Path) -> Iterator[Projects]:
    yield from local(tmp_path)


def named(other: Subject, kind: str) -> str:
    """A thing of the other project, with a name that nobody else may hear of."""
    spec = {**CASES[kind].spec(other), "name": SECRET}
    return other.until_built(kind, present(other.cloud.create(kind, [Creation("secret", spec)])[0]).handle).handle


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_of_another_project_is_not_there(projects: Projects, kind: str) -> None:
    handle = named(projects.other, kind)
    before = projects.other.cloud.observe(kind, [handle])[0].properties
    mine = projects.mine.cloud
    assert mine.observe(kind, [handle])[0].presence is Presence.ABSENT
    assert mine.find(kind, ["secret"])[0].presence is Presence.ABSENT
    if projects.mine.cloud.name == "local":
        assert mine.resolve(kind, [handle, SECRET]) == [None, None]
    absent(mine.update(kind, [Change(handle, {**CASES[kind].spec(projects.other), "name": "taken"})])[0])
    absent(mine.delete(kind, [handle])[0])
    for verb in ("lock", "stop", "snapshot", "start"):
        (answer,) = mine.operate(kind, [Operation(handle, verb, {"token": "t"})])
        assert not isinstance(answer, Observation) or not answer.present
    assert projects.other.cloud.observe(kind, [handle])[0].properties == before
    assert projects.other.cloud.find(kind, ["secret"])[0].handle == handle


def absent(answer: Observation | HomeostatError) -> None:
    assert isinstance(answer, Observation), repr(answer)
    assert answer.presence is Presence.ABSENT


@pytest.mark.parametrize("kind", ["keypair", "flavor", "network", "volume"])
def test_both_may_use_one_name(projects: Projects, kind: str) -> None:
    mine, other = (each.create(kind, "token", name="same").handle for each in (projects.mine, projects.other))
    projects.mine.cloud.delete(kind, [mine])
    assert not projects.mine.cloud.observe(kind, [mine])[0].present
    assert projects.other.cloud.observe(kind, [other])[0].properties["name"] == "same"


REFERENCES: list[tuple[str, str, Callable[[str], dict[str, Any]]]] = [
    ("server", "port", lambda it: {"networks": [{"port": it}]}),
    ("server", "network", lambda it: {"networks": [{"network": it}]}),
    ("server", "subnet", lambda it: {"networks": [{"subnet": it}]}),
    ("server", "volume", lambda it: {"block_device_mapping": [{"device_name": "vda", "volume_id": it}]}),
    ("server", "volume", lambda it: {"block_device_mapping_v2": [{"volume_id": it}]}),
    ("server", "security_group", lambda it: {"security_groups": [it]}),
    ("server", "keypair", lambda it: {"key_name": it}),
    ("server", "flavor", lambda it: {"flavor": it}),
    ("server", "server_group", lambda it: {"scheduler_hints": {"group": it}}),
    ("volume", "volume", lambda it: {"source_volid": it, "size": None}),
    ("volume_attachment", "server", lambda it: {"instance_uuid": it}),
    ("volume_attachment", "volume", lambda it: {"volume_id": it}),
    ("subnet", "network", lambda it: {"network_id": it}),
    ("port", "network", lambda it: {"network_id": it, "fixed_ips": None}),
    ("port", "subnet", lambda it: {"network_id": None, "fixed_ips": [{"subnet": it}]}),
    ("port", "subnet", lambda it: {"fixed_ips": [{"subnet_id": it}]}),
    ("port", "security_group", lambda it: {"security_groups": [it]}),
    ("router", "network", lambda it: {"external_gateway_info": {"network": it}}),
    ("router_interface", "router", lambda it: {"router_id": it}),
    ("router_interface", "subnet", lambda it: {"subnet_id": it}),
    ("router_interface", "port", lambda it: {"subnet_id": None, "port_id": it}),
    ("router_gateway", "router", lambda it: {"router_id": it}),
    ("router_gateway", "network", lambda it: {"network_id": it}),
    ("security_group_rule", "security_group", lambda it: {"security_group_id": it}),
    ("security_group_rule", "security_group", lambda it: {"remote_group_id": it}),
    ("floating_ip", "network", lambda it: {"floating_network_id": it}),
    ("floating_ip", "subnet", lambda it: {"subnet_id": it}),
    ("floating_ip", "port", lambda it: {"port_id": it}),
    ("floating_ip", "server", lambda it: {"server": it}),
    ("floating_ip_association", "floating_ip", lambda it: {"floatingip_id": it}),
    ("floating_ip_association", "port", lambda it: {"port_id": it}),
    ("floating_ip_association", "server", lambda it: {"port_id": None, "server": it}),
    ("load_balancer", "subnet", lambda it: {"vip_subnet": it}),
    ("listener", "load_balancer", lambda it: {"loadbalancer": it}),
    ("listener", "pool", lambda it: {"default_pool": it}),
    ("pool", "listener", lambda it: {"listener": it}),
    ("pool", "load_balancer", lambda it: {"listener": None, "loadbalancer": it}),
    ("pool_member", "pool", lambda it: {"pool": it}),
    ("pool_member", "subnet", lambda it: {"subnet": it}),
    ("pool_member", "server", lambda it: {"address": None, "server": it}),
    ("health_monitor", "pool", lambda it: {"pool": it}),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "of", "fields"), REFERENCES, ids=lambda it: it if isinstance(it, str) else None)
def test_a_reference_does_not_reach_another_project(
    on_this_machine: Projects, kind: str, of: str, fields: Callable[[str], dict[str, Any]]
) -> None:
    mine, other = on_this_machine.mine, on_this_machine.other
    handle = named(other, of)
    if of == "floating_ip":
        handles = [handle, other.cloud.observe(of, [handle])[0].properties["floating_ip_address"]]
    else:
        handles = [handle, SECRET]
    for reference in handles:
        (answer,) = mine.cloud.create(kind, [Creation("t", {**CASES[kind].spec(mine), **fields(reference)})])
        refused(answer, reference)
        thing = mine.create(kind, f"good-{reference}") if reference is handles[0] else None
        if thing is not None and CASES[kind].change is not None:
            changed = tuple(fields(reference))
            spec = {**CASES[kind].spec(mine), **fields(reference)}
            (answer,) = mine.cloud.update(kind, [Change(thing.handle, spec, changed)])
            if isinstance(answer, Observation):  # a field that cannot change is left as it is
                assert reference not in repr(
                    {**mine.cloud.observe(kind, [thing.handle])[0].properties, **dict.fromkeys(changed)}
                )
            mine.cloud.delete(kind, [thing.handle])


def refused(answer: Observation | HomeostatError, reference: str) -> None:
    assert isinstance(answer, Terminal | Rejected), repr(answer)
    assert SECRET not in str(answer).replace(repr(reference), ""), "it says nothing of what others have"


def test_a_snapshot_of_another_project_is_neither_image_nor_source(on_this_machine: Projects) -> None:
    mine, other = on_this_machine.mine, on_this_machine.other
    for kind, field, taker in (
        ("volume", "snapshot_id", "volume"),
        ("volume", "backup_id", "volume"),
        ("server", "image", "server"),
    ):
        thing = (
            named(other, taker)
            if not other.cloud.find(taker, ["secret"])[0].present
            else other.cloud.find(taker, ["secret"])[0].handle
        )
        other.cloud.operate(taker, [Operation(thing, "snapshot", {"token": f"s-{taker}", "name": SECRET})])
        done = other.until(taker, thing, lambda seen: seen.properties["snapshots"][0]["status"] == "available")
        snapshot = done.properties["snapshots"][0]["id"]
        assert mine.cloud.observe(f"{taker}_snapshot", [snapshot])[0].presence is Presence.ABSENT
        absent(mine.cloud.delete(f"{taker}_snapshot", [snapshot])[0])
        for reference in (snapshot, SECRET):
            refused(
                mine.cloud.create(kind, [Creation("t", {**CASES[kind].spec(mine), field: reference})])[0], reference
            )
        assert mine.cloud.resolve({"volume": "volume_snapshot", "server": "image"}[kind], [snapshot]) == [None]


def test_errors_name_only_ones_own_things(on_this_machine: Projects) -> None:
    mine, other = on_this_machine.mine, on_this_machine.other
    named(other, "volume")
    mine.create("volume", "mine", name="one-of-mine")
    (answer,) = mine.cloud.create("volume", [Creation("t", {"source_volid": "nothing", "size": 1})])
    assert str(answer) == "There is no volume 'nothing'; known are: one-of-mine"


def test_what_is_built_in_is_for_all_projects_and_cannot_be_changed(on_this_machine: Projects) -> None:
    for each in (on_this_machine.mine.cloud, on_this_machine.other.cloud):
        (network,) = each.resolve("network", ["private"])
        assert network is not None
        assert each.observe("network", [network])[0].present
        for answer in (
            each.delete("network", [network])[0],
            each.update("network", [Change(network, {"name": "mine"})])[0],
        ):
            assert isinstance(answer, Terminal)
        assert each.observe("network", [network])[0].properties["subnets"]


def test_no_two_projects_get_one_address(on_this_machine: Projects) -> None:
    """Addresses are those of the machine."""
    seen = [addresses(each.cloud) for each in (on_this_machine.mine, on_this_machine.other)]
    assert not seen[0] & seen[1]


def addresses(cloud: Cloud) -> set[str]:
    specs = [{"name": f"p{number}", "network": "private"} for number in range(5)]
    answers = cloud.create("port", [Creation(f"{id(cloud)}-{number}", spec) for number, spec in enumerate(specs)])
    return {present(answer).properties["fixed_ips"][0]["ip_address"] for answer in answers}


def test_a_token_of_another_project_takes_nothing_over(on_this_machine: Projects) -> None:
    handle = named(on_this_machine.other, "volume")
    (answer,) = on_this_machine.mine.cloud.create("volume", [Creation("secret", {"size": 2, "name": "mine"})])
    assert isinstance(answer, Terminal)
    assert on_this_machine.other.cloud.observe("volume", [handle])[0].properties["name"] == SECRET


def test_things_of_before_get_the_project_of_their_rows(tmp_path: Path) -> None:
    root = tmp_path / "cloud"
    before = LocalCloud(root)
    known, lost = (present(before.create("volume", [Creation(each, {"size": 1})])[0]).handle for each in ("a", "b"))
    web = present(before.create("server", [Creation("s", {"name": "web", "image": "cirros"})])[0])
    port = next(iter(web.properties["addresses"].values()))[0]["port"]
    before.create("keypair", [Creation("k", CASES["keypair"].spec(None))])  # type: ignore[arg-type]
    before.close()

    class Rows:
        def agree(self, identity: str) -> str:
            return identity

        def projects(self, handles: Any) -> dict[str, str]:
            return {each: "mine" for each in (known, web.handle, "key") if each in handles}

    again = LocalCloud(root, Rows())
    mine, other = again.of("mine"), again.of("other")
    for kind, handle in (("volume", known), ("server", web.handle), ("port", port), ("keypair", "key")):
        assert mine.observe(kind, [handle])[0].present, kind
        assert not other.observe(kind, [handle])[0].present, kind
    assert not mine.observe("volume", [lost])[0].present
    assert again.observe("volume", [lost])[0].present
    again.destroy()
