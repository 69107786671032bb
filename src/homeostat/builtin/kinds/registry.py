"""All kinds of records by name, and observations of records."""

from collections.abc import Mapping, Sequence

from homeostat.builtin.kinds.access import AccessKeys, Users
from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.kinds.configs import Configs
from homeostat.builtin.kinds.deployed_servers import DeployedServers
from homeostat.builtin.kinds.deployments import Deployments
from homeostat.builtin.kinds.health_policies import HealthPolicies
from homeostat.builtin.kinds.scaling_policies import Policies
from homeostat.builtin.kinds.wait_conditions import Conditions, Handles
from homeostat.model.observed import Observation, Presence
from homeostat.store.builtin import records
from homeostat.store.database import Transaction

ALL = (
    *(Configs(), Handles(), Conditions(), Deployments(), Users(), AccessKeys(), DeployedServers(), Policies()),
    HealthPolicies(),
)
RECORD_KINDS: Mapping[str, RecordKind] = {record_kind.kind: record_kind for record_kind in ALL}


def observed(tx: Transaction, project: str, kind: str, ids: Sequence[str], now: float) -> list[Observation]:
    """Return an observation of the record of each id, in order."""
    stored = {id: record for id, record in records.of_ids(tx, kind, ids).items() if record.project == project}
    objects = RECORD_KINDS[kind].show(tx, list(stored.values()))
    return [
        Observation(Presence.PRESENT, id, objects[id], now)
        if id in objects
        else Observation(Presence.ABSENT, id, seen_at=now, reason="it is not kept any more")
        for id in ids
    ]
