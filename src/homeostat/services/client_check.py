"""Checks whether the client of a request is still connected, between the steps of long work."""

from collections.abc import Callable

ClientCheck = Callable[[], None]
"""Called between the steps of long work; raises if the client has disconnected."""


def always_connected() -> None:
    """Do nothing: the default for work without a client."""
