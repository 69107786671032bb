"""Software configs."""

from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.sessions import RecordSession
from homeostat.clouds.port import Creation
from homeostat.resources.families import configs
from homeostat.resources.families.configs import CONFIG
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record


class Configs(RecordKind):
    """Software configs, including configs assembled from several (`OS::Heat::MultipartMime`, …)."""

    kind = CONFIG
    needs_owner = False

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        spec = dict(intent.spec)
        parts = spec.pop("parts", None)
        if parts is not None:
            named = {part["config"] for part in parts}
            stored = records.of_ids(session.tx, CONFIG, named)
            contents = {
                id: config.object["config"] for id, config in stored.items() if config.project == session.project
            }
            spec["config"] = configs.assembled(parts, contents)
        return [session.record(self.kind, intent.token, spec)]
