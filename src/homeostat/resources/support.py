"""How far a resource type is supported, and since which release of the Orchestration service."""

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
    """It works in templates that have it; no list and no documentation shows it."""


@dataclass(frozen=True, slots=True)
class Support:
    """Of a type. message — what to use instead; version — the release since when; previous — what held before."""

    status: SupportStatus = SupportStatus.SUPPORTED
    message: str = ""
    version: str = ""
    previous: "Support | None" = None

    @property
    def hidden(self) -> bool:
        return self.status is SupportStatus.HIDDEN

    def wire(self) -> Mapping[str, Any]:
        """As the API shows it (rest-api.md section 6)."""
        return {
            "status": self.status.value,
            "message": self.message or None,
            "version": self.version or None,
            "previous_status": self.previous.wire() if self.previous is not None else None,
        }


SUPPORTED = Support()


def deprecated(version: str = "", message: str = "") -> Support:
    """It works, and should not be used in new templates."""
    return Support(SupportStatus.DEPRECATED, message, version)


def hidden(version: str = "", message: str = "", previous: Support | None = None) -> Support:
    """It works in old templates only."""
    return Support(SupportStatus.HIDDEN, message, version, previous)


def unsupported(message: str = "", version: str = "") -> Support:
    """It works, and nobody promises that it goes on working."""
    return Support(SupportStatus.UNSUPPORTED, message, version)
