"""Templates of others on a real OpenStack, from their creation until nothing is left, as clients of the API see it."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from heatclient.common.template_utils import get_template_contents

from tests.openstack.beside import Stack, World, serving
from tests.openstack.inventory import inventory
from tests.openstack.projects import Project, auth_of_admin
from tests.openstack.public_templates import CASES, Case, renewed

Document = dict[str, Any]


@pytest.fixture(scope="module")
def prepared(project: Project) -> Project:
    """With what the templates take for granted: a network with a way out, and a key pair."""
    with contextlib.closing(project.connection()) as user:
        network = user.network
        net = network.create_network(name="private")
        subnet = network.create_subnet(network_id=net.id, name="private", ip_version=4, cidr="10.20.0.0/24")
        public = network.find_network("public", ignore_missing=False).id
        router = network.create_router(name="way", external_gateway_info={"network_id": public})
        network.add_interface_to_router(router, subnet=subnet.id)
        user.compute.create_keypair(name="stack_key", public_key=public_key())
    return project


def public_key() -> str:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


@pytest.fixture(scope="module")
def world(prepared: Project, tmp_path_factory: pytest.TempPathFactory, homeostat_program: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("user")
    with serving(prepared, prepared.auth, folder, homeostat_program) as found:
        yield found


@pytest.fixture
def world_of_admin(prepared: Project, tmp_path: Path, homeostat_program: Path) -> Iterator[World]:
    """As the administrator, who needs a key pair of the name, too: each user has their own."""
    with contextlib.closing(prepared.admin()) as admin:
        admin.compute.create_keypair(name="stack_key", public_key=public_key())
        try:
            with serving(prepared, auth_of_admin(prepared), tmp_path, homeostat_program) as found:
                yield found
        finally:
            admin.compute.delete_keypair("stack_key")


@dataclass(frozen=True)
class Life(Stack):
    """A stack of a template."""

    case: Case
    template: Document
    files: dict[str, str]
    parameters: Document

    @property
    def given(self) -> Document:
        return {
            "stack_name": self.name,
            "template": self.template,
            "files": self.files,
            "parameters": self.parameters,
        }

    def ids(self) -> dict[str, str]:
        """Physical id of each resource, by its place in the tree of stacks."""
        return {
            f"{_within(each, self.name)}/{each.resource_name}": each.physical_resource_id for each in self.resources()
        }

    def signal(self) -> None:
        known = {each.resource_name: each for each in self.resources()} if self.case.signals else {}
        for waiting, (signalled, payloads) in self.case.signals.items():
            place = known.get(waiting), known.get(signalled)
            if place[0] and place[1] and place[0].resource_status.endswith("IN_PROGRESS"):
                for each in payloads:
                    self.world.heat.resources.signal(self.name, signalled, each)

    def create(self) -> None:
        self.world.heat.stacks.create(**self.given)
        self.settles("CREATE")

    def update(self) -> None:
        self.world.heat.stacks.update(
            self.name, **{name: it for name, it in self.given.items() if name != "stack_name"}
        )
        self.settles("UPDATE")

    def renewed(self) -> "Life":
        """The same with new values of all properties that can change in place, also in its files."""
        files = {name: _renewed_file(text) for name, text in self.files.items()}
        return replace(
            self, template=renewed(self.template), files=files, parameters={**self.parameters, **self.case.changed}
        )


def _within(resource: Any, root: str) -> str:
    """Logical place of the stack that a resource is in: its name, without what is made up in it."""
    link = next(each["href"] for each in resource.links if each["rel"] == "stack")
    return "" if f"/{root}/" in link else str(link.rpartition("/")[0].rpartition("/")[2])


def _renewed_file(text: str) -> str:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    is_template = isinstance(document, dict) and "heat_template_version" in document
    return yaml.safe_dump(renewed(document), default_flow_style=False) if is_template else text


def life_of(case: Case, world: World) -> Life:
    files, template = get_template_contents(str(case.file))
    given = {
        name: value.format(project=world.project.name) if isinstance(value, str) else value
        for name, value in case.parameters.items()
    }
    return Life(world, f"t-{case.name.replace('_', '-')}-{uuid.uuid4().hex[:6]}", case, template, dict(files), given)


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [*([pytest.mark.slow] if case.slow else []), pytest.mark.services(*case.services)]


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name, marks=_marks(each)) for each in CASES])
def test_a_template_lives(case: Case, request: pytest.FixtureRequest) -> None:
    world: World = request.getfixturevalue("world_of_admin" if case.as_admin else "world")
    before = inventory(world.project)
    life = life_of(case, world)
    life.create()
    try:
        ids = life.ids()
        with world.log.quiet("an update with the same template"):
            life.update()
        assert life.ids() == ids
        new = life.renewed()
        new.update()
        assert {place: new.ids().get(place) for place in ids} == ids, "something was replaced"
        with world.log.quiet("an update that changes nothing, and a check"):
            new.update()
            new.check()
    finally:
        life.delete()
    assert inventory(world.project) == before
