"""Draws the pictures of the README and of the tutorial: stacks that come up and heal, in a terminal, and a graph.

    python docs/picture.py

Everything in them really happens, on a service of its own.
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

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.docs.pages import files  # noqa: E402

from homeostat.cli import pictures  # noqa: E402 - found from wherever this program is started
from homeostat.cli.client import Client  # noqa: E402
from homeostat.cli.follow import look  # noqa: E402
from homeostat.cli.settings import ClientSettings  # noqa: E402
from homeostat.cli.state_directory import State  # noqa: E402
from homeostat.clouds.local import LocalCloud  # noqa: E402

IMAGES = ROOT / "docs" / "images"
WEB_TIER = ROOT / "examples" / "web-tier.yaml"
TUTORIAL = ROOT / "docs" / "tutorial" / "first-stack.md"
ASK_S = 0.02
HEIGHT = 40


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="homeostat-picture-") as directory:
        home = Path(directory)
        for name, text in files(TUTORIAL).items():
            (home / name).write_text(text, encoding="utf-8")
        state = State(home / "state")
        try:
            _homeostat(state, "serve", "--detach", "--port", "0")
            _draw(state, home)
        finally:
            service = state.running()
            if service is not None:
                os.kill(service.pid, signal.SIGTERM)
            LocalCloud(state.cloud).destroy()


def _draw(state: State, home: Path) -> None:
    service = state.running()
    assert service is not None, "the service has ended"
    with Client(service.url, ClientSettings(state.root)) as client:
        whole = _console()
        _come_up(whole, state, client, WEB_TIER, f"examples/{WEB_TIER.name}", "-P", "port=18080")
        whole.print()
        _heal(whole, state, client, "web-tier", "server_2")
        _save(whole, "up")
        _homeostat(state, "graph", "web-tier", "--output", str(IMAGES / "web-tier.svg"))
        first, second = _console(), _console()
        _come_up(first, state, client, home / "site.yaml", "site.yaml")
        _save(first, "first-stack")
        _heal(second, state, client, "site", "web")
        _save(second, "first-stack-heals")


# -- scenes ------------------------------------------------------------------------------------------------------------


def _come_up(console: Console, state: State, client: Client, template: Path, shown: str, *more: str) -> None:
    """`homeostat up` of a template until its stack is at rest, and its outputs."""
    console.print(_typed(f"homeostat up {shown}"))
    _homeostat(state, "up", str(template), *more, "--no-wait")
    durations = pictures.Durations()
    while True:
        snapshot = look(client, template.stem, explained=True)
        durations.see(snapshot.resources, time.time())
        if snapshot.at_rest:
            break
        time.sleep(ASK_S)
    console.print(pictures.StackPicture(snapshot).draw(durations, time.time(), HEIGHT))
    console.print(pictures.outputs_table(client.stack(template.stem, outputs=True)["outputs"]))


def _heal(console: Console, state: State, client: Client, stack: str, victim: str) -> None:
    """The process of a server is killed, and the events until it is there again."""
    newest = client.newest_event(client.stack(stack))
    pid = _pid(client, state, stack, victim)
    console.print(_typed(f"kill -9 {pid}"))
    os.kill(pid, signal.SIGKILL)
    console.print(_typed(f"homeostat events {stack} -f"))
    seen = 0
    while seen < 3:
        happened = list(client.events(client.stack(stack), newest))
        for event in happened[seen:]:
            console.print(pictures.event_line(event))
        seen = len(happened)
        time.sleep(ASK_S)


def _pid(client: Client, state: State, stack: str, victim: str) -> int:
    (handle,) = (each.handle for each in look(client, stack).resources if each.name == victim)
    (seen,) = LocalCloud(state.cloud).observe("server", [handle])
    return int(seen.properties["pid"])


# -- drawing -----------------------------------------------------------------------------------------------------------


def _console() -> Console:
    return Console(record=True, width=118, file=io.StringIO(), highlight=False, force_terminal=True)


def _save(console: Console, name: str) -> None:
    svg = console.export_svg(title="homeostat")
    # Without the web font that rich names: the page must not ask other hosts for anything.
    svg = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace")
    text = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")


def _typed(command: str) -> Text:
    return Text.assemble(("$ ", "bold green"), (command, "bold"))


def _homeostat(state: State, *arguments: str) -> None:
    environment = {**os.environ, "HOMEOSTAT_STATE_DIR": str(state.root)}
    subprocess.run(
        [sys.executable, "-m", "homeostat", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    main()
