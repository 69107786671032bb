"""Other users of the machine on which a user runs a service."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from homeostat.cli.errors import Problem, Usage
from homeostat.cli.settings import ServiceSettings
from homeostat.cli.state_directory import State
from homeostat.composition.access import access as access_of
from homeostat.model.errors import Rejected
from tests.attack.strangers import STRANGER, ask_as_stranger, needs_root, read_as_stranger
from tests.cli.conftest import Home, home_below

HERE = {"host": "127.0.0.1:8004"}


OLD = (
    "homeostat.db",
    "homeostat.db-wal",
    "homeostat.db-shm",
    "keys",
    "service.log",
    "service.lock",
    "cloud/servers.json",
)
"""What a directory may hold that was made without a thought of others."""


def prepare_state(root: Path) -> None:
    root.mkdir(mode=0o755)
    (root / "cloud").mkdir(mode=0o755)
    for name in OLD:
        (root / name).touch()
        (root / name).chmod(0o644)


def open_to_others(root: Path) -> list[str]:
    """Everything that others can reach. A directory that they may not enter hides what is in it."""
    found = []
    for path in root.iterdir():
        if path.stat().st_mode & 0o077:
            found.append(path.name)
    return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, homeostat_program: Path) -> Iterator[Home]:
    """In a directory that was there already, as everybody may read it."""
    with home_below(tmp_path_factory.mktemp("strangers"), homeostat_program) as found:
        found.root.mkdir(mode=0o755)
        (found.root / "service.log").touch(mode=0o644)
        started = found.run("serve", "--detach", "--port", "0", "--cloud", "simulated")
        assert started.code == 0, started.err
        yield found


@needs_root
def test_another_user_of_the_machine_gets_nothing(service: Home) -> None:
    url = service.running().url
    stack = json.dumps({"stack_name": "theirs", "template": {"heat_template_version": "2021-04-16"}})
    for method, path, body in (
        ("GET", "/v1/default/stacks", ""),
        ("POST", "/v1/default/stacks", stack),
        ("GET", "/v1/?Action=ListStacks", ""),
        ("POST", "/v1/?Action=ListStacks", ""),
    ):
        status, text = ask_as_stranger(url, method, path, body)
        assert status == 403, text
        assert f"The user with the id {STRANGER} is another one" in text
        assert "--all-local-users" in text
    assert ask_as_stranger(url, "GET", "/healthcheck")[0] == 200
    assert httpx.get(f"{url}/v1/default/stacks").json() == {"stacks": []}, "who runs it needs nothing"


def test_all_that_a_service_keeps_is_its_users_alone(service: Home) -> None:
    names = {path.name for path in service.root.iterdir()}
    assert {"homeostat.db", "homeostat.db-wal", "keys", "service.json", "service.lock", "service.log"} <= names
    assert open_to_others(service.root) == []


@needs_root
def test_another_user_of_the_machine_reads_nothing(service: Home) -> None:
    for above in (service.root, *service.root.parents):  # or it would be the directories above that keep them out
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    for name in ("homeostat.db", "homeostat.db-wal", "keys", "service.log", "service.json"):
        assert read_as_stranger(str(service.root / name)) == "PermissionError", name


def test_what_was_open_to_others_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "state"
    prepare_state(root)
    root.chmod(0o775)
    before = os.umask(0o022)
    try:
        State(root).make()
        (root / "new").touch()
    finally:
        os.umask(before)
    assert open_to_others(root) == []
    assert root.stat().st_mode & 0o777 == 0o755, "nobody else may put anything there"
    assert f"others could use {root / 'keys'}: it had the mode 644, and has 600 now" in caplog.text


def test_a_directory_for_all_users_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(Problem, match="is shared by all users: choose a directory of your own"):
        State(tmp_path).make()


def test_who_runs_the_service_is_let_in_and_root(tmp_path: Path) -> None:
    access = access_of(ServiceSettings(tmp_path))
    assert access.needs_peer
    for peer in (os.geteuid(), 0):
        access.check_way(HERE, peer)
    for other in (STRANGER, None):
        with pytest.raises(Rejected, match="--all-local-users"):
            access.check_way(HERE, other)


def test_an_option_lets_all_users_of_the_machine_in(tmp_path: Path) -> None:
    access = access_of(ServiceSettings(tmp_path, all_local_users=True))
    assert not access.needs_peer
    access.check_way(HERE, None)
    with pytest.raises(Rejected):
        access.check_way({"host": "evil.example"}, None)


def test_other_users_get_no_shell_on_the_local_cloud_by_accident(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("")
    for others in (
        ServiceSettings(tmp_path, access="basic", htpasswd=users),
        ServiceSettings(tmp_path, access="basic", htpasswd=users, host="0.0.0.0"),
        ServiceSettings(tmp_path, access="keystone", keystone_config=users),
        ServiceSettings(tmp_path, all_local_users=True),
    ):
        with pytest.raises(Usage, match=r"run any program as you.*--users-run-code-as-me"):
            others.check()
    ServiceSettings(tmp_path, access="basic", htpasswd=users, cloud="simulated").check()
    ServiceSettings(tmp_path, access="basic", htpasswd=users, users_run_code_as_me=True).check()
    ServiceSettings(tmp_path).check()
