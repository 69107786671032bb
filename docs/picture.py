"""Draws docs/images/up.svg: a stack comes up, one of its servers is killed and heals, as a terminal shows it.

    python docs/picture.py

Everything in it really happens, on a service of its own.
"""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.client import Client
from homeostat.cli.follow import look
from homeostat.cli.settings import ClientSettings
from homeostat.cli.state_directory import State
from homeostat.clouds.local import LocalCloud

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "docs" / "images" / "up.svg"
STACK = "web-tier"
VICTIM = "server_2"
ASK_S = 0.02
HEIGHT = 40


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="homeostat-picture-") as directory:
        state = State(Path(directory))
        try:
            console = Console(record=True, width=118, file=io.StringIO(), highlight=False, force_terminal=True)
            _show(console, state)
        finally:
            service = state.running()
            if service is not None:
                os.kill(service.pid, signal.SIGTERM)
            LocalCloud(state.cloud).destroy()
    svg = console.export_svg(title="homeostat")
    # Without the web font that rich names: the page must not ask other hosts for anything.
    svg = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace")
    IMAGE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def _show(console: Console, state: State) -> None:
    _homeostat(state, "serve", "--detach", "--port", "0")
    console.print(_typed(f"homeostat up examples/{STACK}.yaml"))
    _homeostat(state, "up", str(ROOT / "examples" / f"{STACK}.yaml"), "-P", "port=18080", "--no-wait")
    service = state.running()
    assert service is not None, "the service has ended"
    with Client(service.url, ClientSettings(state.root)) as client:
        _come_to_rest(console, client)
        stack = client.stack(STACK, outputs=True)
        console.print(pictures.outputs_table(stack["outputs"]))
        newest = client.newest_event(stack)
        pid = _pid(client, state)
        console.print("", _typed(f"kill -9 {pid}"), sep="\n")
        os.kill(pid, signal.SIGKILL)
        console.print(_typed(f"homeostat events {STACK} -f"))
        seen = 0
        while seen < 3:
            happened = list(client.events(stack, newest))
            for event in happened[seen:]:
                console.print(pictures.event_line(event))
            seen = len(happened)
            time.sleep(ASK_S)


def _come_to_rest(console: Console, client: Client) -> None:
    durations = pictures.Durations()
    while True:
        snapshot = look(client, STACK, explained=True)
        durations.see(snapshot.resources, time.time())
        if snapshot.at_rest:
            console.print(pictures.StackPicture(snapshot).draw(durations, time.time(), HEIGHT))
            return
        time.sleep(ASK_S)


def _pid(client: Client, state: State) -> int:
    (handle,) = (each.handle for each in look(client, STACK).resources if each.name == VICTIM)
    (seen,) = LocalCloud(state.cloud).observe("server", [handle])
    return int(seen.properties["pid"])


def _typed(command: str) -> Text:
    return Text.assemble(("$ ", "bold green"), (command, "bold"))


def _homeostat(state: State, *arguments: str) -> None:
    environment = {**os.environ, "HOMEOSTAT_STATE_DIR": str(state.root)}
    subprocess.run(
        [sys.executable, "-m", "homeostat", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    main()
