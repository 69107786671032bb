"""Whether the client of a request is still connected, asked between two steps of long work."""

from collections.abc import Callable

ClientCheck = Callable[[], None]
"""Called between two steps of long work; raises when the client has disconnected."""


def always_connected() -> None:
    """Return: the default where no client can disconnect."""
