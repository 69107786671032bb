"""Existing servers that apply configs."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.sessions import Fields, RecordSession
from homeostat.clouds.port import Creation
from homeostat.resources.families.access import DEPLOYED
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Transaction


class DeployedServers(RecordKind):
    """Existing servers (`OS::Heat::DeployedServer`); each record is also the record of the server's agent."""

    kind = DEPLOYED

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        new = session.record(self.kind, intent.token, dict(intent.spec), secret=session.secret())
        new.object["collect"] = session.collect_config(new, owner, new.object["transport"], in_cloud=False)
        return [new]

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        collect = session.collect_config(record, self.owner(session, record), spec["transport"], in_cloud=False)
        super().change(session, record, {**spec, "collect": collect})

    def show(self, tx: Transaction, stored: Sequence[Record]) -> Mapping[str, Fields]:
        return {
            record.id: {
                "id": record.id,
                "name": record.object["name"],
                "os_collect_config": {"os-collect-config": record.object["collect"]},
            }
            for record in stored
        }
