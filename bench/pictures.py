"""Draws the growth curves of `bench/results` for the documentation: one SVG for time, one for memory.

python -m bench.pictures
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.records import ROOT, rows

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 190, 40, 50
COLOURS = ("#1f6feb", "#d29922", "#2da44e", "#cf222e", "#8250df", "#57606a")
OPERATIONS = ("create", "delete", "one_change_update", "no_op_update")
Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Picture:
    """file — in docs/images; title; what — last part of the figures' names; unit — of the vertical axis; across — what
    the horizontal one counts; dashed — how the names of curves end that are dashed, in the colour of the one before."""

    file: str
    title: str
    what: str
    unit: str
    across: str = "members"
    dashed: str = "postgresql"


PICTURES = (
    Picture("growth-time.svg", "CPU seconds of the worker, by members of one group", "cpu_seconds", "CPU s"),
    Picture("growth-memory.svg", "Peak memory of the process, by members of one group", "peak_memory", "MiB"),
)


def curves(what: str, shape: str = "group") -> dict[str, Points]:
    """Operation and database -> (size, value), where there are several sizes."""
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for row in rows():
        operation, _, rest = row.name.partition(".")
        if rest == f"{shape}.{what}" and operation in OPERATIONS:
            found[f"{operation.replace('_', ' ')}, {row.database}"][row.n] = row.value
    return {name: sorted(points.items()) for name, points in found.items() if len(points) > 1}


def svg(picture: Picture, lines: dict[str, Points]) -> str:
    """Curves over two logarithmic axes."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    first, last = math.log10(min(xs)), math.log10(max(xs))

    def across(x: float) -> float:
        return LEFT + (math.log10(x) - first) / (last - first) * (right - LEFT)

    def down(y: float) -> float:
        return bottom - (math.log10(y) - low) / (high - low) * (bottom - TOP)

    parts = [f'<text x="{LEFT}" y="20" font-size="15">{escape(picture.title)}</text>']
    for power in range(low, high + 1):
        y = down(10**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for x in sorted(set(xs)):
        parts.append(f'<text x="{across(x):.1f}" y="{bottom + 20}" text-anchor="middle">{x:,}</text>')
    parts.append(f'<text x="{LEFT - 8}" y="{TOP - 6}" text-anchor="end">{picture.unit}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{picture.across}</text>')
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place // 2 % len(COLOURS)]
        dashes = ' stroke-dasharray="6 4"' if name.endswith(picture.dashed) else ""
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        key_y = TOP + 18 * place
        parts.append(
            f'<line x1="{right + 12}" y1="{key_y}" x2="{right + 36}" y2="{key_y}" stroke="{colour}" '
            f'stroke-width="2"{dashes}/><text x="{right + 42}" y="{key_y + 4}" font-size="11">{escape(name)}</text>'
        )
    return _document(picture.title, parts)


def _document(title: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#24292f">'
    )
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", background, *parts, "</svg>"]) + "\n"


def drawn(picture: Picture) -> str:
    return svg(picture, dict(sorted(curves(picture.what).items())))


def main() -> None:
    for picture in PICTURES:
        (IMAGES / picture.file).write_text(drawn(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
