"""A process loads the libraries that it needs, and no others: loading them is most of its start, and of its memory.

The cases name libraries and the process that needs none of them. A failure names the module that has loaded one.
"""

import subprocess
import sys

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
