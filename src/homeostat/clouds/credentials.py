"""Credentials for calls without a user's request: tokens on behalf of the users who own the stacks."""

from typing import Protocol


class Credentials(Protocol):
    """Source of tokens for an adapter. Safe to share between threads."""

    def token(self, project: str, of: str = "") -> str:
        """Return a Keystone token for a project; use it for the current call only.

        Args:
            of: Token of a creation, or handle of an object: the token acts on behalf of the stack's owner. "" for the
                owner of any stack in the project.

        Raises:
            Terminal: There is no such owner.
            Transient: Keystone does not answer.
        """

    def refused(self, token: str) -> None:
        """Report that a service refused this token; the next call returns a new token."""
