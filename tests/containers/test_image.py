"""The container image, built as `make image` does on a Debian made here, and run as the compose file says."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bcrypt
import httpx
import pytest
import yaml
from packaging.utils import canonicalize_name
from sqlalchemy import make_url

from homeostat.cli import settings_file
from homeostat.main import parser
from tests.containers import buildah
from tests.containers.buildah import Container
from tests.docs.typing_commands import free_port
from tests.installed import ROOT, run
from tests.waiting import until

IMAGE = "localhost/homeostat-tests"
USER = 8004
FOLDER = ROOT / "packaging/container"
COMPOSE: Mapping[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: Mapping[str, Any] = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "localhost/homeostat"}
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not buildah.available() and os.environ.get("CI") != "true", reason="buildah and debootstrap are not installed"
    ),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    buildah.make_base(tmp_path_factory.mktemp("base"))
    # What pip has to trust here is what this machine trusts.
    authorities = f"--volume {buildah.AUTHORITIES}:{buildah.AUTHORITIES}:ro" if buildah.AUTHORITIES.exists() else ""
    arguments = f"--isolation chroot --build-arg BASE_IMAGE={buildah.BASE} {authorities}"
    run("make", "image", "BUILDER=buildah", f"IMAGE={IMAGE}", f"IMAGE_ARGS={arguments}", cwd=ROOT)
    yield IMAGE
    run("buildah", "rmi", IMAGE)


@pytest.fixture(scope="module")
def plain(image: str) -> Iterator[Container]:
    with buildah.container(image) as found:
        yield found


# -- what is in it -----------------------------------------------------------------------------------------------------


def test_it_says_how_it_is_run(image: str) -> None:
    said = buildah.described(image)
    assert said["User"] == f"{USER}:{USER}"
    assert (said["Entrypoint"], said["Cmd"]) == (["homeostat"], ["serve"])
    assert said["StopSignal"] == "SIGTERM"
    assert (list(said["Volumes"]), list(said["ExposedPorts"])) == (["/var/lib/homeostat"], ["8004/tcp"])
    assert said["Healthcheck"]["Test"][:2] == ["CMD", "python"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said["Labels"]["org.opencontainers.image.revision"] == commit.strip()
    assert said["Labels"]["org.opencontainers.image.version"] == version("homeostat")


def printed(container: Container, *words: str) -> str:
    """The output of a command that prints something: buildah may lose that of one which ends at once."""
    return until(lambda: container.run(*words), f"the output of {words[0]}")


def test_its_user_can_change_nothing_but_the_state(plain: Container) -> None:
    assert printed(plain, "id", "-u").strip() == str(USER)
    writable = "find / -xdev -writable -type d ! -path '/proc/*' ! -path '/dev/*' ! -path '/sys/*'"
    assert sorted(printed(plain, "sh", "-c", f"{writable} 2>/dev/null || true").split()) == [
        "/run/lock",
        "/tmp",
        "/var/lib/homeostat",
        "/var/tmp",
    ]


def test_it_has_what_is_locked_and_nothing_else(plain: Container) -> None:
    listing = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()), sep='\\n')"
    found = (line.partition("==") for line in printed(plain, "python", "-c", listing).split())
    names = {f"{canonicalize_name(name)}=={release}" for name, _, release in found}
    lock = (ROOT / "packaging/release.lock").read_text(encoding="utf-8")
    locked = {line.split()[0] for line in lock.splitlines() if "==" in line and "python_full_version < " not in line}
    assert names - locked == {f"homeostat=={version('homeostat')}"}
    assert locked - names == set()
    listed = printed(plain, "sh", "-c", "ls -d /build /root/.cache /opt/homeostat/bin/pip 2>/dev/null; echo end")
    assert listed.split() == ["end"]


def test_without_settings_it_refuses_to_serve_other_machines(plain: Container) -> None:
    ended = subprocess.run(plain.call("homeostat", "serve"), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--access none serves this machine only" in ended.stdout + ended.stderr


# -- the compose file --------------------------------------------------------------------------------------------------


def test_the_compose_file_runs_commands_that_there_are() -> None:
    assert set(OURS) == {"schema", "api", "worker"}
    for each in OURS.values():
        parser().parse_args(each["command"])
        assert each["read_only"] is True
        assert each["cap_drop"] == ["ALL"]
        assert set(each.get("environment", {})) <= set(settings_file.variables(parser()).values())
    for each in SERVICES.values():
        assert set(each.get("depends_on", {})) <= SERVICES.keys()
        assert set(each.get("secrets", [])) <= COMPOSE["secrets"].keys()


@pytest.fixture
def settings(tmp_path: Path, postgresql_database_url: str) -> Path:
    """The folder that the compose file mounts, for the user of the image."""
    folder = tmp_path / "settings"
    folder.mkdir()
    hashed = bcrypt.hashpw(b"wonderland", bcrypt.gensalt(4)).decode()
    (folder / "users").write_text(f"alice:{hashed}\n", encoding="utf-8")
    written = {
        "database": postgresql_database_url,
        "access": "basic",
        "htpasswd": "/etc/homeostat/users",
        "cloud": "simulated",
        "port": free_port(),
        "encryption-keys": "/etc/homeostat/keys",
    }
    # A text of JSON is one of TOML.
    lines = [f"{name} = {json.dumps(value)}" for name, value in written.items()]
    (folder / "homeostat.toml").write_text("\n".join(lines), encoding="utf-8")
    run(sys.executable, "-m", "homeostat", "keys", "generate", "--encryption-keys", folder / "keys")
    for each in (folder, *folder.iterdir()):
        os.chown(each, USER, USER)
        each.chmod(0o700 if each.is_dir() else 0o600)
    return folder


@pytest.fixture
def service(image: str, settings: Path, postgresql_database_url: str) -> Iterator[Container]:
    """A container that sees the settings, and the socket of the database."""
    socket = str(make_url(postgresql_database_url).query["host"])
    Path(socket).chmod(0o711)
    with buildah.container(
        image, "--volume", f"{settings}:/etc/homeostat:ro", "--volume", f"{socket}:{socket}"
    ) as found:
        yield found


def test_schema_api_and_workers_of_the_compose_file_make_a_stack(
    image: str, service: Container, settings: Path, tmp_path: Path
) -> None:
    port = next(line for line in (settings / "homeostat.toml").read_text().splitlines() if line.startswith("port"))
    url = f"http://127.0.0.1:{port.partition(' = ')[2]}"
    service.run("homeostat", *OURS["schema"]["command"])
    api = service.running(tmp_path / "api.log", "homeostat", *OURS["api"]["command"])
    worker = service.running(tmp_path / "worker.log", "homeostat", *OURS["worker"]["command"])
    check = buildah.described(image)["Healthcheck"]["Test"][1:]
    with api as running_api, worker as running_worker:
        until(lambda: answers(url), "the API to answer")
        healthy = ["env", f"HOMEOSTAT_PORT={port.partition(' = ')[2]}", *check]
        service.run(*healthy)
        client = {"HOMEOSTAT_URL": url, "HOMEOSTAT_USER": "alice", "HOMEOSTAT_PASSWORD": "wonderland"}
        command = (sys.executable, "-m", "homeostat")
        run(*command, "up", ROOT / "examples/hello.yaml", variables=client)
        assert "CREATE_COMPLETE" in run(*command, "show", "hello", variables=client)
        run(*command, "down", "hello", "-y", variables=client)
        number = getattr(signal, buildah.described(image)["StopSignal"])
        assert running_worker.stop(number) == 0, (tmp_path / "worker.log").read_text()
        # Once all is answered, uvicorn ends by the signal that it got.
        running_api.stop(number)
        assert "exited on terminated" in (tmp_path / "api.log").read_text(encoding="utf-8")
        ended = subprocess.run(service.call(*healthy), capture_output=True, check=False)
        assert ended.returncode != 0
    mine = service.run(
        "sh", "-c", f"find / -xdev -user {USER} ! -path '/proc/*' ! -path '/etc/homeostat*' 2>/dev/null || true"
    )
    assert {each for each in mine.split() if not each.startswith(("/var/lib/homeostat", "/tmp", "/dev/"))} == set()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthcheck").status_code == 200
    except httpx.TransportError:
        return False
