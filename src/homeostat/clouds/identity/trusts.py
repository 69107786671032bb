"""Trusts: a user lets the service act in a project when that user has gone home.

A trust has no name, but Keystone keeps two of the same users and project from ending at the same second: the end, far
away and drawn at random, is the token by which a trust is found again after a lost answer (law 3).
"""

import datetime
import logging
import threading
from collections.abc import Sequence

from cachetools import LRUCache
from keystoneauth1 import adapter

from homeostat.clouds.identity.errors import AlreadyExists, Denied, Missing, Unauthenticated
from homeostat.clouds.identity.keystone import Keystone

FIRST_S = int(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC).timestamp())
SPAN_S = 2**31
LOG = logging.getLogger(__name__)
KEPT_MAX = 10_000
"""Trusts whose tokens are remembered in a process."""


class Trusts:
    """Safe to share between threads."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone
        self._lock = threading.Lock()
        self._ways: LRUCache[str, adapter.Adapter] = LRUCache(KEPT_MAX)

    @staticmethod
    def end_of(number: int) -> str:
        """The second at which the trust with this number ends, as Keystone writes it."""
        at = datetime.datetime.fromtimestamp(FIRST_S + number % SPAN_S, datetime.UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.000000Z")

    def make(self, user_id: str, project: str, roles: Sequence[str], token: str, end: str) -> str:
        """Id of the trust that this user, whose token it is, gives; the same when asked again.

        Fails: Denied, Transient, Uncertain, Terminal.
        """
        body = {
            "trustor_user_id": user_id,
            "trustee_user_id": self._keystone.user_id(self._keystone.trustee),
            "project_id": project,
            "impersonation": True,
            "roles": [{"name": name} for name in roles],
            "expires_at": end,
        }
        try:
            made = self._keystone.ask_as(token, "POST", "OS-TRUST/trusts", json={"trust": body})
        except AlreadyExists:
            found = self.find(end)
            if not found:
                raise
            return found[0]
        return str(made["trust"]["id"])

    def find(self, end: str) -> list[str]:
        """Ids of the trusts that end then. Fails: Transient."""
        trustee = self._keystone.user_id(self._keystone.trustee)
        found = self._keystone.ask(
            self._keystone.trustee, "GET", "OS-TRUST/trusts", params={"trustee_user_id": trustee}
        )
        return [str(each["id"]) for each in found["trusts"] if each["expires_at"] == end]

    def is_ours(self, trust_id: str) -> bool:
        """Is the service the one that is trusted? Fails: Transient."""
        try:
            return self._exists(trust_id)
        except Denied as error:
            LOG.info("the trust %s is somebody else's: %s", trust_id, error)
            return False

    def token(self, trust_id: str) -> str:
        """What the user may do in the project, this token may. Fails: Denied when the trust is not worth anything;
        Transient."""
        way = self._way(trust_id)
        try:
            return str(self._keystone.asked(way.get_token, looks=True))
        except Unauthenticated as error:
            self._keystone.token(self._keystone.trustee)  # or it is the service itself that is not let in
            raise Denied("there is no such trust any more") from error

    def refused(self, trust_id: str) -> None:
        """Somebody did not take its token: ask for another one."""
        self._way(trust_id).invalidate()

    def delete(self, trust_id: str) -> None:
        """Gone is gone. Fails: Denied when its user may not even do that any more; Transient, Uncertain."""
        try:
            self.token(trust_id)
        except Denied:
            if not self._exists(trust_id):
                return
            raise
        try:
            self._keystone.ask(self._way(trust_id), "DELETE", f"OS-TRUST/trusts/{trust_id}")
        except Missing:
            pass
        with self._lock:
            self._ways.pop(trust_id, None)

    def _exists(self, trust_id: str) -> bool:
        try:
            self._keystone.ask(self._keystone.trustee, "GET", f"OS-TRUST/trusts/{trust_id}")
        except Missing:
            return False
        return True

    def _way(self, trust_id: str) -> adapter.Adapter:
        with self._lock:
            if trust_id not in self._ways:
                self._ways[trust_id] = self._keystone.trusted(trust_id)
            return self._ways[trust_id]
