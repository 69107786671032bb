"""Servers that exist already and apply configs."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.resources.families.access import DEPLOYED
from homeostat.store.builtin.records import Owner, Record


class DeployedServers(RecordKind):
    """Servers that exist already (`OS::Heat::DeployedServer`); each record is its own agent."""

    kind = DEPLOYED

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        made = session.record(self.kind, intent.token, dict(intent.spec), secret=session.secret())
        made.object["collect"] = session.collect_config(made, owner, made.object["transport"], in_cloud=False)
        return [made]

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        collect = session.collect_config(record, self.owner(session, record), spec["transport"], in_cloud=False)
        super().change(session, record, {**spec, "collect": collect})

    def show(self, tx: Connection, found: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            each.id: {
                "id": each.id,
                "name": each.object["name"],
                "os_collect_config": {"os-collect-config": each.object["collect"]},
            }
            for each in found
        }
