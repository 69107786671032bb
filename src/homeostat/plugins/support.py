"""The support status of types, properties and attributes."""

from typing import Any

from homeostat.resources.support import Support
from homeostat.resources.support import SupportStatus as Word

UNKNOWN, SUPPORTED, DEPRECATED, UNSUPPORTED, HIDDEN = (word.value for word in Word)
SUPPORT_STATUSES = tuple(word.value for word in Word)


class SupportStatus:
    """The support status of one type, property or attribute.

    Args:
        status: A member of `SUPPORT_STATUSES`; unknown words become UNKNOWN.
        message: Hint for users, such as a recommended replacement.
        version: First version with the status.
        substitute_class: The replacement of a deprecated type.
    """

    def __init__(
        self,
        status: str = SUPPORTED,
        message: str | None = None,
        version: str | None = None,
        previous_status: "SupportStatus | None" = None,
        substitute_class: Any = None,
    ) -> None:
        known = status in SUPPORT_STATUSES
        self.status = status if known else UNKNOWN
        self.message = message if known else f"Specified status is invalid, defaulting to {UNKNOWN}"
        self.version = version if known else None
        self.previous_status = previous_status if known else None
        self.substitute_class = substitute_class

    def support(self) -> Support:
        """Return the status in the form of resource types."""
        before = self.previous_status.support() if self.previous_status is not None else None
        return Support(Word(self.status), self.message or "", self.version or "", before)
