"""Errors of Keystone, sorted by who must act."""

from homeostat.model.errors import Terminal, Transient


class Missing(Terminal):
    """Keystone answered that the object does not exist."""


class AlreadyExists(Terminal):
    """The object exists already."""


class Denied(Terminal):
    """Keystone does not allow the request with this login or token."""


class Unauthenticated(Transient):
    """Keystone does not accept the login; the operator may correct it, or it may recover."""
