"""Rendering of rollouts: a progress bar with details, a table of several rollouts, a line for a change."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from homeostat.cli import pictures
from homeostat.cli.views import lasting, seconds

Wire = Mapping[str, Any]
COLOURS = {"held": "red", "rolled_back": "red", "aborted": "red", "running": "yellow", "paused": "yellow"}
"""State -> colour; all further states are green."""
WAITS = {
    "worker": "a worker, which takes it up by itself",
    "stack": "the stack, which is locked or suspended",
    "handles": "the handles to which its members signal",
    "members": "the members of the step, which are being changed",
    "reports": "the reports of the members of the step",
    "checks": "the answers of the URLs in its checks",
    "bake_time": "the end of the time after the step",
    "approval": "your approval of the step",
    "user": "your decision",
    "nothing": "",
}
"""Words for `waits_for` of the API."""
WORDS = {"definition": "definition", "both": "definition, and metadata"}
"""Words for `gives` of the API; rollouts of metadata alone, the usual case, have none."""


def place(rollout: Wire) -> str:
    """Return the name of the group in commands: its path from the stack."""
    return "/".join(rollout["path"])


def drawn(rollout: Wire, stack: str, now: float) -> RenderableType:
    """Render a rollout.

    Args:
        rollout: In the format of the API.
        stack: The stack's name from the command line.
        now: Seconds since the epoch.
    """
    members, state = rollout["members"], str(rollout["state"])
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(
        total=max(members["total"], 1), completed=members["updated"], width=24, complete_style=_colour(state)
    )
    name = Text.assemble((f"{stack} ", "dim"), (place(rollout), "bold"))
    count = f"{members['updated']}/{members['total']} members"
    head.add_row(name, Text(state.replace("_", " "), _colour(state)), bar, count, Text(_left(rollout, now), "dim"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _details(rollout, stack, now):
        grid.add_row(f"  {label}", Text(text))
    return Group(head, grid)


def table(rollouts: Sequence[Wire], now: float) -> RenderableType:
    """Render several rollouts as a table."""
    rows: pictures.Rows = [
        [
            place(rollout),
            Text(str(rollout["state"]).replace("_", " "), _colour(rollout["state"])),
            str(rollout["step"]),
            f"{rollout['members']['updated']}/{rollout['members']['total']}",
            str(rollout["failures"]["count"]),
            str(WAITS.get(rollout["waits_for"], rollout["waits_for"])),
            _left(rollout, now),
        ]
        for rollout in rollouts
    ]
    return pictures.table(("resource", "state", "step", "members", "failed", "waits for", ""), rows)


def line(rollout: Wire) -> Text:
    """Render a change for output that is not a terminal."""
    members, state = rollout["members"], str(rollout["state"])
    text = Text.assemble((place(rollout), "bold"), "  ", (f"{state.replace('_', ' '):<12}", _colour(state)))
    return text.append(f"  {members['updated']}/{members['total']} members  {rollout['reason']}")


def _details(rollout: Wire, stack: str, now: float) -> list[tuple[str, str]]:
    step, failures = rollout["members"]["step"], rollout["failures"]
    reported = f"{step['succeeded']} succeeded, {step['failed']} failed, {step['waiting']} waiting"
    waits = WAITS.get(rollout["waits_for"], rollout["waits_for"])
    begun = _since(rollout["started_at"], now)
    lines = [
        ("step", f"{rollout['step']}: {reported}" if rollout["step"] else ""),
        ("failures", _budget(failures) if failures["count"] or failures["max"] else ""),
        *[("", f"{member['resource_name'] or member['physical_resource_id']}: {member['reason']}")
          for member in failures["members"]],
        ("why", rollout["reason"]),
        ("waits for", waits),
        ("gives", f"a new {WORDS[rollout['gives']]}" if rollout.get("gives") in WORDS else ""),
        ("begun", f"{begun} ago, {rollout['pattern']}; the step {_since(rollout['step_at'], now)} ago"),
        ("you can", _commands(rollout, stack)),
    ]  # fmt: skip
    return [(label, text) for label, text in lines if text]


def _budget(failures: Wire) -> str:
    accepted = f", besides {failures['accepted']} that were accepted" if failures["accepted"] else ""
    return f"{failures['count']} in all; {failures['max']} may fail{accepted}"


def _commands(rollout: Wire, stack: str) -> str:
    verbs = "|".join(action.replace("_", "-") for action in rollout["actions"])
    return f"homeostat rollout {verbs} {stack} {place(rollout)}" if verbs else ""


def _left(rollout: Wire, now: float) -> str:
    due_at = seconds(rollout["due_at"])
    return "" if due_at is None else f"{lasting(max(0.0, due_at - now))} left"


def _since(at: str, now: float) -> str:
    return lasting(max(0.0, now - (seconds(at) or now)))


def _colour(state: str) -> str:
    return COLOURS.get(state, "green")
