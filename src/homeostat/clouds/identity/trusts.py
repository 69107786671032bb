"""Trusts: a user allows the service to act in a project after the request of the user has ended.

A trust has no name, but Keystone refuses two trusts of the same users and project that expire at the same second. So
the expiry, far in the future and drawn at random, is the idempotency token that finds a trust after a lost response.
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
"""Maximum number of trusts whose tokens a process caches."""


class Trusts:
    """Client for trusts in the service. Safe to share between threads."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone
        self._lock = threading.Lock()
        self._ways: LRUCache[str, adapter.Adapter] = LRUCache(KEPT_MAX)

    @staticmethod
    def end_of(number: int) -> str:
        """Return the expiry of the trust with this number, to the second, as Keystone writes it."""
        at = datetime.datetime.fromtimestamp(FIRST_S + number % SPAN_S, datetime.UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.000000Z")

    def make(self, user_id: str, project: str, roles: Sequence[str], token: str, end: str) -> str:
        """Create a trust, and return its id; idempotent on `end`.

        Args:
            user_id: The user who trusts the service.
            project: Project in which the service may act.
            roles: Names of the roles in the trust.
            token: A token of the user.
            end: Expiry of the trust, from `end_of`.

        Raises:
            Denied: The user may not create the trust.
            Transient: Keystone does not answer.
            Uncertain: The trust may have been created.
            Terminal: Keystone refuses the trust.
        """
        body = {
            "trustor_user_id": user_id,
            "trustee_user_id": self._keystone.user_id(self._keystone.trustee),
            "project_id": project,
            "impersonation": True,
            # A service that acts for the user later, such as an alarm that calls a URL, creates a trust with the token
            # of our request; this second trust cannot be redelegated.
            "allow_redelegation": True,
            "redelegation_count": 1,
            "roles": [{"name": name} for name in roles],
            "expires_at": end,
        }
        try:
            trust = self._keystone.request_as(token, "POST", "OS-TRUST/trusts", json={"trust": body})
        except AlreadyExists:
            ids = self.find(end)
            if not ids:
                raise
            return ids[0]
        return str(trust["trust"]["id"])

    def find(self, end: str) -> list[str]:
        """Return the ids of the trusts with this expiry.

        Raises:
            Transient: Keystone does not answer.
        """
        trustee = self._keystone.user_id(self._keystone.trustee)
        trusts = self._keystone.request(
            self._keystone.trustee, "GET", "OS-TRUST/trusts", params={"trustee_user_id": trustee}
        )
        return [str(trust["id"]) for trust in trusts["trusts"] if trust["expires_at"] == end]

    def is_ours(self, trust_id: str) -> bool:
        """Return whether the service is the trustee of a trust.

        Raises:
            Transient: Keystone does not answer.
        """
        try:
            return self._exists(trust_id)
        except Denied as error:
            LOG.info("the trust %s belongs to another user: %s", trust_id, error)
            return False

    def token(self, trust_id: str) -> str:
        """Return a token with the rights of the trust in the project.

        Raises:
            Denied: The trust is no longer valid.
            Transient: Keystone does not answer.
        """
        way = self._way(trust_id)
        try:
            return str(self._keystone.call(way.get_token, looks=True))
        except Unauthenticated as error:
            # Raises Unauthenticated if the login of the service itself is the problem, not the trust.
            self._keystone.token(self._keystone.trustee)
            raise Denied("there is no such trust any more") from error

    def refused(self, trust_id: str) -> None:
        """Report that a service refused the trust's token: a new one is requested next time."""
        self._way(trust_id).invalidate()

    def delete(self, trust_id: str) -> None:
        """Delete a trust, if it exists.

        Raises:
            Denied: The trust exists, but its user has lost even the right to delete it.
            Transient: Keystone does not answer.
            Uncertain: The trust may have been deleted.
        """
        # Deletion needs a token of the trust. If Keystone issues none, the trust is deleted already, or invalid.
        try:
            self.token(trust_id)
        except Denied:
            if not self._exists(trust_id):
                return
            raise
        try:
            self._keystone.request(self._way(trust_id), "DELETE", f"OS-TRUST/trusts/{trust_id}")
        except Missing:
            pass
        with self._lock:
            self._ways.pop(trust_id, None)

    def _exists(self, trust_id: str) -> bool:
        try:
            self._keystone.request(self._keystone.trustee, "GET", f"OS-TRUST/trusts/{trust_id}")
        except Missing:
            return False
        return True

    def _way(self, trust_id: str) -> adapter.Adapter:
        with self._lock:
            if trust_id not in self._ways:
                self._ways[trust_id] = self._keystone.trusted(trust_id)
            return self._ways[trust_id]
