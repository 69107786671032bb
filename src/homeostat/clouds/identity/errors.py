"""What Keystone answers, sorted by who must act."""

from homeostat.model.errors import Terminal, Transient


class Missing(Terminal):
    """Keystone answered that there is no such thing."""


class AlreadyExists(Terminal):
    """There is such a thing already."""


class Denied(Terminal):
    """Keystone does not allow it to whom it was asked as."""


class Unauthenticated(Transient):
    """Keystone does not know who asks; the operator, or time, may mend it."""
