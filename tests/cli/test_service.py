"""The service's processes: start, refusal, restart, end."""

import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from homeostat.cli import settings
from homeostat.cli.errors import Usage
from homeostat.composition import clouds
from homeostat.main import parser
from tests.cli.conftest import Home, lives
from tests.cli.templates import QUICK
from tests.redis_server import RedisServer
from tests.waiting import until

PAGE = """
heat_template_version: rocky
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: local
      flavor: m1.tiny
      user_data_format: RAW
      user_data: "#!/bin/sh\\nexec python3 -m http.server --bind $HOMEOSTAT_ADDRESS 8000"
outputs:
  url: {value: {str_replace: {template: "http://A:8000/", params: {A: {get_attr: [server, first_address]}}}}}
"""


def template(directory: Path, text: str) -> str:
    path = directory / "template.yaml"
    path.write_text(text)
    return str(path)


def serving(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1.0).is_success
    except httpx.TransportError:
        return False


@pytest.mark.heavy
def test_up_starts_a_service_and_servers_outlive_it(genuine: Home, tmp_path: Path) -> None:
    created = genuine.run("up", template(tmp_path, PAGE), "page")
    assert created.code == 0, created.err
    service = genuine.running()
    assert f"started one at {service.url}" in created.out
    [output] = genuine.run("show", "page", "--json").json()["stack"]["outputs"]
    url = output["output_value"]
    until(lambda: serving(url))

    os.kill(service.pid, signal.SIGKILL)
    until(lambda: not any(lives(pid) for pid in (service.pid, *service.children.values())))
    assert serving(url), "what the service made outlives it"
    assert genuine.run("list").code == 3

    assert genuine.run("serve", "--detach", "--port", "0").code == 0
    gone = genuine.run("down", "page", "-y")
    assert gone.code == 0, gone.err
    assert not serving(url)
    assert "DeprecationWarning" not in genuine.state.log.read_text()


def test_a_second_instance_is_refused(service: Home) -> None:
    for arguments in (["serve"], ["serve", "--detach"]):
        refused = service.run(*arguments, "--port", "0", "--cloud", "simulated")
        assert refused.code == 1
        assert "has the state directory" in refused.err
        assert "--state-dir" in refused.err
    assert service.run("list").code == 0


def test_a_worker_that_dies_starts_again(service: Home, tmp_path: Path) -> None:
    before = service.running()
    os.kill(before.children["worker"], signal.SIGKILL)
    until(lambda: service.running().children["worker"] != before.children["worker"])
    after = service.running()
    assert (after.pid, after.children["api"]) == (before.pid, before.children["api"])
    created = service.run("up", template(tmp_path, QUICK), "after-a-death")
    assert created.code == 0, created.err


def test_no_request_is_refused_while_the_api_starts_again(service: Home) -> None:
    before = service.running()
    os.kill(before.children["api"], signal.SIGKILL)
    assert service.run("list").code == 0
    assert service.running().children["api"] != before.children["api"]


def test_several_api_processes_answer_at_one_address(home: Home) -> None:
    assert home.run("serve", "--detach", "--port", "0", "--cloud", "simulated", "--apis", "2").code == 0
    service = home.running()
    assert set(service.children) == {"api-1", "api-2", "worker"}
    os.kill(service.children["api-1"], signal.SIGSTOP)
    try:
        assert home.run("list").code == 0
    finally:
        os.kill(service.children["api-1"], signal.SIGKILL)


def test_quotas_are_settings(home: Home, tmp_path: Path) -> None:
    quotas = ("--stacks-max", "1", "--resources-max", "2")
    assert home.run("serve", "--detach", "--port", "0", "--cloud", "simulated", *quotas).code == 0
    one = "\n  {}: {{type: OS::Heat::TestResource}}"
    three = "heat_template_version: wallaby\nresources:" + "".join(map(one.format, "abc"))
    refused = home.run("up", template(tmp_path, three), "large", "--no-wait")
    assert refused.code == 1
    assert "at most 2 are allowed" in refused.err
    assert home.run("up", template(tmp_path, QUICK), "first", "--no-wait").code == 0
    refused = home.run("up", template(tmp_path, QUICK), "second", "--no-wait")
    assert refused.code == 1
    assert "maximum stacks per project, 1" in refused.err


def test_stopping_leaves_no_process_and_says_so(home: Home) -> None:
    started = home.run("serve", "--detach", "--port", "0", "--cloud", "simulated")
    service = home.running()
    assert service.url in started.out
    os.kill(service.pid, signal.SIGTERM)
    until(lambda: home.state.running() is None)
    until(lambda: not any(lives(pid) for pid in (service.pid, *service.children.values())))
    refused = home.run("list")
    assert refused.code == 3
    assert "homeostat serve --detach" in refused.err


def test_a_url_where_no_service_answers(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    refused = home.run("list", "--url", url, "--json")
    assert refused.code == 3
    assert url in refused.json()["error"]["message"]


def test_a_port_that_is_taken(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused = home.run("serve", "--detach", "--port", str(port), "--cloud", "simulated")
    assert refused.code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in refused.err
    assert "--port 0" in refused.err


@pytest.mark.redis
def test_a_service_with_its_job_board_on_redis(home: Home, redis_running: RedisServer, tmp_path: Path) -> None:
    board = ("--board", redis_running.url)
    started = home.run("serve", "--detach", "--port", "0", "--cloud", "simulated", *board)
    assert started.code == 0, started.err
    created = home.run("up", template(tmp_path, QUICK), "on-redis")
    assert created.code == 0, created.err
    assert redis_running.client.get("homeostat:sequence"), "jobs were posted"


def test_redis_without_its_package_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "find_spec", lambda name: None if name == "redis" else find_spec(name))
    with pytest.raises(Usage, match=r"pip install 'homeostat\[redis\]'"):
        settings.ServiceSettings(tmp_path, board="redis://here").check()
    settings.ServiceSettings(tmp_path).check()


def test_settings_that_do_not_fit(home: Home) -> None:
    for arguments, words in (
        (["--host", "0.0.0.0"], "--access basic"),
        (["--access", "basic"], "--htpasswd"),
        (["--cloud", "simulated", "--workers", "2"], "--workers"),
        (["--apis", "0"], "--apis 0: at least one is needed"),
        (["--os-connections", "0"], "--os-connections 0: at least one is needed"),
        (["--os-timeout", "0.5"], "--os-timeout 0.5: give between 1 and 100 seconds"),
        (["--os-timeout", "nan"], "--os-timeout nan: give between 1 and 100 seconds"),
        (["--database", "nonsense"], "--database"),
        (["--board", "ftp://here"], "--board"),
        (["--board", "redis://127.0.0.1:1/0"], "look at --board: Redis does not answer"),
    ):
        refused = home.run("serve", *arguments)
        assert refused.code in (1, 2)
        assert words in refused.err


@pytest.mark.heavy
def test_what_processes_are_copied_from_has_one_thread() -> None:
    """A copy has the thread that forked, and locks that others held stay locked for ever."""
    program = (
        "import os\nfrom homeostat.composition.service import load_service\n"
        "load_service()\nprint(len(os.listdir('/proc/self/task')))"
    )
    threads = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert threads.stdout.count(",") == 0


@pytest.mark.heavy
def test_a_worker_that_is_started_again_loads_nothing_anew(genuine: Home, tmp_path: Path) -> None:
    """It is a copy of the supervisor, which has loaded everything; what the supervisor has open it has not."""
    assert genuine.run("serve", "--detach", "--port", "0", "--cloud", "simulated").code == 0
    before = genuine.running()
    os.kill(before.children["worker"], signal.SIGKILL)
    until(lambda: genuine.running().children["worker"] != before.children["worker"])
    assert genuine.run("up", template(tmp_path, QUICK), "after-a-death").code == 0
    after = genuine.running()
    worker = Path(f"/proc/{after.children['worker']}")
    assert cpu_s(after.children["worker"]) < cpu_s(after.pid) / 2
    assert (worker / "comm").read_text().strip() == "homeostat-worke"
    assert not any(os.readlink(each).endswith("service.lock") for each in (worker / "fd").iterdir())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_tags_of_hidden_stacks_are_handed_to_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    read = settings.ServiceSettings.of(parser().parse_args(["serve", "--hidden-tag", "secret", "--hidden-tag", "old"]))
    assert read.hidden_tags == ("secret", "old")
    monkeypatch.setenv("HOMEOSTAT_HIDDEN_TAG", read.environment()["HOMEOSTAT_HIDDEN_TAG"])
    assert settings.ServiceSettings.of(parser().parse_args(["api"])).hidden_tags == ("secret", "old")


def test_time_and_number_of_requests_reach_the_adapter_of_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--cloud", "openstack", "--os-cloud", "own", "--os-timeout", "20", "--os-connections", "4")
    read = settings.ServiceSettings.of(parser().parse_args(["serve", *flags]))
    for name, value in read.environment().items():
        if name.startswith("HOMEOSTAT_OS_"):
            monkeypatch.setenv(name, value)
    inherited = settings.ServiceSettings.of(parser().parse_args(["worker"]))
    for each in (read, inherited):
        config = clouds.openstack_config(each)
        assert (config.cloud, config.request_s, config.connections) == ("own", 20.0, 4)
