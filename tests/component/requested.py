"""Nodes of which tests ask something, as the API does it for users."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import select

from homeostat.clouds.port import Answer, Operation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.clustering.decisions.requests import CHECKED, NodeRequest
from homeostat.clustering.service.requests import RequestService
from homeostat.clustering.store import actions
from homeostat.clustering.store.actions import NewAction
from homeostat.clustering.store.requests import RequestedNodes, RequestEnd, end_of
from homeostat.model.errors import Terminal
from homeostat.model.requested import RECREATE, Aim
from homeostat.model.world import Resource
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.actions import ConvergenceSettings
from homeostat.store import schema
from homeostat.store.schema.rows import ActionRow, NodeRow
from homeostat.store.sql import typed
from tests.component.running import Service, server
from tests.simulation.watched import raw

SEED = "4d5a4b2e-0000-4000-8000-000000000001"
OFF = ConvergenceSettings({"converge": False})
OWNER = {"project": "p", "user": None, "domain": None}


def reboot(type: str = "SOFT") -> NodeRequest:
    return NodeRequest("reboot", Aim.OPERATION, {"type": type})


def operation(name: str, **arguments: Any) -> NodeRequest:
    return NodeRequest(name, Aim.OPERATION, arguments)


def recreation(delete_timeout: int = 20, *, force: bool = False, check: bool = False, **more: Any) -> NodeRequest:
    return NodeRequest(RECREATE, Aim.RECOVERY, {"delete_timeout": delete_timeout, "force": force, **more}, check)


class Counting(SimulatedCloud):
    """Remembers the operations that it was asked for. says — with what it refuses all; "" for not at all."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.operated: list[tuple[str, dict[str, Any]]] = []
        self.says = ""

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        self.operated += [(each.verb, dict(each.arguments)) for each in operations]
        if self.says:
            return [Terminal(self.says)] * len(operations)
        return super().operate(kind, operations)


class Nodes(Service):
    """A cluster, as its stack is: two servers, which are brought back by themselves only where `converge` says so.

    Takes: member — instead of a server; files — that it names.
    """

    def __init__(
        self,
        count: int = 2,
        behaviour: CloudBehaviour | None = None,
        *,
        converge: bool = False,
        member: dict[str, Any] | None = None,
        files: dict[str, str] | None = None,
    ) -> None:
        super().__init__(cloud=lambda clock: Counting(clock.now, behaviour))
        wanted = {"count": count, "resource_def": member or server(), "nodes": {"seed": SEED, "format": ""}}
        group = {"nodes": {"type": NodeGroup.name, "properties": wanted}}
        self.asked = 0
        self.id = self.begin(group, internal_types={NodeGroup.name}, files=files or {})
        self.rest()
        if not converge:
            self.actions.switch(self.id, OFF)
            self.live(1.0)

    @property
    def counting(self) -> Counting:
        return cast(Counting, self.cloud)

    def ask(self, ask: NodeRequest, *numbers: int, timeout_s: int = 3600) -> str:
        """NodeRequest nodes for something; return the id of the action."""
        nodes = [SimpleNamespace(id=f"n{each}", name=f"n{each}", number=each, stack_id=self.id) for each in numbers]
        self.asked += 1
        identity = f"00000000-0000-4000-8000-{self.asked:012}"
        with self.db.write() as tx:
            rows = cast(list[NodeRow], nodes)
            asked = RequestService(self.db).place(tx, rows, ask, identity, "me", timeout_s)
            self._remember(tx, identity, asked)
        return identity

    def _remember(self, tx: Any, identity: str, asked: RequestedNodes) -> None:
        new = NewAction("NODE_OPERATION", "a", identity, None, {}, 3600, self.id, id=identity, data=asked.data())
        actions.add(tx, new, OWNER, self.clock.now())

    def end(self, identity: str) -> RequestEnd | None:
        """How a request has ended; None while it goes on."""
        with self.db.read() as tx:
            found = tx.execute(select(schema.action).where(schema.action.c.id == identity))
            return end_of(tx, typed.rows(ActionRow, found).one())

    def ended(self, identity: str) -> tuple[str, str]:
        found = self.end(identity)
        assert found is not None, f"{identity} goes on; due: {self.due()}; {self.member(0)}"
        return found.status, found.reason

    def member(self, number: int) -> Resource:
        """The row that stands for a node."""
        rows = [each for each in self.rows(self.child().id) if each.name == str(number) and each.action != "DELETE"]
        (found,) = rows
        return cast(Resource, found)

    def texts(self, number: int) -> list[str]:
        """Events of a node, with their reasons."""
        return [f"{each.action}_{each.status} {each.reason}" for each in self.events(self.child().id, str(number))]

    def everything(self) -> str:
        """All that the database has."""
        with self.db.engine.connect() as connection:
            return "\n".join(raw(connection).iterdump())

    def status(self, number: int) -> str:
        return str(self.cloud.things("server")[self.member(number).handle]["status"])


__all__ = ["CHECKED", "Nodes", "operation", "reboot", "recreation"]
