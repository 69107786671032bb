"""The service in Keystone's catalogue: genuine clients find it there, with nothing but a login."""

import contextlib
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import openstack
import pytest

from homeostat.api.access.keystone import KeystoneAccess
from homeostat.cli.settings import ServiceSettings
from homeostat.clouds.identity.config import read_config
from homeostat.clouds.identity.keystone import Keystone
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.composition.clouds import regions
from homeostat.main import main
from tests import senlin_command
from tests.identity.conftest import Person, variables
from tests.keystone_server import PASSWORD, Admin, KeystoneServer
from tests.senlin_command import SenlinCommand
from tests.wire.clustering.lives import SERVER
from tests.wire.running import database, serving, working

OPENSTACK = Path(sys.executable).with_name("openstack")
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "keystone.md"
SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
TEMPLATE = """
heat_template_version: wallaby
resources: {one: {type: OS::Heat::RandomString}}
outputs: {one: {value: {get_attr: [one, value]}}}
"""


@pytest.fixture
def registrar(keystone: KeystoneServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(keystone.url, "admin", PASSWORD, "admin").items():
        monkeypatch.setenv(name, value)


def register(path: Path, url: str, *more: str) -> int:
    return main(["register", "--keystone-config", str(path), "--public-url", url, *more])


OWN = ("--service-user", "own", "--domain", "own", "--domain-admin", "own_admin")


@pytest.mark.usefixtures("registrar")
def test_done_twice_it_makes_nothing_more(tmp_path: Path, admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keystone.ini"
    assert register(path, "http://127.0.0.1:1", *OWN) == 0
    made = capsys.readouterr().out
    assert "made user own\n" in made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_text()
    assert register(path, "http://127.0.0.1:1/v1/", *OWN) == 0
    assert capsys.readouterr().out == "all was there\n"
    assert path.read_text() == before
    assert register(path, "http://127.0.0.1:2", *OWN) == 0
    assert "made endpoint public http://127.0.0.1:2/v1/%(project_id)s" in capsys.readouterr().out
    there = Keystone(read_config(path))
    there.check()
    assert there.config.region == "RegionOne", "the only one of the catalogue"
    settings = ServiceSettings(tmp_path, access="keystone", keystone_config=path)
    with contextlib.closing(regions(settings, None)) as known:
        assert known.by_name["RegionOne"] is known.by_name["default"]
        assert known.names == {"default"}
    assert there.domain is not None
    assert there.user_id(there.domain) == admin.named("users", "own_admin")["id"]


@pytest.mark.usefixtures("registrar")
def test_users_of_another_user_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--service-user", "admin", "--domain", "theirs", "--domain-admin", "their_admin")
    assert register(tmp_path / "keystone.ini", "http://127.0.0.1:1", *names) == 1
    assert "there is a user admin" in capsys.readouterr().err
    assert not (tmp_path / "keystone.ini").exists()


def test_without_an_administrator_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith("OS_")]:
        monkeypatch.delenv(name)
    assert register(tmp_path / "keystone.ini", "http://127.0.0.1:1") == 1
    assert "auth_url" in capsys.readouterr().err


@pytest.fixture
def in_catalogue(tmp_path: Path, registrar: None) -> Iterator[str]:
    """In the catalogue."""
    path = tmp_path / "own.ini"
    names = ("--service-user", tmp_path.name, "--domain", tmp_path.name, "--domain-admin", f"{tmp_path.name}_admin")
    assert register(path, "http://127.0.0.1:1", *names) == 0
    cloud = SimulatedCloud(time.time)
    with database(tmp_path) as db, serving(db, KeystoneAccess(path)) as url, working(db, cloud, url=url):
        assert register(path, url, *names) == 0
        yield url


def openstack_client(
    environ: Mapping[str, str], *words: str, program: Path = OPENSTACK
) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return subprocess.run([program, *words], env={**plain, **environ}, capture_output=True, text=True, check=False)


def test_the_openstack_client_needs_nothing_but_a_login(
    in_catalogue: str, person: Person, tmp_path: Path, openstack_program: Path
) -> None:
    """The command as it is installed, then as the tests start it."""
    template = tmp_path / "one.yaml"
    template.write_text(TEMPLATE)
    environ = variables(person.url, person.name, person.name, person.project)
    made = openstack_client(environ, "stack", "create", "-t", str(template), "--wait", "s", "-f", "value", "-c", "id")
    assert made.returncode == 0, made.stderr
    asked = ("stack", "list", "-f", "value", "-c", "Stack Name", "-c", "Stack Status")
    listed = openstack_client(environ, *asked, program=openstack_program)
    assert listed.stdout == "s CREATE_COMPLETE\n", listed.stderr


def test_the_login_that_the_page_shows_is_enough_to_ask_why(
    in_catalogue: str, person: Person, tmp_path: Path, openstack_program: Path
) -> None:
    """Every command of the page's example runs: by the variables that it sets, or as a cloud of a `clouds.yaml`."""
    (tmp_path / "one.yaml").write_text(TEMPLATE)
    login = variables(person.url, person.name, person.name, person.project)
    made = openstack_client(
        login, "stack", "create", "-t", str(tmp_path / "one.yaml"), "--wait", "web", program=openstack_program
    )
    assert made.returncode == 0, made.stderr
    names = ("auth_url", "username", "password", "project_name", "user_domain_id", "project_domain_id")
    cloud = {"auth": {name: login[f"OS_{name.upper()}"] for name in names}}
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"work": cloud}}))
    (example,) = (each for each in SHELL.findall(PAGE.read_text()) if "explain" in each)
    shown = re.findall(r"(OS_\w+)=", example)
    by_file = {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml")}
    typed = [shlex.split(line)[1:] for line in example.splitlines() if line.startswith("openstack ")]
    for words in typed:
        environ = by_file if "--os-cloud" in words else {name: login[name] for name in shown}
        done = openstack_client(environ, *words, program=openstack_program)
        assert done.returncode == 0, done.stderr
    assert len(typed) == 3


def test_the_sdk_finds_the_service_in_the_catalogue(in_catalogue: str, person: Person) -> None:
    with openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth={
            "auth_url": person.url,
            "username": person.name,
            "password": person.name,
            "project_name": person.project,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
    ) as cloud:
        made = cloud.orchestration.create_stack(name="s", template=TEMPLATE)
        shown = cloud.orchestration.get(f"/stacks/s/{made.id}").json()["stack"]
        assert shown["stack_owner"] == person.name
        assert [each.name for each in cloud.orchestration.stacks()] == ["s"]
        profile = cloud.clustering.create_profile(name="p", spec=SERVER)
        cluster = cloud.clustering.create_cluster(name="c", profile_id=profile.id, desired_capacity=1)
        cluster = cloud.clustering.wait_for_status(cluster, "ACTIVE", wait=60)
        assert (cluster.project_id, len(cluster.node_ids)) == (cloud.current_project_id, 1)


def test_senlinclient_finds_the_service_in_the_catalogue(in_catalogue: str, person: Person, tmp_path: Path) -> None:
    login = variables(person.url, person.name, person.name, person.project)
    with senlin_command.running(senlin_command.find_environment(), "--often") as process:
        run = SenlinCommand(process, tmp_path, login)
        run("cluster", "profile", "create", "--spec-file", run.text("p.json", json.dumps(SERVER)), "p")
        made = run.shown("cluster", "create", "--profile", "p", "--desired-capacity", "1", "c", "--wait")
        assert (made["status"], made["project_id"]) == ("ACTIVE", person.project_id)
        assert made["user_id"] == person.id
        others = SenlinCommand(process, tmp_path, {**login, "OS_PASSWORD": "wrong"})
        assert "401" in others("cluster", "list", code=1)
