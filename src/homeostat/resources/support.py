"""Support status of resource types, and the release of Heat that introduced it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class SupportStatus(StrEnum):
    UNKNOWN = "UNKNOWN"
    SUPPORTED = "SUPPORTED"
    DEPRECATED = "DEPRECATED"
    UNSUPPORTED = "UNSUPPORTED"
    HIDDEN = "HIDDEN"
    """The type works in existing templates, but no list and no documentation shows it."""


@dataclass(frozen=True, slots=True)
class Support:
    """Support status of a type.

    Attributes:
        message: Advice on a replacement, or "".
        version: Release of Heat that introduced the status; "" if unknown.
        previous: Status before; None if there was none.
    """

    status: SupportStatus = SupportStatus.SUPPORTED
    message: str = ""
    version: str = ""
    previous: "Support | None" = None

    @property
    def hidden(self) -> bool:
        return self.status is SupportStatus.HIDDEN

    def wire(self) -> Mapping[str, Any]:
        """Return the status in the form of the API."""
        return {
            "status": self.status.value,
            "message": self.message or None,
            "version": self.version or None,
            "previous_status": self.previous.wire() if self.previous is not None else None,
        }


SUPPORTED = Support()


def deprecated(version: str = "", message: str = "") -> Support:
    """Return the status of a type that works but should not be used in new templates."""
    return Support(SupportStatus.DEPRECATED, message, version)


def hidden(version: str = "", message: str = "", previous: Support | None = None) -> Support:
    """Return the status of a type that is kept for old templates only."""
    return Support(SupportStatus.HIDDEN, message, version, previous)


def unsupported(message: str = "", version: str = "") -> Support:
    """Return the status of a type that works, but may be removed."""
    return Support(SupportStatus.UNSUPPORTED, message, version)
