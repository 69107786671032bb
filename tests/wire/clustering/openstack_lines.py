"""The genuine `openstack` command with python-senlinclient, kept running: to load it takes a second of CPU time.

It runs in a virtual environment of its own, which `scripts/senlinclient` makes, and knows nothing of this repository.
Each line that it reads is JSON: `{"words", "environ", "directory"}`; for each it writes one: `{"code", "out", "err"}`.
"""

import contextlib
import io
import json
import os
import sys
import time
from typing import Any


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(carried_out(json.loads(line))), file=answers, flush=True)


def carried_out(asked: Any) -> dict[str, Any]:
    from openstackclient.shell import OpenStackShell  # type: ignore[import-untyped, unused-ignore]
    from osc_lib.clientmanager import ClientCache, ClientManager  # type: ignore[import-untyped, unused-ignore]

    for client in vars(ClientManager).values():
        if isinstance(client, ClientCache):
            client._handle = None  # which is kept for the process, however the next command logs in
    for name in [name for name in os.environ if name.startswith("OS_")]:
        del os.environ[name]
    os.environ.update(asked["environ"])
    os.chdir(asked["directory"])
    said, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
        code = OpenStackShell().run(asked["words"])
    return {"code": code, "out": said.getvalue(), "err": complaints.getvalue()}


def look_more_often(seconds: float = 0.1) -> None:
    """With `--wait` the command looks every five seconds, and ten times."""
    wait = time.sleep
    time.sleep = lambda asked: wait(min(float(asked), seconds))


if __name__ == "__main__":
    if "--often" in sys.argv:
        look_more_often()
    main()
