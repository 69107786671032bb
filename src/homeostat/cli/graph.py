"""`homeostat graph`: the graph of a stack as a picture, or as text for Mermaid or Graphviz."""

import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from homeostat.cli import graph_pictures
from homeostat.cli.connection import connect
from homeostat.cli.errors import OK, Problem
from homeostat.cli.flags import Commands, add_client_command, add_stack_name
from homeostat.cli.output import write_json
from homeostat.cli.views import Snapshot
from homeostat.printable import printable

MERMAID, DOT, SVG = "mermaid", "dot", "svg"
ENDINGS = {".mmd": MERMAID, ".dot": DOT, ".gv": DOT, ".svg": SVG}
"""Suffix of a file -> format."""
DRAWN_WITHIN_S = 120.0


def graph(arguments: Namespace) -> int:
    form = arguments.format or ENDINGS.get(arguments.output.suffix if arguments.output else "", MERMAID)
    with connect(arguments) as client:
        stack = client.stack(arguments.name)
        picture = graph_pictures.graph_of(Snapshot.of(stack, client.resources(stack)))
    text = printable(graph_pictures.mermaid(picture) if form == MERMAID else graph_pictures.dot(picture))
    if form == SVG:
        text = _drawn(text)
    if arguments.output is not None:
        try:
            arguments.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Problem(f"cannot write {arguments.output}: {error.strerror}") from error
    if arguments.json:
        edges = [{"from": dependant, "to": required} for dependant, required in picture.edges]
        nodes = [{"id": node.id, "label": list(node.lines), "status": node.status} for node in picture.nodes]
        write_json({"graph": {"nodes": nodes, "edges": edges}})
    elif arguments.output is None:
        sys.stdout.write(text)
    return OK


def _drawn(text: str) -> str:
    """Render a graph as SVG by Graphviz.

    Raises:
        Problem: Graphviz is missing, or fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise Problem(
            "an SVG needs Graphviz, whose program `dot` is not installed: install the package graphviz, or take "
            "--format mermaid, which Git forges and many editors draw"
        )
    try:
        ended = subprocess.run(
            [program, "-Tsvg"], input=text, capture_output=True, text=True, timeout=DRAWN_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Problem(f"Graphviz has drawn nothing within {DRAWN_WITHIN_S:.0f} s: take --format mermaid") from error
    if ended.returncode:
        raise Problem(f"Graphviz has drawn nothing: {ended.stderr.strip()}")
    return ended.stdout


def add_commands(commands: Commands) -> None:
    command = add_client_command(
        commands,
        graph,
        "graph",
        "homeostat graph web-tier --output web-tier.svg",
    )
    add_stack_name(command)
    command.add_argument(
        "--format", choices=(MERMAID, DOT, SVG), help="(default: by the name of the file, otherwise mermaid)"
    )
    command.add_argument("--output", metavar="FILE", type=Path, help="file to write (default: standard output)")
