"""The demonstration of rollouts: thirty servers get a good configuration, a wrong one, and its correction.

    python -m homeostat.cli.demo_rollout

On each server an agent reads its configuration, applies it and reports. Ends like `homeostat.cli.demo`.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from homeostat.cli.demonstration import EXAMPLES, Demonstration, fetched, play
from homeostat.cli.follow import look

SERVERS = 30
STEPS_OF_MEMBERS = (1, 3, 15, 30)
"""Members with the new configuration after each step, as in the template."""
GOOD, WRONG, CORRECTED = "1,1,1,1,2", "1,1,1,1,0", "1,1,1,1,3"
"""Weights of the servers: with a 0, a fifth of the servers fails."""
BREAKS = 5
SHOWS = 15
"""Members with the wrong configuration after the first step that reveals the error: the first four members work."""
STEP = re.compile(r"step \d+: (\d+) of \d+ members have the new metadata")
"""The reason of a step's event."""
BACK_S_MAX = 2.0
"""Longest time from the first signal of a failure until all servers have the old configuration."""
NEXT = """Try next:
  homeostat up examples/rollout.yaml                          the same by hand
  homeostat up examples/rollout.yaml -P release=2 --no-wait   another configuration
  homeostat rollout status --watch rollout                    how far it is; and how to pause it, or to go back"""

Member = Mapping[str, Any]
"""The page of a server: its number, release, share, time of the last change, and the releases it has seen."""


class RolloutDemo(Demonstration):
    """The story of three rollouts; its steps are in the order of `STEPS`."""

    template: ClassVar[Path] = EXAMPLES / "rollout.yaml"
    stack: ClassVar[str] = "rollout"

    def __init__(self, root: Path) -> None:
        """Use a new directory."""
        super().__init__(root)
        self._addresses: Sequence[str] = ()
        self._pool = ThreadPoolExecutor(8)

    def bring_up(self) -> None:
        self._title(f"{SERVERS} servers come up, and each reports that it serves")
        self._homeostat("up", str(self.template), "--no-wait")
        self._until(lambda: self._snapshot().at_rest, "all servers to report")
        outputs = {output["output_key"]: output["output_value"] for output in self._snapshot().stack["outputs"]}
        self._addresses = list(outputs["addresses"])
        members = self._members()
        self._check(len(members) == SERVERS and self._all_serve("1"), f"{SERVERS} servers serve release 1", "")

    def roll_out(self) -> None:
        self._title("Release 2 goes out as a canary: each step begins when the one before has reported")
        steps = self._changed("2", GOOD, "UPDATE_COMPLETE")
        self._check(tuple(steps) == STEPS_OF_MEMBERS, "step by step, as the template says", ", ".join(map(str, steps)))
        self._check(self._all_serve("2"), f"{SERVERS} servers serve release 2", "")

    def break_it(self) -> None:
        self._title(f"Release 3 has an error that one server in {BREAKS} meets")
        steps = self._changed("3", WRONG, "UPDATE_FAILED")
        members = self._until(lambda: self._served("2"), "all servers to serve release 2 again")
        expected = STEPS_OF_MEMBERS[: STEPS_OF_MEMBERS.index(SHOWS) + 1]
        self._check(tuple(steps) == expected, f"it is stopped at {SHOWS} of {SERVERS} servers", "")
        seen = [member for member in members if "3" in member["seen"]]
        failed = [member for member in seen if failures_of(member, "3")]
        numbers = ", ".join(str(member["number"]) for member in failed)
        self._check(len(seen) <= SHOWS, f"{SERVERS - len(seen)} servers have never seen it", f"it failed on {numbers}")
        self._check(
            bool(failed),
            "those that failed serve release 2 too",
            ", ".join(sorted({member["release"] for member in failed})),
        )
        self._check_back(members, failed)

    def _check_back(self, members: Collection[Member], failed: Collection[Member]) -> None:
        """Check the time from the first failure until the last server returned to the old release."""
        first = min(at for member in failed for at in failures_of(member, "3"))
        took_s = max(0.0, max(float(member["at"]) for member in members) - first)
        self._check_time(took_s, "all serve release 2 again", BACK_S_MAX, "after the first signal of a failure")

    def correct(self) -> None:
        self._title("The corrected template goes through")
        self._changed("4", CORRECTED, "UPDATE_COMPLETE")
        members = self._members()
        self._check(self._all_serve("4"), f"{SERVERS} servers serve release 4", "")
        again = [member["number"] for member in members if failures_of(member, "4")]
        self._check(not again, "no server has failed", ", ".join(map(str, again)))

    # -- what happens --------------------------------------------------------------------------------------------------

    def _changed(self, release: str, weights: str, status: str) -> Sequence[int]:
        """Update the stack, and print the steps of its rollout.

        Returns:
            Number of members with the new configuration after each step.

        Raises:
            Problem: The update does not end with this status.
        """
        steps: list[int] = []
        with self._client() as client:
            stack = client.stack(self.stack)
            newest = client.newest_event(stack)

            def over() -> bool:
                nonlocal newest
                # Read the stack before the events: they then include all events that led to its state.
                at_rest = look(client, self.stack).at_rest
                for event in client.events(stack, newest):
                    newest = event["id"]
                    if step := STEP.search(str(event["resource_status_reason"])):
                        self._print(step[0])
                        steps.append(int(step[1]))
                return at_rest

            parameters = ("-P", f"release={release}", "-P", f"weights={weights}")
            self._homeostat("up", str(self.template), *parameters, "-y", "--no-wait")
            self._until(over, "the rollout to end")
            ended = look(client, self.stack)
        result = str(ended.stack["stack_status"])
        self._check(result == status, f"the stack is {status}", str(ended.stack["stack_status_reason"])[:300])
        return steps

    def _members(self) -> Sequence[Member]:
        """Return the pages of the servers that answer."""
        pages = self._pool.map(lambda address: fetched(f"http://{address}:8000/"), self._addresses)
        return [json.loads(page) for page in pages if page]

    def _served(self, release: str) -> Sequence[Member]:
        """Return the servers if all of them serve a release; else none."""
        members = self._members()
        good = [member for member in members if member["release"] == release and member["share"] is not None]
        return good if len(good) == SERVERS else []

    def _all_serve(self, release: str) -> bool:
        return bool(self._served(release))

    def clean_up(self) -> None:
        self._pool.shutdown()
        super().clean_up()


STEPS: Sequence[Callable[[RolloutDemo], None]] = (
    RolloutDemo.start,
    RolloutDemo.bring_up,
    RolloutDemo.roll_out,
    RolloutDemo.break_it,
    RolloutDemo.correct,
    RolloutDemo.take_down,
)


def failures_of(member: Member, release: str) -> list[float]:
    """Return when a release failed on a server, in seconds since the epoch."""
    return [float(failure["at"]) for failure in member["failed"] if failure["release"] == release]


if __name__ == "__main__":
    sys.exit(play(RolloutDemo, STEPS, NEXT))
