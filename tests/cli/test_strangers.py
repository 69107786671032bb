"""Other users of the machine on which somebody runs a service for themselves."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from homeostat import main
from homeostat.cli.problems import Usage
from homeostat.cli.settings import ServiceSettings
from homeostat.model.errors import Rejected
from tests.attack.strangers import NOBODY, ask_as_stranger, needs_root
from tests.cli.conftest import Home, home_below

HERE = {"host": "127.0.0.1:8004"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with home_below(tmp_path_factory.mktemp("strangers")) as found:
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
        assert f"The user with the id {NOBODY} is another one" in text
        assert "--all-local-users" in text
    assert ask_as_stranger(url, "GET", "/healthcheck")[0] == 200
    assert httpx.get(f"{url}/v1/default/stacks").json() == {"stacks": []}, "who runs it needs nothing"


def test_who_runs_the_service_is_let_in_and_root(tmp_path: Path) -> None:
    access = main.access(ServiceSettings(tmp_path))
    assert access.asks_for_peers
    for peer in (os.geteuid(), 0):
        access.check_way(HERE, peer)
    for peer in (NOBODY, None):
        with pytest.raises(Rejected, match="--all-local-users"):
            access.check_way(HERE, peer)


def test_all_users_of_the_machine_where_that_is_said(tmp_path: Path) -> None:
    access = main.access(ServiceSettings(tmp_path, all_local_users=True))
    assert not access.asks_for_peers
    access.check_way(HERE, None)
    with pytest.raises(Rejected):
        access.check_way({"host": "evil.example"}, None)


def test_nobody_else_gets_a_shell_on_the_local_cloud_by_accident(tmp_path: Path) -> None:
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
