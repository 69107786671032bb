"""A process loads the libraries that it needs, and no others: loading them is most of its start, and of its memory.

The cases name libraries and the process that needs none of them. A failure names the module that has loaded one.
"""

import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import atexit, sys

class Watch:
    loaded = {}

    def find_spec(self, name, path=None, target=None):
        if name in UNWANTED:
            frame, modules = sys._getframe(), []
            while frame is not None:
                modules.append(frame.f_globals.get("__name__", ""))
                frame = frame.f_back
            self.loaded.setdefault(name, next((module for module in modules if module.startswith("homeostat")), "?"))

UNWANTED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Watch())
atexit.register(lambda: print("loaded", sorted(Watch.loaded.items()), file=sys.stderr, flush=True))
from homeostat.main import main
sys.exit(main())
"""
CLIENTS = ("httpx", "rich", "sqlalchemy", "yaml")
API = ("fastapi", "pydantic", "starlette", "uvicorn", "oslo_policy")
OTHERS = ("alembic", "networkx", "openstack", "keystoneauth1", "redis", "psycopg", "pymysql", "yaql", "opentelemetry")


def started(unwanted: tuple[str, ...], *command: str) -> "subprocess.Popen[str]":
    program = [sys.executable, "-c", WATCHED, ",".join(unwanted), *command]
    return subprocess.Popen(program, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)


def test_help_loads_no_library() -> None:
    """The names and summaries of the commands are in one index."""
    _, text = started((*CLIENTS, *API, *OTHERS, "asyncio", "logging"), "--help").communicate()
    assert text.splitlines()[-1] == "loaded []"


def test_a_client_command_loads_no_engine(tmp_path: Path) -> None:
    _, text = started(("sqlalchemy", *API, *OTHERS), "list", "--state-dir", str(tmp_path)).communicate()
    assert "no service has the state directory" in text
    assert text.splitlines()[-1] == "loaded []"


@pytest.mark.heavy
def test_a_worker_loads_no_api(tmp_path: Path) -> None:
    """TaskFlow's engines need `networkx`."""
    state = ("--state-dir", str(tmp_path))
    subprocess.run([sys.executable, "-m", "homeostat", "migrate", *state], check=True, capture_output=True)
    unwanted = (*API, *(name for name in OTHERS if name != "networkx"))
    with started(unwanted, "worker", *state) as worker:
        assert worker.stderr is not None
        lines = iter(worker.stderr)
        assert any("started" in line for line in lines)
        worker.terminate()
        assert [line.strip() for line in lines][-1] == "loaded []"
