"""Scaling policies: their URLs for signals, which `convergence.members.scaling` carries out."""

from homeostat.builtin.kinds.base import SIGNED_BY, RecordKind
from homeostat.builtin.sessions import RecordSession
from homeostat.clouds.port import Creation
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.resources.signals import Transport
from homeostat.store.builtin.records import Owner, Record


class Policies(RecordKind):
    """Scaling policies."""

    kind = POLICY_KIND

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        secret = session.secret()
        new = session.record(self.kind, intent.token, dict(intent.spec), secret=secret)
        url = session.signed(new.id, secret, SIGNED_BY[Transport.CFN], owner)
        new.object |= {"url": url, "endpoint": session.endpoint(owner)}
        return [new]
