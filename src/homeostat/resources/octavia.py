"""Types of this family."""

from homeostat.resources.base import ResourceType

TYPES: list[type[ResourceType]] = []
