"""A webhook of a health policy, on a real web server: it mends a server, after it was away for a moment."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast

import pytest

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.outbound import Rules
from homeostat.clouds.simulated import SimulatedCloud
from tests.waiting import until
from tests.wire.clustering.lives import done, made, members
from tests.wire.clustering.test_health import policy
from tests.wire.running import Running, database, serving, working

HERE = Rules(networks=(ip_network("127.0.0.0/8"),))


class Tool(ThreadingHTTPServer):
    """calls — key and body of each; answer — returns a status for the number of the call."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Calls)
        self.calls: list[tuple[str, Any]] = []
        self.answer: Callable[[int], int] = lambda _: 200


class _Calls(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        tool = cast(Tool, self.server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tool.calls.append((self.headers["Idempotency-Key"], body))
        self.send_response(tool.answer(len(tool.calls)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Its worker may reach this machine."""
    cloud = SimulatedCloud(time.time)
    directory: Path = tmp_path_factory.mktemp("service")
    with (
        database(directory) as db,
        serving(db, NoAccess(), cloud=cloud) as url,
        working(db, cloud, url=url, fetching=HERE),
    ):
        yield Running(url, db, cloud)


@pytest.fixture
def tool() -> Iterator[Tool]:
    served = Tool()
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.shutdown()
    served.server_close()
    thread.join()


def test_a_tool_mends_a_node(api: Any, profile: Any, service: Running, tool: Tool) -> None:
    cluster = made(api, profile)
    node = members(api, cluster)[1]

    def answer(number: int) -> int:
        if number == 1:
            return 503
        service.cloud.change(node.physical_id, status="active")
        return 204

    tool.answer = answer
    address = f"http://127.0.0.1:{tool.server_port}/mend/{{nodename}}"
    hook = {"name": "mend", "type": "WEBHOOK", "params": {"url": address}}
    health = api.create_policy(name="h", spec=policy(actions=[hook, {"name": "RECREATE"}]))
    done(api, api.attach_policy_to_cluster(cluster, health.id, enabled=True))
    service.cloud.change(node.physical_id, status="stopped")
    until(lambda: len(tool.calls) == 2, "the tool to be called twice")
    until(lambda: api.get_node(node.id).status == "ACTIVE", "the node to be mended")
    (first, said), (second, _) = tool.calls
    assert (first == second, first != "") == (True, True)
    assert (said["node"]["id"], said["cluster"]["id"]) == (node.id, cluster.id)
    assert api.get_node(node.id).physical_id == node.physical_id
