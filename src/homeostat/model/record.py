"""Records: frozen dataclasses at a third of their cost."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots that the type checker holds frozen.

    `dataclass(frozen=True)` pays a call for each field of each new object, which shows in classes of which every pass
    makes objects for each resource. Those alone are records.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
