"""What commands of python-senlinclient are tried on, and the table of the proofs that they work."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from tests.senlin_command import SenlinCommand
from tests.waiting import until
from tests.wire.running import Running


@dataclass(frozen=True, slots=True)
class World:
    """What commands work on: a project with a profile and a cluster `c` of two nodes, which is at rest.

    Attributes:
        run: Runs commands.
        cluster: Id of the cluster.
        action: Id of the action that made it.
        nodes: Ids of its nodes.
    """

    run: SenlinCommand
    service: Running
    cluster: str
    action: str
    nodes: list[str]

    def ended(self, action: str, status: str = "SUCCEEDED") -> dict[str, Any]:
        def found() -> Any:
            shown = self.run.shown("cluster", "action", "show", action)
            return shown if shown["status"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None

        shown: dict[str, Any] = until(found, f"action {action} to end")
        assert shown["status"] == status, shown["status_reason"]
        return shown

    def done(self, *words: str) -> dict[str, Any]:
        """The action that a command has begun, once it has succeeded."""
        return self.ended(self.run.begun("cluster", *words))

    def shown(self, *words: str) -> Any:
        return self.run.shown("cluster", *words)

    def spec(self, name: str, content: Any) -> str:
        return self.run.text(name, yaml.safe_dump(content))

    def members(self) -> list[str]:
        return [each["id"] for each in self.shown("members", "list", "--full-id", "c")]

    def alone(self, name: str = "alone") -> Any:
        """A node without a cluster, at rest."""
        made = self.shown("node", "create", "--profile", "web", name)
        return until(
            lambda: [one for one in [self.shown("node", "show", made["id"])] if one["status"] == "ACTIVE"],
            "the node to be active",
        )[0]


Proof = Callable[[World], None]
PROOFS: dict[str, Proof] = {}


def proves(command: str) -> Callable[[Proof], Proof]:
    def keep(proof: Proof) -> Proof:
        PROOFS[command] = proof
        return proof

    return keep
