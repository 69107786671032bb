"""When the service's own things go wrong: it says so, goes on, and stops in order."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from homeostat.api.access.auth import NoAccess
from homeostat.observability.outage_lines import OutageLines
from homeostat.store.database import Database, sqlite_url
from tests.waiting import until
from tests.wire import templates
from tests.wire.running import database, serving

SCRIPT = """
import sys, time
from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings, run_api
from homeostat.clock import Entropy, SystemClock
from homeostat.store.database import Database
run_api(Database(sys.argv[1], time.time), SystemClock(), Entropy(), NoAccess(), ApiSettings(port=int(sys.argv[2])))
"""


def test_a_broken_row_is_one_bad_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with database(tmp_path) as db, serving(db, NoAccess()) as url, httpx.Client(base_url=f"{url}/v1/p") as http:
        created = http.post("stacks", json={"stack_name": "broken", "template": templates.HELLO})
        with db.write() as tx:
            tx.execute(text("UPDATE revision SET template = '{'"))
        answer = http.get(created.headers["location"])
        assert answer.status_code == 500
        assert answer.json()["error"] == {"type": "InternalError", "traceback": None}
        assert answer.headers["x-openstack-request-id"] in caplog.text
        assert "Traceback" in caplog.text
        assert http.get("stacks").status_code == 200


def test_a_database_that_does_not_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = tmp_path / "missing"
    caplog.handler.addFilter(OutageLines())
    there = Database(sqlite_url(missing / "x.db"), time.time)
    with contextlib.closing(there) as db, serving(db, NoAccess()) as url:
        answer = httpx.get(f"{url}/v1/p/stacks")
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["error"]["type"] == "ServiceUnavailable"
        assert answer.json()["error"]["message"].endswith(": the database does not answer")
        for path in ("/healthcheck", "/v1/?Action=ListStacks", "/clustering/v1/clusters"):
            answer = httpx.get(f"{url}{path}")
            assert answer.status_code == 503, path
            assert "the database does not answer" in answer.text
            assert "unable to open" not in answer.text, "where it is, and why, is for the log"
        assert "the database does not answer: unable to open" in caplog.text
        missing.mkdir()
        assert httpx.get(f"{url}/healthcheck").status_code == 200


def test_it_stops_in_order(tmp_path: Path) -> None:
    """The process ends by itself, soon and well."""
    with contextlib.closing(Database(sqlite_url(tmp_path / "h.db"), time.time)) as db:
        db.migrate()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, db.url, str(port)])
        try:

            def answers() -> bool:
                with contextlib.suppress(httpx.TransportError):
                    return httpx.get(f"http://127.0.0.1:{port}/healthcheck").is_success
                return False

            until(answers, "the service to answer")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
