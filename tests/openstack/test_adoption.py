"""Stacks that Heat has abandoned are adopted with real things: nothing is made again, and all is kept from then on."""

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection
from openstack.exceptions import NotFoundException

from tests.openstack import upstream
from tests.openstack.beside import SETTLES_S, Stack, World, serving
from tests.openstack.inventory import inventory
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.upstream import Abandoned

Wire = dict[str, Any]


@pytest.fixture(scope="module")
def world(project: Project, tmp_path_factory: pytest.TempPathFactory, homeostat_program: Path) -> Iterator[World]:
    with serving(project, project.auth, tmp_path_factory.mktemp("adopting"), homeostat_program) as found:
        yield found


@pytest.fixture(scope="module")
def user(project: Project) -> Iterator[Connection]:
    with contextlib.closing(project.connection()) as found:
        yield found


@dataclass(frozen=True)
class Adopted(Stack):
    """A stack that is adopted with OpenStack's own client."""

    def adopt(self, source: Abandoned, path: Path) -> None:
        path.write_text(json.dumps(source.document()))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        endpoint = f"{self.world.home.running().url}/v1/{self.world.project.id}"
        ended = subprocess.run(
            [sys.executable, "-m", "openstackclient.shell", "stack", "adopt", "--adopt-file", str(path), self.name],
            env={**inherited, "OS_AUTH_TYPE": "none", "OS_ENDPOINT": endpoint},
            capture_output=True,
            text=True,
            timeout=SETTLES_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        self.settles("ADOPT")

    def update(self, **parameters: str) -> None:
        """With the same template, and other parameters if need be."""
        self.world.heat.stacks.update(self.name, existing=True, parameters=parameters)
        self.settles("UPDATE")

    def ids(self) -> dict[str, str]:
        """Path of a resource -> its physical id, of all that are no stacks."""
        return dict(_ids(self.world.heat.stacks.export(self.name), ""))


def _ids(document: Wire, path: str) -> Iterator[tuple[str, str]]:
    for name, entry in document["resources"].items():
        if "resources" in entry:
            yield from _ids(entry, f"{path}{name}.")
        else:
            yield f"{path}{name}", entry["resource_id"]


def is_gone(user: Any, server: str) -> bool:
    try:
        return bool(user.compute.get_server(server) is None)
    except NotFoundException:
        return True


def test_a_stack_of_heat(world: World, user: Any, tmp_path: Path) -> None:
    before = inventory(world.project)
    image = next(iter(user.image.images())).id
    source = upstream.web(user, f"web-{uuid.uuid4().hex[:8]}", image, "public")
    there = inventory(world.project)
    stack = Adopted(world, source.name)
    ids = source.ids
    known = {**ids, "attachment": f"{ids['web']}/{ids['volume']}", "association": ids["address"]}

    tags = _check_plan(stack, user, source, tmp_path / "plan.json")
    # The command's own requests pass the proxy as well.
    own_url, sent = world.home.running().url, world.log.mutating
    assert [each for each in sent if not each[1].startswith(own_url)] == [], "a plan changes nothing"
    asked = len(sent)

    stack.adopt(source, tmp_path / "web.json")
    stack.update()
    stack.check()
    own = json.loads(source.data["own"]["internal_ports"])[0]["id"]
    marked = [url.partition("/v2.0/")[2].split("/tags/")[0] for _, url in world.log.mutating[asked:]]
    assert sorted(marked) == sorted([f"ports/{own}", f"security-groups/{ids['group']}"]), "only two tags are written"
    assert tags == sorted([("port", own), ("security_group", ids["group"])]), "the plan has named them"
    assert stack.ids() == known
    assert inventory(world.project) == there
    with world.log.quiet("an update that changes nothing, and a check"):
        stack.update()
        stack.check()

    _check_updates(stack, user, known, ids)
    _check_healing(stack, user, ids)
    stack.delete()
    assert inventory(world.project) == before, "with the port that Heat had made for a server"


def _check_plan(stack: Adopted, user: Any, source: Abandoned, path: Path) -> list[tuple[str, str]]:
    """Check that a plan tells what differs, and nothing where nothing does; return the tags that it tells of."""
    path.write_text(json.dumps(source.document()))
    ids, plan = source.ids, ("plan", "--adopt-file", str(path), "--detailed-exit-code")
    user.block_storage.set_volume_metadata(ids["volume"], note="by hand")
    differs = stack.world.home.run(*plan)
    assert differs.out.splitlines()[:4] == [
        f"{stack.name} can be adopted, and would be changed then:",
        "~ volume  Cinder::Volume  it is brought back: metadata changed outside",
        '    metadata.note: "by hand" → "first"',
        "plan: 1 to update; 21 taken over as they are",
    ], differs.out + differs.err
    assert differs.code == 4

    user.block_storage.set_volume_metadata(ids["volume"], note="first")
    address = user.network.update_ip(ids["address"], port_id=None)
    lacks = stack.world.home.run(*plan)
    gone = f"! association  Neutron::FloatingIPAssociation  {address.id} is not in the cloud: "
    assert gone in lacks.out, lacks.out + lacks.err
    assert lacks.code == 1

    user.network.update_ip(address, port_id=ids["port"])
    same = stack.world.home.run(*plan)
    assert same.out.splitlines()[0] == (
        f"{stack.name} can be adopted, and nothing would differ: 22 taken over as they are"
    ), same.out + same.err
    assert same.code == 0
    adoption = stack.world.heat.stacks.preview(stack_name="new", adopt_stack_data=source.document()).adoption
    return sorted((each["kind"], each["id"]) for each in adoption["tags"])


def _check_updates(stack: Adopted, user: Any, known: dict[str, str], ids: dict[str, str]) -> None:
    stack.update(note="second", flavor="m1.small", member_count="3")
    now = stack.ids()
    assert {name: id for name, id in now.items() if name in known} == known, "nothing is replaced"
    assert now.keys() - known.keys() == {"members.2"}
    server = user.compute.get_server(ids["web"])
    assert (server.metadata, server.flavor["original_name"]) == ({"note": "second"}, "m1.small")
    assert user.compute.get_server(ids["own"]).name == "second"
    assert user.network.get_security_group(ids["group"]).description == "second"
    assert user.block_storage.get_volume(ids["volume"]).metadata["note"] == "second"
    assert user.block_storage.get_volume(ids["inner.volume"]).description == "second"


def _check_healing(stack: Adopted, user: Any, ids: dict[str, str]) -> None:
    gone = {ids["own"], ids["rule"]}
    user.network.delete_security_group_rule(ids["rule"])
    user.compute.delete_server(ids["own"])
    eventually(lambda: is_gone(user, ids["own"]), "a server to go")
    stack.world.heat.actions.check(stack.name)

    def is_healed() -> bool:
        now = stack.ids()
        return not {now["own"], now["rule"]} & {*gone, None}

    eventually(is_healed, "a server and a rule to be made again")
    stack.update()
    assert user.compute.get_server(stack.ids()["own"]).status == "ACTIVE"


@pytest.mark.services("octavia")
def test_load_balancing(world: World, user: Any, tmp_path: Path) -> None:
    name = f"balanced-{uuid.uuid4().hex[:8]}"
    network = user.network.create_network(name=name)
    subnet = user.network.create_subnet(name=name, network_id=network.id, ip_version=4, cidr="192.168.56.0/24")
    before = inventory(world.project)
    source = upstream.balanced(user, name, subnet.id)
    stack, ids = Adopted(world, name), source.ids
    with world.log.quiet("a plan, the adoption, or an update that changes nothing"):
        preview = world.heat.stacks.preview(stack_name=name, adopt_stack_data=source.document())
        assert {each["change"] for each in preview.resources} == {"unchanged"}
        assert not any(preview.adoption.values()), preview.adoption
        stack.adopt(source, tmp_path / "balanced.json")
        stack.update()
        stack.check()
    assert stack.ids() == ids
    stack.update(weight="7")
    assert user.load_balancer.get_member(ids["member"], ids["pool"]).weight == 7
    assert stack.ids() == ids
    stack.delete()
    assert inventory(world.project) == before
