"""What an adapter asks other services with, when there is nobody who asks: tokens of users who have gone home."""

from typing import Protocol


class Credentials(Protocol):
    """Safe to share between threads."""

    def token(self, project: str, of: str = "") -> str:
        """A token of Keystone for a project. It may be kept for the call at hand, and not longer.

        of — token of a creation, or handle of a thing: on behalf of whoever has that stack; "" on behalf of anybody who
        has one there. Fails: Terminal when nobody has; Transient when Keystone does not answer.
        """

    def refused(self, token: str) -> None:
        """Somebody did not take this token: the next one is another."""
